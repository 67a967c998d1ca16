// Lets a coroutine sleep until another thread wakes it.
#pragma once

#include <boost/asio/post.hpp>
#include <memory>

#include "cache/single_flight.hpp"
#include "gateway/http/asio.hpp"

namespace fixpoint {

// Used by one coroutine on one core. A wake that comes while it is not sleeping is lost, so look
// for news before sleep() without a suspension in between: wakes arrive on the sleeper's own core,
// and so cannot fall into the gap.
class Waiter {
 public:
  explicit Waiter(const Executor& executor)
      : timer_(executor, Timer::time_point::max()),
        bell_(std::make_shared<Bell>(executor, timer_)) {}
  ~Waiter() { bell_->timer = nullptr; }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // May be rung from any thread, also after the waiter is gone. The io_context must be alive.
  SleeperPtr sleeper() const { return bell_; }

  Task<void> sleep() {
    error_code error;
    co_await timer_.async_wait(net::redirect_error(use_task, error));
    // After a cancellation of the coroutine the next co_await throws; a wake ends here.
  }

  // False: nothing woke it for that long.
  Task<bool> sleep_for(Clock::duration time) {
    error_code error;
    timer_.expires_after(time);
    co_await timer_.async_wait(net::redirect_error(use_task, error));
    timer_.expires_at(Timer::time_point::max());
    co_return error.failed();
  }

 private:
  struct Bell final : Sleeper, std::enable_shared_from_this<Bell> {
    Bell(const Executor& e, Timer& t) : executor(e), timer(&t) {}
    void wake() override {
      net::post(executor, [self = shared_from_this()] {
        if (self->timer != nullptr) self->timer->cancel();
      });
    }
    const Executor executor;
    Timer* timer;  // touched on the core only; null: the waiter is gone
  };

  Timer timer_;
  std::shared_ptr<Bell> bell_;
};

}  // namespace fixpoint
