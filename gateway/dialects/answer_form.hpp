// The two forms of an answer at each endpoint, the events of a stream and one JSON object, and what
// both say about the generation.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/token_log.hpp"
#include "gateway/dialects/endpoint.hpp"
#include "gateway/http/sse.hpp"

namespace fixpoint {

using Json = nlohmann::ordered_json;

// What an event means to the stream.
enum class StreamStep {
  more,   // part of the answer
  end,    // the API's own end marker; nothing after it counts
  error,  // the upstream reports a failure in its stream; the answer is not whole
};

// Puts the events of one stream together. Unknown members and unknown events survive where they can
// be given back. Not thread-safe.
class StreamAssembler {
 public:
  virtual ~StreamAssembler() = default;
  // The end marker: "[DONE]" of OpenAI's chat and completions, message_stop, response.completed,
  // response.incomplete. Errors: protocol, for an event that breaks the API's form.
  virtual Result<StreamStep> add(const SseEvent& event) = 0;
  // The plain answer so far.
  virtual Json assemble() const = 0;
  // False: the events said something that the plain answer lacks or may have wrong, as with pieces
  // of a form that is not known here. Whoever read the stream had it; nobody else may get it.
  virtual bool faithful() const = 0;
};
// Null for endpoints without streams (embeddings, count_tokens).
std::unique_ptr<StreamAssembler> make_assembler(Endpoint endpoint);

// The events of a stream of this plain answer, its end marker included. Usage is sent as the API
// sends it; for OpenAI's chat and completions in a last chunk of its own if include_usage is set.
std::vector<SseEvent> split_answer(Endpoint endpoint, const Json& answer, bool include_usage);

// A chunk of OpenAI's chat or completions that carries nothing but usage: for clients that asked
// for it. False for every event of the other endpoints.
bool is_usage_chunk(Endpoint endpoint, std::string_view data);

// problem_of() an answer that is an error under HTTP 200: worth passing on as the error it is. (A
// Responses answer whose status is "failed" is none: it says so itself.)
inline constexpr std::string_view kErrorProblem = "holds an error";
// Why a plain answer of HTTP 200 cannot be passed on as one ("has no array 'choices'"); empty: it
// can.
std::string problem_of(Endpoint endpoint, const Json& answer);

// What a plain answer says about its generation.
struct AnswerSummary {
  std::string model, fingerprint;
  std::string finish_reason;  // of the first choice, in the API's own words
  // The answer came to its natural end in every choice: the end of the text or a tool call. Not
  // whole: length stops, refusals (by a filter, or by the model in a member of its own), pauses,
  // answers without an end.
  bool whole = false;
  bool length = false;  // nothing but a token limit keeps it from being whole
  // All that the prompt has, cached or not: Anthropic counts cached ones apart, OpenAI with them.
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of the prompt, read from the provider's own cache
  // Of all that was generated, about. 0 where the answer has an end and says its tokens.
  std::uint64_t text_bytes = 0;
  std::vector<LoggedToken> tokens;  // from log-probabilities, where the answer has them
};
// Never fails: what an answer does not say stays empty.
AnswerSummary summarize(Endpoint endpoint, const Json& answer);

}  // namespace fixpoint
