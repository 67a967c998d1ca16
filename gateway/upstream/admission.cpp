#include "gateway/upstream/admission.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <list>
#include <mutex>
#include <utility>

namespace fixpoint {

// A caller that waits: its coroutine sleeps on the timer, on its own core. Lives on that
// coroutine's frame, so its destructor also runs when the coroutine is cancelled.
struct Admission::Ticket {
  Ticket(State& s, const Executor& e, Clock::time_point deadline)
      : state(s), executor(e), timer(std::make_shared<Timer>(e, deadline)) {}
  ~Ticket();
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  State& state;
  const Executor executor;
  const std::shared_ptr<Timer> timer;
  // Guarded by State::mutex.
  bool waits = false;
  bool granted = false;  // has a place, until a Slot takes it over
};

// Invariant: nobody waits while a place is free.
struct Admission::State {
  explicit State(AdmissionOptions o) : options(std::move(o)) {}

  bool has_place() const {
    return options.max_concurrency == 0 || running < options.max_concurrency;
  }

  bool try_enter() {
    const std::lock_guard lock(mutex);
    if (!has_place()) return false;
    ++running;
    return true;
  }

  AdmissionOptions limits() const {
    const std::lock_guard lock(mutex);
    return options;
  }

  // The ticket gets a place or waits for one. False: the queue is full.
  bool enter(Ticket& ticket) {
    const std::lock_guard lock(mutex);
    if (has_place()) {
      ++running;
      ticket.granted = true;
      return true;
    }
    if (waiting.size() >= options.max_queue) return false;
    waiting.push_back(&ticket);
    ticket.waits = true;
    return true;
  }

  bool take(Ticket& ticket) {
    const std::lock_guard lock(mutex);
    return std::exchange(ticket.granted, false);
  }

  void release() {
    const std::lock_guard lock(mutex);
    release_locked();
  }

  void release_locked() {
    --running;
    fill_locked();
  }

  // Free places go to those that wait longest. The wake-up is posted under the lock: the ticket
  // takes it before it goes.
  void fill_locked() {
    while (!waiting.empty() && has_place()) {
      Ticket& next = *waiting.front();
      waiting.pop_front();
      ++running;
      next.waits = false;
      next.granted = true;
      net::post(next.executor, [weak = std::weak_ptr<Timer>(next.timer)] {
        if (const auto timer = weak.lock()) timer->cancel();
      });
    }
  }

  mutable std::mutex mutex;  // the rest
  AdmissionOptions options;
  std::uint64_t running = 0;
  std::list<Ticket*> waiting;  // oldest first; at most max_queue
};

Admission::Ticket::~Ticket() {
  const std::lock_guard lock(state.mutex);
  if (waits) state.waiting.remove(this);
  if (granted) state.release_locked();
}

Admission::Slot::Slot(std::shared_ptr<State> state) : state_(std::move(state)) {}

Admission::Slot& Admission::Slot::operator=(Slot&& other) noexcept {
  Slot taken(std::move(other));
  std::swap(state_, taken.state_);
  return *this;
}

Admission::Slot::~Slot() {
  if (state_) state_->release();
}

Admission::Admission(AdmissionOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}

Task<Result<Admission::Slot>> Admission::acquire(Clock::time_point deadline) {
  const std::shared_ptr<State> state = state_;
  if (state->try_enter()) co_return Slot(state);
  const AdmissionOptions options = state->limits();
  const Executor executor = co_await net::this_coro::executor;
  Ticket ticket(*state, executor, std::min(deadline, Clock::now() + options.queue_timeout));
  if (!state->enter(ticket)) {
    co_return fail(ErrorCode::overloaded, "upstream " + options.upstream +
                                              " has its max_concurrency of " +
                                              std::to_string(options.max_concurrency) +
                                              " calls running and its max_queue of " +
                                              std::to_string(options.max_queue) + " waiting");
  }
  bool expired = false;
  while (!state->take(ticket)) {
    if (expired) {
      co_return fail(ErrorCode::timeout, "no place among the max_concurrency of " +
                                             std::to_string(options.max_concurrency) +
                                             " calls to upstream " + options.upstream +
                                             " became free in time");
    }
    // A wake-up cannot be lost: it is posted to this core, and so runs after the wait has begun.
    error_code ec;
    co_await ticket.timer->async_wait(net::redirect_error(use_task, ec));
    expired = !ec;
  }
  co_return Slot(state);
}

void Admission::set_limits(AdmissionOptions options) {
  const std::lock_guard lock(state_->mutex);
  state_->options = std::move(options);
  state_->fill_locked();
}

std::uint64_t Admission::running() const {
  const std::lock_guard lock(state_->mutex);
  return state_->running;
}

std::uint64_t Admission::queued() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting.size();
}

}  // namespace fixpoint
