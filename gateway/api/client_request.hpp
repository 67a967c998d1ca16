// The members of a request that the gateway itself looks at, whichever API it is of and wherever
// its answer comes from.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/canonical_json.hpp"
#include "gateway/api/directives.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/dialects/endpoint.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

// Views point into the body that it was read from.
struct ClientRequest {
  Endpoint endpoint = Endpoint::chat_completions;
  std::string canonical;            // the body without what decides nothing, for the key
  std::vector<JsonMember> members;  // of the body, in the client's order
  std::string model;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  bool wants_logprobs = false;
  // Asks for one particular answer and not for a draw: temperature 0, a seed, or an endpoint that
  // computes (embeddings, count_tokens).
  bool one_answer = false;
  Directives directives;

  // The member's value as it is spelled, unless it is absent or null: the SDKs send null for what
  // was not set.
  std::optional<std::string_view> find(std::string_view name) const;
};

// One pass over the body: checks that it is one JSON object without duplicate members, with a model
// and messages (or a prompt, or an input), and that the members above have their types. What else
// is in it is for whoever answers to judge. Errors: 400 that names the member.
ApiResult<ClientRequest> read_request(Endpoint endpoint, const Request& request);

// A JSON string's text; nothing if `value` is no string.
std::optional<std::string> string_value(std::string_view value);

}  // namespace fixpoint
