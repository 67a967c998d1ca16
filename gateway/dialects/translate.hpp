// From one API to another: requests on their way to whoever makes the answer, answers on their way
// back. Whatever has no counterpart is refused by name, or, where leaving it out changes nothing
// that the client could see in the answer's meaning, left out and announced.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "gateway/dialects/answer_form.hpp"
#include "gateway/dialects/endpoint.hpp"

namespace fixpoint {

// Pairs: chat_completions -> messages, messages -> chat_completions, responses -> chat_completions,
// responses -> messages (through chat), count_tokens has none.
bool can_translate(Endpoint from, Endpoint to);

struct TranslationError {
  std::string message;  // names the member
  std::string param;    // "messages[2].content[0].type"
  std::string code;     // "unsupported_parameter"
};
struct TranslatedRequest {
  Json body;
  // Members left out, for the header x-fixpoint-dropped: "messages[].name", each once.
  std::vector<std::string> dropped;
};
// A request's body for another endpoint. Precondition: can_translate(from, to). Members that have
// no counterpart are refused by name, unknown ones too; those that change nothing in the answer's
// meaning (labels, cache hints, a seed where there is none, how hard to think) are announced. A
// chat request without a limit gets Anthropic's required max_tokens as 4096. A null counts as
// absent.
tl::expected<TranslatedRequest, TranslationError> translate_request(Endpoint from, Endpoint to,
                                                                    const Json& body);

// What is said of a member of the chat request that a client's became, said of the client's own: of
// a Responses request "'verbosity' is ..." becomes "'text.verbosity' is ...".
void name_client_member(Endpoint client, std::string& member, std::string& message);

// Answers on their way back to the client, one instance per answer. Not thread-safe.
class AnswerTranslator {
 public:
  virtual ~AnswerTranslator() = default;
  // The client's events for one event of the maker, the end marker included; may be none. The
  // client gets its usage chunk whether or not it asked (is_usage_chunk() takes it out later).
  // Errors: protocol, also for the maker's error events (its assembler tells those first) and for
  // an end without a reason to stop; nothing may be sent after one but error_event().
  virtual Result<std::vector<SseEvent>> event(const SseEvent& event) = 0;
  // The client's plain answer for the maker's.
  virtual Result<Json> plain(const Json& answer) = 0;
};
// `client` is the endpoint that the client called, `maker` the one that was called for it;
// `request` is the client's body (a Responses answer echoes parts of it).
std::unique_ptr<AnswerTranslator> make_translator(Endpoint client, Endpoint maker,
                                                  const Json& request);

// An error in the API's own shape. OpenAI: {"error": {message, type, param, code}}; Anthropic:
// {"type": "error", "error": {type, message, "details": {"error_code"}}, "request_id"}, the details
// only where there is a code, its type from the status: 401
// authentication_error, 402 billing_error, 403 permission_error, 404 not_found_error, 413
// request_too_large, 429 rate_limit_error, 504 timeout_error, 529 overloaded_error, else
// invalid_request_error below 500 and api_error from there on. Empty type, code or param: chosen
// from the status, null, null.
std::string error_body(Api api, int status, std::string_view message, std::string_view type,
                       std::string_view code, std::string_view param, std::string_view request_id);
// An upstream's error body (of either API, or no JSON at all) in the client's shape; one that has
// it already comes back byte for byte.
std::string translate_error(Api client, int status, const std::string& body,
                            std::string_view request_id);
// The status, from 400 to 599, that an error body of either API means which came under another one,
// as in a stream: its numeric code, else what the API's own name for the error stands for. 0: it
// does not say.
int error_status(const std::string& body);
// The event with which a stream of this endpoint reports that it failed, from an error body in the
// client's shape: a data line with {"error": ...} for OpenAI's chat and completions; `error` for
// Anthropic; `error` with {"type": "error", "code", "message", "param", "sequence_number"} for
// Responses.
SseEvent error_event(Endpoint endpoint, const std::string& error_body, std::uint64_t sequence);

}  // namespace fixpoint
