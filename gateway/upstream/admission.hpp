// At most so many calls to an upstream at a time, and a bounded queue before them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "gateway/http/asio.hpp"

namespace fixpoint {

struct AdmissionOptions {
  std::string upstream;                             // named in messages
  std::uint64_t max_concurrency = 0;                // over all cores; 0: no limit
  std::uint64_t max_queue = 256;                    // beyond: overloaded
  std::chrono::milliseconds queue_timeout{10'000};  // beyond: timeout
};

// One per upstream, shared by all cores. Thread-safe. First come, first served. A copy shares the
// places, the queue and the limits: the versions of an upstream that reloads make have one.
class Admission {
 private:
  struct State;
  struct Ticket;

 public:
  // The place of one running call, given to the next in the queue when it is destroyed. May outlive
  // the Admission and change threads.
  class Slot {
   public:
    Slot() = default;  // nothing to give back
    Slot(Slot&& other) noexcept = default;
    Slot& operator=(Slot&& other) noexcept;
    ~Slot();

   private:
    friend class Admission;
    explicit Slot(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };

  explicit Admission(AdmissionOptions options);

  // Waits for a place, at most until `deadline`. A caller that is cancelled leaves the queue, and
  // passes on a place that it was given meanwhile. Errors: overloaded (the queue is full), timeout.
  Task<Result<Slot>> acquire(Clock::time_point deadline = Clock::time_point::max());

  // For all copies. Who waits is let in as far as these allow, and keeps its own queue_timeout; the
  // calls that run beyond them end first.
  void set_limits(AdmissionOptions options);

  std::uint64_t running() const;  // counted without a limit, too: one may come
  std::uint64_t queued() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fixpoint
