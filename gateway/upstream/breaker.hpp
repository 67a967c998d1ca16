// Circuit breaker: an upstream that keeps failing gets no calls for a while.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "gateway/http/asio.hpp"

namespace fixpoint {

// One per upstream, shared by all cores. Thread-safe.
//
// closed: calls pass; `failures` failed ones in a row open it. open: no calls until the cooldown is
// over. half_open: a call probes the upstream; its success closes the breaker, its failure opens it
// again. A call may last: after each further cooldown without a verdict another one may probe, and
// the first verdict of them all counts. Calls that were let through before the last change of state
// no longer count: they say nothing about the upstream as it is now.
class CircuitBreaker {
 private:
  struct State;

 public:
  enum class Phase { closed, open, half_open };
  using Now = std::function<Clock::time_point()>;

  // Leave for one call. Without a verdict (the client left, the call was never made) its destructor
  // gives a probe's place back and counts nothing. May outlive the breaker and change threads.
  class Permit {
   public:
    Permit(Permit&& other) noexcept = default;
    Permit& operator=(Permit&& other) noexcept;
    ~Permit();
    // The first verdict counts, later ones do nothing.
    void succeeded();
    // The upstream answers, though the call may last: a probe that is alive closes the breaker. A
    // verdict still follows.
    void alive();
    // `open_for`: what the upstream asked for (Retry-After of a 503), instead of the cooldown.
    void failed(std::optional<std::chrono::milliseconds> open_for = std::nullopt);

   private:
    friend class CircuitBreaker;
    Permit(std::shared_ptr<State> state, std::uint64_t epoch);
    std::shared_ptr<State> state_;  // null: the verdict is given
    std::uint64_t epoch_;
  };

  // failures 0: never opens.
  CircuitBreaker(std::uint64_t failures, std::chrono::milliseconds cooldown, Now now = Clock::now);

  // Unset: no call may be made now.
  std::optional<Permit> allow();
  // Whether allow() would let a call through; takes nothing. For the order of attempts.
  bool would_allow() const;
  Phase phase() const;  // for metrics; open stays open until a call probes
  // Until the next probe is allowed; 0: now. For a Retry-After when every upstream is open.
  std::chrono::milliseconds opens_in() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fixpoint
