#include "gateway/upstream/key_ring.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace fixpoint {
namespace {

using std::chrono::seconds;

class KeyRingTest : public testing::Test {
 protected:
  Clock::time_point now_{seconds(1000)};
  KeyRing ring_{{"a", "b", "c"}, [this] { return now_; }};
};

TEST_F(KeyRingTest, OneKeyUntilItIsLimited) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ring_.next().index, 0u);
  ring_.rate_limited(0, now_ + seconds(10));
  EXPECT_EQ(ring_.resting(), 1u);
  const KeyRing::Key next = ring_.next();
  EXPECT_EQ(next.index, 1u);
  EXPECT_EQ(*next.text, "b");
  EXPECT_LE(next.resting_until, now_);
  now_ += seconds(11);
  EXPECT_EQ(ring_.next().index, 1u) << "stays while it works";
  EXPECT_EQ(ring_.resting(), 0u);
}

TEST_F(KeyRingTest, TwoAnswersToOneKeySkipNobody) {
  ring_.rate_limited(0, now_ + seconds(10));
  EXPECT_EQ(ring_.next().index, 1u);
  ring_.rate_limited(0, now_ + seconds(5));
  EXPECT_EQ(ring_.next().index, 1u);
  ring_.rate_limited(1, now_ + seconds(10));
  ring_.rate_limited(2, now_ + seconds(10));
  now_ += seconds(6);
  EXPECT_GT(ring_.next().resting_until, now_) << "the shorter rest did not replace the longer";
}

TEST_F(KeyRingTest, AllRest) {
  ring_.rate_limited(0, now_ + seconds(30));
  ring_.rate_limited(1, now_ + seconds(10));
  ring_.rate_limited(2, now_ + seconds(20));
  const KeyRing::Key soonest = ring_.next();
  EXPECT_EQ(soonest.index, 1u);
  EXPECT_EQ(soonest.resting_until, now_ + seconds(10));
  now_ += seconds(10);
  EXPECT_EQ(ring_.next().index, 1u);
  EXPECT_LE(ring_.next().resting_until, now_);
}

TEST(KeyRing, WithoutKeysIsABug) {
  EXPECT_THROW(KeyRing({}), std::logic_error);
}

TEST(KeyRing, ManyThreads) {
  KeyRing ring({"a", "b"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const KeyRing::Key key = ring.next();
        EXPECT_EQ(*key.text, key.index == 0 ? "a" : "b");
        ring.rate_limited(key.index, Clock::now() + std::chrono::microseconds(50));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace fixpoint
