// The way of one request through upstreams: attempts, and the answer of the one that counts.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gateway/api/job.hpp"
#include "gateway/api/upstream_call.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/sse.hpp"

namespace fixpoint {

// A request on its way through upstreams: lives until the coroutine that run() starts is over, on
// one core. Internal to gateway/api.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(net::io_context& core, UpstreamWork work, std::shared_ptr<AnswerJob> job)
      : core_(core),
        work_(std::move(work)),
        job_(std::move(job)),
        progress_(core.get_executor()),
        pause_(core.get_executor()) {
    job_->gateway.relays.fetch_add(1);
  }
  ~Relay() { job_->gateway.relays.fetch_sub(1); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void start();

 private:
  // Why the last attempt gave no answer, and what may follow it.
  struct Failed {
    AnswerFailure failure;
    std::string reason;
    bool may_retry = false;      // here or at the next upstream
    bool may_fall_back = false;  // at the next upstream, also if not here
    std::optional<std::chrono::milliseconds>
        wait;  // before the next attempt; unset: not here again
  };

  Task<void> run();

  Upstream& upstream() const { return *work_.upstreams[at_]; }
  bool is_last() const { return at_ + 1 == work_.upstreams.size(); }

  // A fallback's answers have a key of their own, under which there may be one already. A recording
  // is of the request, whoever answers.
  Task<void> find_stored();

  // All attempts at one upstream. Afterwards the answer is over, or the next upstream may try.
  Task<void> try_upstream();

  // One call. Sets failed_ unless the answer is over.
  Task<void> attempt();

  // The breaker allows no call.
  void refuse_open();

  Task<void> call_upstream();

  // A status other than 200, with its body; also one that the body of a 200 means.
  void refused(int status, const std::string& body);

  // --- the answer of one call, in relay_answer.cpp
  Task<void> relay_plain(int status);
  Task<void> relay_stream();
  Task<bool> wait_for_readers();
  void take(SseEvent& event);
  // Once, before the first event.
  void publish_head();
  void tell_left_out(const Json& answer) const;

  // `text` empty: the answer's own JSON.
  void complete(std::string text, Json answer, SseEvent end);

  // A stream broke. Before its first event another attempt may follow.
  void stream_failed(const Error& error);

  // An error event of the upstream's.
  void stream_error(const SseEvent& event);

  // A call that was cancelled says nothing about the upstream.
  void judge(const Error& error);
  void estimate_usage(AnswerSummary& summary, std::uint64_t events) const;

  void set_failed(const Error& error);
  void set_failed(const ApiError& error, bool may_retry,
                  std::optional<std::chrono::milliseconds> wait);

  void end_failed();

  // The coroutine is over; whatever ended it, the waiters get an end.
  void ended(const std::exception_ptr& error);

  net::io_context& core_;
  const UpstreamWork work_;
  const std::shared_ptr<AnswerJob> job_;
  Waiter progress_;
  Timer pause_;
  net::cancellation_signal cancel_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::duration waited_{0};  // for the upstream
  std::size_t at_ = 0;         // in work_.upstreams
  Failed failed_;
  bool again_at_once_ = false;
  bool logprobs_refused_ = false;

  // Of the current attempt.
  Clock::time_point attempt_began_;
  Clock::duration readers_time_{0};  // that it waited for its readers
  std::optional<CircuitBreaker::Permit> permit_;
  Admission::Slot slot_;
  UpstreamCall call_;
  std::unique_ptr<UpstreamResponse> response_;
  std::unique_ptr<StreamAssembler> assembler_;
  SseParser parser_;
  std::size_t events_ = 0;
  bool sent_ = false;  // the upstream has the request, and has not refused it
  bool done_seen_ = false;
  bool stream_over_ = false;     // failed_ says why
  bool head_published_ = false;  // no other attempt may follow
  bool over_ = false;            // the job has its complete() or fail()
  bool abandoned_ = false;       // nobody waits any more
};

}  // namespace fixpoint
