// An answer on its way from whatever makes it (an upstream, the local engine) to whoever waits for
// it. Everything here is in the form of the endpoint that the client called.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cache/single_flight.hpp"
#include "gateway/http/sse.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

// Headers for the client that are known when the answer begins: those of an upstream that its
// clients read, and the gateway's own about the attempts. First, if at all.
struct AnswerHead {
  Headers headers;
};
// One event of a streamed answer. The end marker is not among them: it comes with AnswerComplete.
using AnswerChunk = SseEvent;
// The last event of a success.
struct AnswerComplete {
  // The whole answer as a plain response's JSON. For streamed answers it is assembled from the
  // chunks, so that every waiter gets the form that it asked for. Null: they could not be put
  // together for certain, and are the answer's only form.
  std::shared_ptr<const std::string> body;
  std::vector<SseEvent> end;         // what a stream that has shown the chunks still has to send
  std::string generation;            // token log id; empty: not logged
  std::string model, finish_reason;  // as the maker says
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cost_microdollars = -1;  // negative: no price is known
};
// The last event of a failure; nothing that came before it may be taken for a whole answer.
struct AnswerFailure {
  int status = 502;
  Headers headers;
  std::string body;  // in the shape of the client's API
  // What a stream that has begun says, where that is not made from the body. Last in this answer.
  std::optional<SseEvent> event = {};
};

using AnswerEvent = std::variant<AnswerHead, AnswerChunk, AnswerComplete, AnswerFailure>;
using AnswerFlight = Flight<AnswerEvent>;
using AnswerFlights = SingleFlight<AnswerEvent>;

}  // namespace fixpoint
