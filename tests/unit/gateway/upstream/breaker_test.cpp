#include "gateway/upstream/breaker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace fixpoint {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Phase = CircuitBreaker::Phase;

class BreakerTest : public testing::Test {
 protected:
  Clock::time_point now_{seconds(1000)};
  CircuitBreaker breaker_{3, seconds(10), [this] { return now_; }};

  void fail(int times, CircuitBreaker& breaker) {
    for (int i = 0; i < times; ++i) {
      auto permit = breaker.allow();
      ASSERT_TRUE(permit);
      permit->failed();
    }
  }
};

TEST_F(BreakerTest, OpensAfterFailuresInARow) {
  fail(2, breaker_);
  breaker_.allow()->succeeded();
  fail(2, breaker_);
  EXPECT_EQ(breaker_.phase(), Phase::closed);
  EXPECT_TRUE(breaker_.would_allow());
  fail(1, breaker_);
  EXPECT_EQ(breaker_.phase(), Phase::open);
  EXPECT_FALSE(breaker_.would_allow());
  EXPECT_FALSE(breaker_.allow());
  EXPECT_EQ(breaker_.opens_in(), seconds(10));
}

TEST_F(BreakerTest, OneProbeAtATime) {
  fail(3, breaker_);
  now_ += seconds(10);
  EXPECT_TRUE(breaker_.would_allow());
  EXPECT_EQ(breaker_.opens_in(), seconds(0));
  auto probe = breaker_.allow();
  ASSERT_TRUE(probe);
  EXPECT_EQ(breaker_.phase(), Phase::half_open);
  EXPECT_FALSE(breaker_.would_allow());
  EXPECT_FALSE(breaker_.allow());
  probe->succeeded();
  EXPECT_EQ(breaker_.phase(), Phase::closed);
  fail(2, breaker_);
  EXPECT_EQ(breaker_.phase(), Phase::closed) << "the count began again";
}

TEST_F(BreakerTest, AFailedProbeOpensAgain) {
  fail(3, breaker_);
  now_ += seconds(10);
  breaker_.allow()->failed();
  EXPECT_EQ(breaker_.phase(), Phase::open);
  EXPECT_EQ(breaker_.opens_in(), seconds(10));
}

TEST_F(BreakerTest, AProbeWithoutVerdictGivesItsPlaceBack) {
  fail(3, breaker_);
  now_ += seconds(10);
  {
    const auto probe = breaker_.allow();
  }
  EXPECT_TRUE(breaker_.would_allow());
  EXPECT_EQ(breaker_.opens_in(), seconds(0));
  auto next = breaker_.allow();
  ASSERT_TRUE(next) << "at once";
  auto moved = std::move(*next);
  next.reset();
  EXPECT_FALSE(breaker_.would_allow()) << "what was moved from does nothing";
  moved.succeeded();
  EXPECT_EQ(breaker_.phase(), Phase::closed);
}

TEST_F(BreakerTest, ALongProbeKeepsNobodyOutForLongerThanACooldown) {
  fail(3, breaker_);
  now_ += seconds(10);
  auto first = breaker_.allow();
  now_ += seconds(4);
  EXPECT_FALSE(breaker_.allow());
  EXPECT_EQ(breaker_.opens_in(), seconds(6));
  now_ += seconds(6);
  EXPECT_TRUE(breaker_.would_allow());
  auto second = breaker_.allow();
  ASSERT_TRUE(second);
  EXPECT_FALSE(breaker_.allow());
  second.reset();  // without a verdict
  auto third = breaker_.allow();
  ASSERT_TRUE(third);
  first->succeeded();
  EXPECT_EQ(breaker_.phase(), Phase::closed) << "the first probe's verdict counts";
  for (int i = 0; i < 2; ++i) breaker_.allow()->failed();
  third->failed();
  EXPECT_EQ(breaker_.phase(), Phase::closed) << "the third one's came too late";
}

TEST_F(BreakerTest, TheFirstProbeThatFailsOpensAgain) {
  fail(3, breaker_);
  now_ += seconds(10);
  auto first = breaker_.allow();
  now_ += seconds(10);
  breaker_.allow()->failed();
  EXPECT_EQ(breaker_.phase(), Phase::open);
  now_ += seconds(3);
  first->succeeded();
  EXPECT_EQ(breaker_.phase(), Phase::open);
  EXPECT_EQ(breaker_.opens_in(), seconds(7));
}

TEST_F(BreakerTest, WithoutVerdictNothingCounts) {
  fail(2, breaker_);
  for (int i = 0; i < 10; ++i) breaker_.allow();
  EXPECT_EQ(breaker_.phase(), Phase::closed);
  fail(1, breaker_);
  EXPECT_EQ(breaker_.phase(), Phase::open) << "the row was not broken";
}

TEST_F(BreakerTest, TheUpstreamsOwnWait) {
  fail(2, breaker_);
  breaker_.allow()->failed(milliseconds(500));
  EXPECT_EQ(breaker_.opens_in(), milliseconds(500));
}

TEST_F(BreakerTest, VerdictsOfEarlierPhasesAreVoid) {
  std::vector<CircuitBreaker::Permit> late;
  for (int i = 0; i < 4; ++i) late.push_back(std::move(*breaker_.allow()));
  fail(3, breaker_);
  now_ += seconds(5);
  for (std::size_t i = 0; i < 3; ++i) late[i].failed();
  EXPECT_EQ(breaker_.opens_in(), seconds(5)) << "the cooldown does not begin again";
  late[3].succeeded();
  EXPECT_EQ(breaker_.phase(), Phase::open);
  auto other = breaker_.allow();
  EXPECT_FALSE(other);
}

TEST_F(BreakerTest, TheFirstVerdictCounts) {
  CircuitBreaker breaker(1, seconds(10), [this] { return now_; });
  auto permit = breaker.allow();
  permit->succeeded();
  permit->failed();
  EXPECT_EQ(breaker.phase(), Phase::closed);
}

TEST_F(BreakerTest, ZeroFailuresNeverOpens) {
  CircuitBreaker breaker(0, seconds(10), [this] { return now_; });
  fail(100, breaker);
  EXPECT_EQ(breaker.phase(), Phase::closed);
}

TEST_F(BreakerTest, APermitOutlivesItsBreaker) {
  std::optional<CircuitBreaker::Permit> permit;
  {
    CircuitBreaker breaker(1, seconds(10));
    permit = breaker.allow();
  }
  permit->failed();
}

// Under TSan: no race; in any case: never two probes in a cooldown.
TEST(BreakerThreads, OneProbeAtATime) {
  CircuitBreaker breaker(1, std::chrono::hours(1));
  std::atomic<int> probes{0};
  std::atomic<bool> two{false};
  breaker.allow()->failed(milliseconds(0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        auto permit = breaker.allow();  // never closed: each one let through is the probe
        if (!permit) continue;
        if (++probes > 1) two = true;
        --probes;
        if (i % 2 == 0) permit->failed(milliseconds(0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(two);
}

}  // namespace
}  // namespace fixpoint
