#include "gateway/tenants/rate_bucket.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "gateway/tenants/api_key.hpp"

namespace fixpoint {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kStart = 1'800'000'000 * kSecond;

// Admits one if there is room.
bool take(RateBucket& bucket, std::uint64_t limit, std::int64_t now) {
  bucket.drain(limit, now);
  if (!bucket.has_room(limit)) return false;
  bucket.add(limit, 1);
  return true;
}

int take_all(RateBucket& bucket, std::uint64_t limit, std::int64_t now) {
  int taken = 0;
  while (take(bucket, limit, now)) ++taken;
  return taken;
}

TEST(RateBucket, AMinutesLimitAtOnceThenBitByBit) {
  RateBucket bucket(1);
  EXPECT_EQ(take_all(bucket, 60, kStart), 60);
  EXPECT_EQ(bucket.wait_us(60), kSecond);
  EXPECT_EQ(bucket.reset_us(60), kMinute);
  EXPECT_FALSE(take(bucket, 60, kStart + kSecond - 1));
  EXPECT_EQ(bucket.wait_us(60), 1);
  EXPECT_TRUE(take(bucket, 60, kStart + kSecond));
  EXPECT_FALSE(take(bucket, 60, kStart + kSecond));
  EXPECT_EQ(take_all(bucket, 60, kStart + kSecond + kMinute), 60);
}

TEST(RateBucket, NothingIsLostBetweenTimes) {
  // 7 per minute divides no power of ten: looking often must give as much as looking once.
  RateBucket often(1), once(1);
  EXPECT_EQ(take_all(often, 7, kStart), 7);
  EXPECT_EQ(take_all(once, 7, kStart), 7);
  for (std::int64_t now = kStart; now <= kStart + 30 * kSecond; now += 997) often.drain(7, now);
  often.drain(7, kStart + 30 * kSecond);
  once.drain(7, kStart + 30 * kSecond);
  EXPECT_EQ(often.reset_us(7), once.reset_us(7));
  EXPECT_EQ(often.remaining(7), 3U);
}

TEST(RateBucket, WhatGoesBeyondTheLimitIsPaidBack) {
  RateBucket bucket(60);
  bucket.drain(100, kStart);
  bucket.add(100, 250);
  EXPECT_EQ(bucket.remaining(100), 0U);
  EXPECT_FALSE(bucket.has_room(100));
  // 151 have to drain before there is room for one.
  EXPECT_EQ(bucket.wait_us(100), 151 * kMinute / 100);
  bucket.drain(100, kStart + bucket.wait_us(100));
  EXPECT_TRUE(bucket.has_room(100));
}

TEST(RateBucket, ForAnHourAtMost) {
  RateBucket bucket(60);
  bucket.drain(100, kStart);
  bucket.add(100, std::uint64_t{1} << 62);
  bucket.add(100, std::uint64_t{1} << 62);
  EXPECT_EQ(bucket.reset_us(100), 60 * kMinute);
}

TEST(RateBucket, AChangedLimitCountsAtOnce) {
  RateBucket bucket(1);
  EXPECT_EQ(take_all(bucket, 1000, kStart), 1000);
  bucket.drain(10, kStart);  // lowered: one minute of the new limit at most
  EXPECT_EQ(bucket.reset_us(10), kMinute);
  bucket.drain(20, kStart);  // raised: the difference is there
  EXPECT_EQ(bucket.remaining(20), 10U);
}

TEST(RateBucket, ALittleDisorderOfTimesDrainsNothingTwice) {
  RateBucket bucket(1);
  EXPECT_EQ(take_all(bucket, 60, kStart), 60);
  bucket.drain(60, kStart + 10 * kSecond);
  bucket.drain(60, kStart + 5 * kSecond);
  bucket.drain(60, kStart + 10 * kSecond);
  EXPECT_EQ(bucket.remaining(60), 10U);
}

TEST(RateBucket, AClockThatWasSetBackDoesNotStopTheDrain) {
  RateBucket bucket(1);
  EXPECT_EQ(take_all(bucket, 60, kStart), 60);
  bucket.drain(60, kStart - 3600 * kSecond);
  bucket.drain(60, kStart - 3590 * kSecond);
  EXPECT_EQ(bucket.remaining(60), 10U);
}

// Against a model of what was admitted: in no span of time more than the limit and what came back
// in that span; and never less: a refusal means that the bucket was full, to the microsecond.
RC_GTEST_PROP(RateBucketProperty, AdmitsExactlyTheLimit, ()) {
  const auto limit = static_cast<std::uint64_t>(*rc::gen::inRange(1, 60));
  // From a little faster than the limit to much faster: the bucket is full most of the time.
  const auto longest = *rc::gen::inRange<std::int64_t>(1, 2 * kMinute / 60);
  const auto gaps = *rc::gen::container<std::vector<std::int64_t>>(
      200, rc::gen::inRange<std::int64_t>(0, longest));
  RateBucket bucket(1);
  std::int64_t now = kStart;
  // In units of a 60-millionth, from exact sums over the admitted ones.
  __extension__ using Wide = __int128;
  const Wide full = Wide(limit) * kMinute;
  Wide spent = 0;
  for (const std::int64_t gap : gaps) {
    now += gap;
    spent = std::max<Wide>(0, spent - Wide(limit) * gap);
    const bool expected = spent + kMinute <= full;
    RC_ASSERT(take(bucket, limit, now) == expected);
    if (expected) spent += kMinute;
    RC_ASSERT(spent <= full);
    RC_ASSERT(bucket.remaining(limit) == static_cast<std::uint64_t>((full - spent) / kMinute));
  }
}

RC_GTEST_PROP(RateBucketProperty, NoStateOverflowsOrHoldsMoreThanAnHour, ()) {
  RateBucket bucket(60);
  std::int64_t now = kStart;
  for (int i = 0; i < 50; ++i) {
    const auto limit = *rc::gen::element<std::uint64_t>(1, 7, 60'000, kMaxPerMinute);
    now += *rc::gen::element<std::int64_t>(-kMinute * 1000, -1, 0, 1, kSecond, kMinute,
                                           kMinute * 1'000'000);
    bucket.drain(limit, now);
    bucket.add(limit, *rc::gen::arbitrary<std::uint64_t>());
    RC_ASSERT(bucket.reset_us(limit) >= 0);
    RC_ASSERT(bucket.reset_us(limit) <= 60 * kMinute);
    RC_ASSERT(bucket.wait_us(limit) >= 0);
    RC_ASSERT(bucket.remaining(limit) <= limit);
    RC_ASSERT((bucket.wait_us(limit) == 0) == bucket.has_room(limit));
  }
}

}  // namespace
}  // namespace fixpoint
