// An answer on its way from whatever makes it (an upstream, the local engine) to whoever waits for
// it.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "cache/single_flight.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

enum class Endpoint { chat_completions, completions };
std::string_view endpoint_name(Endpoint endpoint);  // "chat.completions", "completions"

// Response headers of an upstream that its clients read; first, if at all.
struct AnswerHead {
  Headers headers;
};
// One chunk of a streamed answer: the JSON of one `data:` line.
struct AnswerChunk {
  std::string data;
};
// The last event of a success: the whole answer as a plain response's JSON. For streamed answers it
// is assembled from the chunks, so that every waiter gets the form that it asked for.
struct AnswerComplete {
  std::shared_ptr<const std::string> body;
  std::string generation;  // token log id
};
// The last event of a failure; nothing that came before it may be taken for a whole answer.
struct AnswerFailure {
  int status = 502;
  Headers headers;
  std::string body;  // {"error": ...}, as the upstream sent it or of our own making
};

using AnswerEvent = std::variant<AnswerHead, AnswerChunk, AnswerComplete, AnswerFailure>;
using AnswerFlight = Flight<AnswerEvent>;
using AnswerFlights = SingleFlight<AnswerEvent>;

AnswerFailure to_failure(const ApiError& error);

}  // namespace fixpoint
