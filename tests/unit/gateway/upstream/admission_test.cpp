#include "gateway/upstream/admission.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/http/server.hpp"
#include "tests/support/http_fixture.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;
using Slot = Admission::Slot;

AdmissionOptions limits(std::uint64_t concurrency, std::uint64_t queue,
                        milliseconds timeout = milliseconds(10'000)) {
  return {"openai", concurrency, queue, timeout};
}

// One caller; keeps its place until it is told to leave.
struct Caller {
  std::optional<Result<Slot>> got;
  bool ended = false;
  net::cancellation_signal cancel;

  bool has_place() const { return got && got->has_value(); }
};

class AdmissionTest : public testing::Test {
 protected:
  net::io_context context_{1};
  int order_ = 0;

  static Task<void> call(Admission& admission, Caller& caller) {
    Result<Slot> slot = co_await admission.acquire();
    caller.got.emplace(std::move(slot));
  }
  void start(Admission& admission, Caller& caller) {
    auto done = [&caller](std::exception_ptr) { caller.ended = true; };
    net::co_spawn(context_.get_executor(), call(admission, caller),
                  net::bind_cancellation_slot(caller.cancel.slot(), done));
    settle();
  }
  void settle() {
    context_.restart();
    context_.poll();
  }
};

TEST_F(AdmissionTest, WithoutALimit) {
  Admission admission(limits(0, 0));
  std::vector<Caller> callers(100);
  for (Caller& caller : callers) {
    start(admission, caller);
    EXPECT_TRUE(caller.has_place());
  }
  EXPECT_EQ(admission.running(), 100u);
  callers.clear();
  EXPECT_EQ(admission.running(), 0u);
}

TEST_F(AdmissionTest, NewLimitsAreForThoseWhoRunAndWait) {
  Admission admission(limits(1, 10));
  std::vector<Caller> callers(5);
  for (Caller& caller : callers) start(admission, caller);
  Admission next = admission;
  EXPECT_EQ(next.queued(), 4u);
  next.set_limits(limits(3, 2));
  settle();
  EXPECT_TRUE(callers[1].has_place() && callers[2].has_place());
  EXPECT_FALSE(callers[3].got);
  EXPECT_EQ(admission.running(), 3u);
  Caller refused;
  start(next, refused);
  EXPECT_EQ(refused.got->error().code, ErrorCode::overloaded);

  next.set_limits(limits(1, 2));
  for (std::size_t i = 0; i < 2; ++i) callers[i].got.reset();
  settle();
  EXPECT_FALSE(callers[3].got) << "one still runs";
  callers[2].got.reset();
  settle();
  EXPECT_TRUE(callers[3].has_place());
  EXPECT_FALSE(callers[4].got);
  next.set_limits(limits(0, 0));
  settle();
  EXPECT_TRUE(callers[4].has_place());
  callers.clear();
  EXPECT_EQ(next.running(), 0u);
}

TEST_F(AdmissionTest, ALimitCountsTheCallsThatRanBeforeIt) {
  Admission admission(limits(0, 10));
  std::vector<Caller> callers(3);
  for (std::size_t i = 0; i < 2; ++i) start(admission, callers[i]);
  admission.set_limits(limits(2, 10));
  start(admission, callers[2]);
  EXPECT_FALSE(callers[2].got);
  callers[0].got.reset();
  settle();
  EXPECT_TRUE(callers[2].has_place());
}

TEST_F(AdmissionTest, FirstComeFirstServed) {
  Admission admission(limits(2, 10));
  std::vector<Caller> callers(5);
  for (Caller& caller : callers) start(admission, caller);
  EXPECT_TRUE(callers[0].has_place() && callers[1].has_place());
  EXPECT_EQ(admission.running(), 2u);
  EXPECT_EQ(admission.queued(), 3u);
  for (std::size_t next = 2; next < 5; ++next) {
    EXPECT_FALSE(callers[next].got);
    callers[next - 2].got.reset();
    settle();
    EXPECT_TRUE(callers[next].has_place());
    EXPECT_EQ(admission.running(), 2u);
    EXPECT_EQ(admission.queued(), 4u - next);
  }
  callers.clear();
  EXPECT_EQ(admission.running(), 0u);
}

TEST_F(AdmissionTest, AFullQueueIsOverloaded) {
  Admission admission(limits(1, 1));
  std::vector<Caller> callers(3);
  for (Caller& caller : callers) start(admission, caller);
  ASSERT_TRUE(callers[2].got);
  EXPECT_EQ(callers[2].got->error().code, ErrorCode::overloaded);
  EXPECT_NE(callers[2].got->error().message.find("openai"), std::string::npos);
  callers[0].got.reset();
  settle();
  EXPECT_TRUE(callers[1].has_place());
}

TEST_F(AdmissionTest, ALongWaitIsATimeout) {
  Admission admission(limits(1, 10, milliseconds(20)));
  std::vector<Caller> callers(2);
  for (Caller& caller : callers) start(admission, caller);
  context_.restart();
  context_.run();
  ASSERT_TRUE(callers[1].got);
  EXPECT_EQ(callers[1].got->error().code, ErrorCode::timeout);
  EXPECT_EQ(admission.queued(), 0u);
  callers[0].got.reset();
  EXPECT_EQ(admission.running(), 0u);
}

TEST_F(AdmissionTest, TheCallersOwnDeadline) {
  Admission admission(limits(1, 10));
  Caller first;
  start(admission, first);
  const auto soon = Clock::now() + milliseconds(20);
  const Result<Slot> slot = test::run(context_, admission.acquire(soon));
  ASSERT_FALSE(slot);
  EXPECT_EQ(slot.error().code, ErrorCode::timeout);
}

TEST_F(AdmissionTest, ACancelledCallerLeavesTheQueue) {
  Admission admission(limits(1, 10));
  std::vector<Caller> callers(3);
  for (Caller& caller : callers) start(admission, caller);
  callers[1].cancel.emit(net::cancellation_type::terminal);
  settle();
  EXPECT_TRUE(callers[1].ended);
  EXPECT_FALSE(callers[1].got);
  EXPECT_EQ(admission.queued(), 1u);
  callers[0].got.reset();
  settle();
  EXPECT_TRUE(callers[2].has_place());
}

TEST_F(AdmissionTest, APlaceGivenToACancelledCallerIsPassedOn) {
  Admission admission(limits(1, 10));
  std::vector<Caller> callers(3);
  for (Caller& caller : callers) start(admission, caller);
  callers[0].got.reset();  // the place is callers[1]'s, which does not know it yet
  callers[1].cancel.emit(net::cancellation_type::terminal);
  settle();
  EXPECT_TRUE(callers[1].ended);
  settle();
  // Either it left before it took the place, or it took it.
  callers[1].got.reset();
  settle();
  EXPECT_TRUE(callers[2].has_place());
  callers[2].got.reset();
  EXPECT_EQ(admission.running(), 0u);
}

TEST_F(AdmissionTest, APlaceGivenToACallerThatNeverWakesIsPassedOn) {
  Admission admission(limits(1, 10));
  Caller first, sleeper, last;
  start(admission, first);
  auto core = std::make_unique<net::io_context>(1);
  net::co_spawn(core->get_executor(), call(admission, sleeper), [](std::exception_ptr) {});
  core->poll();
  start(admission, last);
  EXPECT_EQ(admission.queued(), 2u);
  first.got.reset();  // to the sleeper, whose core ends
  settle();
  EXPECT_FALSE(last.got);
  core.reset();
  settle();
  EXPECT_TRUE(last.has_place());
}

TEST_F(AdmissionTest, SlotsOutliveTheAdmission) {
  auto admission = std::make_unique<Admission>(limits(1, 10));
  std::vector<Caller> callers(2);
  for (Caller& caller : callers) start(*admission, caller);
  admission.reset();
  callers[0].got.reset();
  settle();
  EXPECT_TRUE(callers[1].has_place());
}

Task<void> work(Admission& admission, std::atomic<int>& inside, std::atomic<int>& most,
                std::atomic<int>& served) {
  const Executor executor = co_await net::this_coro::executor;
  Timer timer(executor);
  for (int i = 0; i < 20; ++i) {
    const Result<Slot> slot = co_await admission.acquire();
    if (!slot) continue;
    const int now = ++inside;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    timer.expires_after(std::chrono::microseconds(200));
    error_code ec;
    co_await timer.async_wait(net::redirect_error(use_task, ec));
    --inside;
    ++served;
  }
}

TEST(AdmissionThreads, TheLimitHoldsOverAllCores) {
  Cores cores(3);
  cores.start();
  Admission admission(limits(4, 1000));
  std::atomic<int> inside{0}, most{0}, served{0}, ended{0};
  for (std::size_t i = 0; i < 30; ++i) {
    net::co_spawn(cores.context(i % 3).get_executor(), work(admission, inside, most, served),
                  [&](std::exception_ptr) { ++ended; });
  }
  EXPECT_TRUE(test::eventually([&] { return ended == 30; }));
  EXPECT_EQ(served, 600);
  EXPECT_EQ(most, 4);
  EXPECT_EQ(admission.running(), 0u);
  EXPECT_EQ(admission.queued(), 0u);
  cores.stop();
}

}  // namespace
}  // namespace fixpoint
