#include "gateway/http/deadline.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/http/asio.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

TEST(Deadline, FiresOnceAndNotEarly) {
  net::io_context context{1};
  int fired = 0;
  Deadline deadline(context, [&] { ++fired; });
  const auto begin = Clock::now();
  deadline.expire_after(milliseconds(150));
  context.run();  // returns because nothing else is armed
  EXPECT_EQ(fired, 1);
  EXPECT_GE(Clock::now() - begin, milliseconds(150));
}

TEST(Deadline, MovesBothWays) {
  net::io_context context{1};
  std::vector<int> order;
  Deadline a(context, [&] { order.push_back(1); });
  Deadline b(context, [&] { order.push_back(2); });
  Deadline c(context, [&] { order.push_back(3); });
  a.expire_after(milliseconds(100));
  b.expire_after(milliseconds(100000));
  c.expire_after(milliseconds(300));
  a.expire_after(milliseconds(600));  // later
  b.expire_after(milliseconds(100));  // earlier
  const auto begin = Clock::now();
  context.run();
  EXPECT_EQ(order, (std::vector<int>{2, 3, 1}));
  EXPECT_GE(Clock::now() - begin, milliseconds(550));
}

TEST(Deadline, CancelledOnesNeverFire) {
  net::io_context context{1};
  int fired = 0;
  std::optional<Deadline> doomed;
  Deadline cancelled(context, [&] { ++fired; });
  // Both are due in the same turn as the one whose callback ends them.
  Deadline first(context, [&] {
    cancelled.cancel();
    doomed.reset();
  });
  first.expire_after(milliseconds(100));
  cancelled.expire_after(milliseconds(100));
  doomed.emplace(context, [&] { ++fired; });
  doomed->expire_after(milliseconds(100));
  context.run();
  EXPECT_EQ(fired, 0);
  cancelled.cancel();  // twice does nothing
}

TEST(Deadline, ACallbackMayArmAgain) {
  net::io_context context{1};
  int fired = 0;
  std::unique_ptr<Deadline> deadline;
  deadline = std::make_unique<Deadline>(context, [&] {
    if (++fired < 3) deadline->expire_after(milliseconds(0));
  });
  deadline->expire_after(milliseconds(0));
  context.run();
  EXPECT_EQ(fired, 3);
}

TEST(Deadline, AnArmedOneMayOutliveTheLoop) {
  net::io_context context{1};
  int fired = 0;
  Deadline deadline(context, [&] { ++fired; });
  deadline.expire_after(milliseconds(60000));
  context.run_for(milliseconds(10));
  EXPECT_EQ(fired, 0);
}

}  // namespace
}  // namespace fixpoint
