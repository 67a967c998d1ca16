// The members of an OpenAI request that the gateway itself looks at, wherever the answer comes
// from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gateway/api/answer.hpp"
#include "gateway/api/directives.hpp"
#include "gateway/api/errors.hpp"

namespace fixpoint {

struct OpenAiRequest {
  Endpoint endpoint = Endpoint::chat_completions;
  nlohmann::ordered_json body;  // the parsed request; members in the client's order
  std::string model;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  bool wants_logprobs = false;
  bool temperature_zero = false;  // explicitly
  bool has_seed = false;
  Directives directives;
};

// Checks that the body is one JSON object without duplicate members, with a model and messages (or
// a prompt), and that the members above have their types. Errors: 400 that names the member.
ApiResult<OpenAiRequest> parse_request(Endpoint endpoint, const Headers& headers,
                                       std::string_view body);

}  // namespace fixpoint
