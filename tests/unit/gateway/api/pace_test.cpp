#include "gateway/api/pace.hpp"

#include <gtest/gtest.h>

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

Entry entry_of(std::string pace, std::uint32_t first, std::uint32_t total) {
  Entry entry;
  entry.pace = std::move(pace);
  entry.first_token_ms = first;
  entry.total_ms = total;
  return entry;
}

std::vector<std::int64_t> played(const Entry& entry, std::size_t events) {
  const PacePlayer player(entry, events);
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < events; ++i) times.push_back(player.time_of(i).count());
  return times;
}

using Times = std::vector<std::int64_t>;

TEST(Pace, AShortStreamComesAgainAsItCame) {
  PaceRecorder recorder;
  for (const int at : {100, 110, 500, 510}) recorder.event(milliseconds(at));
  EXPECT_EQ(recorder.text(), "100 110 500 510");
  // The end is an event of its own.
  EXPECT_EQ(played(entry_of(recorder.text(), 100, 520), 5), (Times{100, 110, 500, 510, 520}));
}

TEST(Pace, OtherPiecesComeInBetween) {
  EXPECT_EQ(played(entry_of("0 100", 0, 300), 5), (Times{0, 50, 100, 200, 300}));
  EXPECT_EQ(played(entry_of("0 10 20 30", 0, 40), 3), (Times{0, 20, 40}));
  EXPECT_EQ(played(entry_of("7", 7, 9), 1), (Times{7}));
}

TEST(Pace, WithoutOneTheEventsComeEvenly) {
  EXPECT_EQ(PaceRecorder().text(), "");
  EXPECT_EQ(played(entry_of("", 100, 300), 5), (Times{100, 150, 200, 250, 300}));
}

TEST(Pace, ALongStreamKeepsAPauseAndLittleElse) {
  PaceRecorder recorder;
  constexpr int kEvents = 100'000;
  for (int i = 0; i < kEvents; ++i) {
    recorder.event(milliseconds(i / 10 + (i >= kEvents / 2 ? 5000 : 0)));
  }
  const auto entry = entry_of(recorder.text(), 0, kEvents / 10 + 5000);
  EXPECT_LT(entry.pace.size(), 1000u);
  const auto times = played(entry, 1000);
  EXPECT_NEAR(static_cast<double>(times[480]), 4800, 200);
  EXPECT_NEAR(static_cast<double>(times[520]), 10200, 200);
  EXPECT_EQ(times.back(), kEvents / 10 + 5000);
}

TEST(Pace, WhatSomebodyWroteIntoARecordingIsTakenAsFarAsItGoes) {
  EXPECT_EQ(played(entry_of("50 20", 50, 10), 3), (Times{50, 50, 50}));  // never backwards
  EXPECT_EQ(played(entry_of("x", 10, 30), 3), (Times{10, 20, 30}));
  EXPECT_EQ(played(entry_of("5 -7", 1, 9), 2), (Times{5, 9}));
}

}  // namespace
}  // namespace fixpoint
