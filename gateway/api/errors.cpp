#include "gateway/api/errors.hpp"

#include <nlohmann/json.hpp>

#include "gateway/dialects/translate.hpp"
#include "gateway/log.hpp"

namespace fixpoint {

std::string ApiError::body(Api api, std::string_view request_id) const {
  return error_body(api, status, message, type, code, param, request_id);
}

ApiError bad_request(std::string message, std::string param, std::string code) {
  ApiError error = api_error(400, "invalid_request_error", std::move(code), std::move(message));
  error.param = std::move(param);
  return error;
}

ApiError api_error(int status, std::string type, std::string code, std::string message) {
  ApiError error;
  error.status = status;
  error.type = std::move(type);
  error.code = std::move(code);
  error.message = std::move(message);
  return error;
}

ApiError upstream_error(const Error& error, std::string_view upstream) {
  const std::string message = "Upstream '" + std::string(upstream) + "': " + error.message;
  ApiError result = api_error(502, "upstream_error", "upstream_invalid_response", message);
  switch (error.code) {
    case ErrorCode::timeout:
      return api_error(504, "upstream_error", "upstream_timeout", message);
    case ErrorCode::overloaded:
      result = api_error(503, "upstream_error", "upstream_overloaded", message);
      result.headers.add("Retry-After", "1");
      return result;
    case ErrorCode::invalid:  // beyond a limit: the same request would end there again
      result.headers.add("x-should-retry", "false");
      return result;
    case ErrorCode::protocol:
      return result;
    case ErrorCode::closed:
      return api_error(502, "upstream_error", "upstream_closed", message);
    default:
      return api_error(502, "upstream_error", "upstream_unreachable", message);
  }
}

ApiError method_not_allowed(const std::string& allowed) {
  ApiError error = api_error(405, "invalid_request_error", "method_not_allowed",
                             "This path takes " + allowed + " only");
  error.headers.add("Allow", allowed);
  return error;
}

ApiError engine_error(const engine::Error& error, std::string_view param) {
  switch (error.code) {
    case engine::ErrorCode::bad_request:
    case engine::ErrorCode::unsupported:
      return bad_request(error.message, error.field.empty() ? std::string(param) : error.field);
    case engine::ErrorCode::context_exceeded:
      return bad_request(error.message, std::string(param), "context_length_exceeded");
    case engine::ErrorCode::overloaded: {
      ApiError result = api_error(429, "rate_limit_error", "engine_overloaded", error.message);
      result.headers.add("Retry-After", "1");
      return result;
    }
    default:
      return api_error(500, "server_error", "engine_error", error.message);
  }
}

std::string upstream_words(const std::string& said) {
  if (said.find('\\') != std::string::npos) {
    // Spelled again, text has no escapes but for quotes and controls.
    const auto json = nlohmann::ordered_json::parse(said, nullptr, false);
    if (!json.is_discarded()) {
      const auto text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
      if (auto shown = without_secrets(text); shown != text) return shown;
    }
  }
  return without_secrets(said);
}

Response to_response(const ApiError& error, Api api, std::string_view request_id) {
  Response response;
  response.status = error.status;
  response.headers = error.headers;
  response.body = std::make_shared<const std::string>(error.body(api, request_id));
  return response;
}

}  // namespace fixpoint
