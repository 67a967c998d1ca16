#include "cache/fingerprints.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace fixpoint::test {
namespace {

TEST(FingerprintTracker, TheFirstOneIsNoDriftTheNextOneIs) {
  FingerprintTracker tracker;
  EXPECT_EQ(tracker.epoch("p", "m"), "");
  EXPECT_FALSE(tracker.observe("p", "m", "A"));
  EXPECT_FALSE(tracker.observe("p", "m", "A"));
  EXPECT_EQ(tracker.epoch("p", "m"), "A");
  const std::optional<FingerprintDrift> drift = tracker.observe("p", "m", "B");
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->provider, "p");
  EXPECT_EQ(drift->model, "m");
  EXPECT_EQ(drift->previous, "A");
  EXPECT_EQ(drift->current, "B");
  EXPECT_EQ(tracker.epoch("p", "m"), "B");
}

TEST(FingerprintTracker, ARolloutIsOneDriftAndOneEpoch) {
  FingerprintTracker tracker;
  int drifts = 0;
  for (int i = 0; i < 100; ++i) {
    drifts += tracker.observe("p", "m", i % 2 == 0 ? "A" : "B") ? 1 : 0;
    EXPECT_EQ(tracker.epoch("p", "m"), i == 0 ? "A" : "B");
  }
  EXPECT_EQ(drifts, 1);
}

TEST(FingerprintTracker, NoFingerprintIsNothing) {
  FingerprintTracker tracker;
  EXPECT_FALSE(tracker.observe("p", "m", ""));
  EXPECT_FALSE(tracker.observe("p", "m", "A"));
  EXPECT_FALSE(tracker.observe("p", "m", ""));
  EXPECT_EQ(tracker.epoch("p", "m"), "A");
}

TEST(FingerprintTracker, ModelsAndProvidersAreApart) {
  FingerprintTracker tracker;
  EXPECT_FALSE(tracker.observe("p", "m", "A"));
  EXPECT_FALSE(tracker.observe("p", "n", "B"));
  EXPECT_FALSE(tracker.observe("q", "m", "C"));
  EXPECT_FALSE(tracker.observe("pm", "", "D"));
  EXPECT_EQ(tracker.epoch("p", "m"), "A");
  EXPECT_EQ(tracker.models(), 4u);
}

TEST(FingerprintTracker, StartsWithTheTable) {
  // B came after A, though A was seen last: a rollout that was under way.
  FingerprintTracker tracker(
      {{"p", "m", "A", 100, 900, 50}, {"p", "m", "B", 500, 800, 20}, {"p", "n", "C", 1, 2, 1}});
  EXPECT_EQ(tracker.epoch("p", "m"), "B");
  EXPECT_FALSE(tracker.observe("p", "m", "A"));
  const std::optional<FingerprintDrift> drift = tracker.observe("p", "m", "C");
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->previous, "B");
}

// A provider that names each answer anew: a few drifts, then silence and an epoch that stays.
TEST(FingerprintTracker, FingerprintsOfEachAnswerFallSilent) {
  FingerprintTracker tracker;
  std::size_t drifts = 0;
  std::set<std::string> epochs;
  for (int i = 0; i < 1000; ++i) {
    drifts += tracker.observe("p", "m", std::to_string(i)) ? 1 : 0;
    epochs.insert(tracker.epoch("p", "m"));
  }
  EXPECT_EQ(drifts, FingerprintTracker::kMaxPerModel - 1);
  EXPECT_EQ(epochs.size(), FingerprintTracker::kMaxPerModel);
}

// Backends that answer more than once are reported for ever.
TEST(FingerprintTracker, ManyRealBackendsAreAllReported) {
  FingerprintTracker tracker;
  std::size_t drifts = 0;
  for (int i = 0; i < 1000; ++i) {
    for (int again = 0; again < 3; ++again) {
      drifts += tracker.observe("p", "m", std::to_string(i)) ? 1 : 0;
    }
  }
  EXPECT_EQ(drifts, 999u);
}

TEST(FingerprintTracker, ForgetsTheModelThatWasNotSeenForLongest) {
  FingerprintTracker tracker;
  for (std::size_t i = 0; i < FingerprintTracker::kMaxModels; ++i) {
    tracker.observe("p", std::to_string(i), "A");
  }
  tracker.observe("p", "0", "A");
  tracker.observe("p", "new", "A");
  EXPECT_EQ(tracker.models(), FingerprintTracker::kMaxModels);
  EXPECT_EQ(tracker.epoch("p", "0"), "A");
  EXPECT_EQ(tracker.epoch("p", "1"), "");
  EXPECT_EQ(tracker.epoch("p", "new"), "A");
}

// Up to kMaxPerModel fingerprints: a drift is exactly a first sight that is not the model's first.
RC_GTEST_PROP(FingerprintTracker, ADriftIsAFirstSight, ()) {
  FingerprintTracker tracker;
  std::set<std::string> seen;
  std::string newest;
  for (const int number : *rc::gen::container<std::vector<int>>(
           rc::gen::inRange(0, static_cast<int>(FingerprintTracker::kMaxPerModel)))) {
    const std::string fingerprint = "fp" + std::to_string(number);
    const std::optional<FingerprintDrift> drift = tracker.observe("p", "m", fingerprint);
    const bool is_new = seen.insert(fingerprint).second;
    RC_ASSERT(drift.has_value() == (is_new && seen.size() > 1));
    if (drift) RC_ASSERT(drift->previous == newest);
    if (is_new) newest = fingerprint;
    RC_ASSERT(tracker.epoch("p", "m") == newest);
  }
}

TEST(FingerprintTracker, ThreadsReportADriftOnce) {
  FingerprintTracker tracker;
  tracker.observe("p", "m", "A");
  std::atomic<int> drifts = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        drifts += tracker.observe("p", "m", round % 2 == 0 ? "A" : "B") ? 1 : 0;
        tracker.epoch("p", "m");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(drifts, 1);
}

}  // namespace
}  // namespace fixpoint::test
