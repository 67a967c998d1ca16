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

// One per upstream, shared by all cores. Thread-safe. First come, first served.
class Admission {
 private:
  struct State;
  struct Ticket;

 public:
  // The place of one running call, given to the next in the queue when it is destroyed. May outlive
  // the Admission and change threads.
  class Slot {
   public:
    Slot() = default;  // no limit: nothing to give back
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

  std::uint64_t running() const;  // 0 without a limit
  std::uint64_t queued() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fixpoint
