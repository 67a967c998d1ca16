// Writes an answer to one client, in the form that this client asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/entry.hpp"
#include "gateway/api/answer.hpp"
#include "gateway/api/exchange.hpp"
#include "gateway/api/plan.hpp"
#include "gateway/http/server.hpp"

namespace fixpoint {

// Used by one coroutine; everything that it is given outlives it.
class Delivery {
 public:
  Delivery(const Plan& plan, ResponseWriter& writer, Exchange& exchange, Headers headers);

  // A stored answer.
  Task<void> replay(const Entry& entry);
  // Everything that the reader's flight has, until it ends.
  Task<void> follow(AnswerFlight::Reader& reader, class Waiter& waiter);

 private:
  Task<bool> take(const AnswerEvent& event);  // true: the answer has ended
  Task<void> finish(const AnswerComplete& complete);
  Task<void> fail(const AnswerFailure& failure);
  Task<void> end_early();
  Task<void> send_plain(std::shared_ptr<const std::string> body);
  Task<void> send_stream(std::shared_ptr<const std::string> events);
  Task<void> replay_paced(const Entry& entry);
  Task<bool> flush();
  Task<void> end_stream(int status);
  void append(const SseEvent& event);
  void use_head(const AnswerHead& head);
  Response stream_head();
  Headers final_headers();
  void note_ids(const Headers& shown);

  const Plan& plan_;
  ResponseWriter& writer_;
  Exchange& exchange_;
  Headers headers_;
  std::string pending_;
  std::uint64_t events_ = 0;  // that came from the flight, or were replayed one by one
  bool stops_ = false;        // the server will cut the connection
};

}  // namespace fixpoint
