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
      : executor_(executor), timer_(std::make_shared<Timer>(executor, Timer::time_point::max())) {}

  // May be called from any thread, also after the waiter is gone. The io_context must be alive.
  Wake wake() const {
    return [executor = executor_, weak = std::weak_ptr<Timer>(timer_)] {
      net::post(executor, [weak] {
        if (const auto timer = weak.lock()) timer->cancel();
      });
    };
  }

  Task<void> sleep() {
    error_code error;
    co_await timer_->async_wait(net::redirect_error(use_task, error));
    // After a cancellation of the coroutine the next co_await throws; a wake ends here.
  }

  // False: nothing woke it for that long.
  Task<bool> sleep_for(Clock::duration time) {
    error_code error;
    timer_->expires_after(time);
    co_await timer_->async_wait(net::redirect_error(use_task, error));
    timer_->expires_at(Timer::time_point::max());
    co_return error.failed();
  }

 private:
  Executor executor_;
  std::shared_ptr<Timer> timer_;
};

}  // namespace fixpoint
