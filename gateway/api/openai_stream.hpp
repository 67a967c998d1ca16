// Between the two forms of an OpenAI answer: chunks of a stream, and one JSON object.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "gateway/api/answer.hpp"

namespace fixpoint {

using Json = nlohmann::ordered_json;

// Puts the chunks of one stream together. Unknown members survive: strings of a delta are joined,
// arrays with indices are merged by index, other values are replaced. Not thread-safe.
class StreamAssembler {
 public:
  explicit StreamAssembler(Endpoint endpoint) : endpoint_(endpoint) {}
  // Errors: protocol, for a chunk that is no JSON object or has an absurd choice index.
  Result<void> add(std::string_view chunk);
  // The plain answer so far.
  Json assemble() const;

 private:
  Endpoint endpoint_;
  Json answer_ = Json::object();  // top-level members
  std::vector<Json> choices_;     // by index, in the plain form; null: not seen
};

// The chunks (without [DONE]) that a stream of this plain answer consists of; usage comes in a last
// chunk of its own, with empty choices.
std::vector<std::string> split_answer(Endpoint endpoint, const Json& answer);

// A chunk that carries nothing but usage: for clients that asked with stream_options.include_usage.
bool is_usage_chunk(std::string_view chunk);

}  // namespace fixpoint
