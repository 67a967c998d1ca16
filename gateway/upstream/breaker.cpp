#include "gateway/upstream/breaker.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace fixpoint {

using std::chrono::milliseconds;

struct CircuitBreaker::State {
  State(std::uint64_t f, milliseconds c, Now n) : failures(f), cooldown(c), now(std::move(n)) {}

  // Permits of earlier epochs are void from here on.
  void enter(Phase next) {
    phase = next;
    ++epoch;
    in_a_row = 0;
  }
  void open(milliseconds time) {
    enter(Phase::open);
    until = now() + time;
  }

  const std::uint64_t failures;
  const milliseconds cooldown;
  const Now now;
  std::mutex mutex;  // the rest
  Phase phase = Phase::closed;
  std::uint64_t epoch = 0;
  std::uint64_t in_a_row = 0;
  Clock::time_point until{};  // unless closed: a probe is allowed from then on
};

CircuitBreaker::CircuitBreaker(std::uint64_t failures, milliseconds cooldown, Now now)
    : state_(std::make_shared<State>(failures, cooldown, std::move(now))) {}

std::optional<CircuitBreaker::Permit> CircuitBreaker::allow() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.phase != Phase::closed) {
    const auto now = state.now();
    if (now < state.until) return std::nullopt;
    if (state.phase == Phase::open) state.enter(Phase::half_open);
    state.until = now + state.cooldown;  // this call is a probe, which may take its time
  }
  return Permit(state_, state.epoch);
}

bool CircuitBreaker::would_allow() const {
  const std::lock_guard lock(state_->mutex);
  return state_->phase == Phase::closed || state_->now() >= state_->until;
}

CircuitBreaker::Phase CircuitBreaker::phase() const {
  const std::lock_guard lock(state_->mutex);
  return state_->phase;
}

milliseconds CircuitBreaker::opens_in() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase == Phase::closed) return milliseconds(0);
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(state_->until - state_->now()));
}

CircuitBreaker::Permit::Permit(std::shared_ptr<State> state, std::uint64_t epoch)
    : state_(std::move(state)), epoch_(epoch) {}

CircuitBreaker::Permit& CircuitBreaker::Permit::operator=(Permit&& other) noexcept {
  Permit taken(std::move(other));
  std::swap(state_, taken.state_);
  std::swap(epoch_, taken.epoch_);
  return *this;
}

CircuitBreaker::Permit::~Permit() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  // A probe that ended without a verdict: the next call may probe at once.
  if (state_->phase == Phase::half_open && state_->epoch == epoch_) state_->until = state_->now();
}

void CircuitBreaker::Permit::succeeded() {
  const std::shared_ptr<State> state = std::exchange(state_, nullptr);
  if (!state) return;
  const std::lock_guard lock(state->mutex);
  if (state->epoch != epoch_) return;
  if (state->phase == Phase::half_open) {
    state->enter(Phase::closed);
  } else {
    state->in_a_row = 0;
  }
}

void CircuitBreaker::Permit::alive() {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->epoch != epoch_ || state_->phase != Phase::half_open) return;
  state_->enter(Phase::closed);
  epoch_ = state_->epoch;
}

void CircuitBreaker::Permit::failed(std::optional<milliseconds> open_for) {
  const std::shared_ptr<State> state = std::exchange(state_, nullptr);
  if (!state) return;
  const std::lock_guard lock(state->mutex);
  if (state->epoch != epoch_) return;
  const bool probe = state->phase == Phase::half_open;
  ++state->in_a_row;
  if (probe || (state->failures != 0 && state->in_a_row >= state->failures)) {
    state->open(open_for.value_or(state->cooldown));
  }
}

}  // namespace fixpoint
