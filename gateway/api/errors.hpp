// Errors that a client is told, in the shape that its SDK expects.
#pragma once

#include <string>
#include <string_view>

#include "cache/base/result.hpp"
#include "gateway/dialects/endpoint.hpp"
#include "gateway/http/types.hpp"
#include "local_engine/result.hpp"

namespace fixpoint {

struct ApiError {
  int status = 500;
  std::string type = "server_error";
  std::string code;   // empty: null
  std::string param;  // empty: null
  std::string message;
  Headers headers;  // Retry-After and the like

  // The JSON, on one line; `request_id` is part of Anthropic's.
  std::string body(Api api, std::string_view request_id = {}) const;
};

template <class T>
using ApiResult = tl::expected<T, ApiError>;

inline tl::unexpected<ApiError> refuse(ApiError error) {
  return tl::make_unexpected(std::move(error));
}

// 400 invalid_request_error.
ApiError bad_request(std::string message, std::string param = {}, std::string code = {});
ApiError api_error(int status, std::string type, std::string code, std::string message);
// 405, with Allow: "GET, POST".
ApiError method_not_allowed(const std::string& allowed);
// What a failed upstream call looks like to the client: 502, 504 or 503.
ApiError upstream_error(const Error& error, std::string_view upstream);
ApiError engine_error(const engine::Error& error, std::string_view param);
// What an upstream said of an error, without secrets: one that quotes the key which it was given
// must not tell it to the client, however its JSON spells the key.
std::string upstream_words(const std::string& said);

Response to_response(const ApiError& error, Api api = Api::openai,
                     std::string_view request_id = {});

}  // namespace fixpoint
