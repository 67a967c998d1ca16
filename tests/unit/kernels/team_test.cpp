#include "kernels/team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace fixpoint::kernels {
namespace {

class TeamOfSize : public testing::TestWithParam<int> {};

TEST_P(TeamOfSize, RunsEachRankOnce) {
  Team team(GetParam());
  ASSERT_EQ(team.size(), GetParam());
  for (int round = 0; round < 50; round++) {
    std::vector<int> calls(static_cast<std::size_t>(team.size()));
    team.run([&](Share share) {
      EXPECT_EQ(share.size, team.size());
      calls[static_cast<std::size_t>(share.rank)]++;
    });
    for (const int count : calls) EXPECT_EQ(count, 1);
  }
}

// Plain memory: a barrier that lets anybody through early is a data race and a wrong sum.
TEST_P(TeamOfSize, BarrierSeparatesStages) {
  Team team(GetParam());
  const auto size = static_cast<std::size_t>(team.size());
  std::vector<long> value(size, 1), sum(size);
  team.run([&](Share share) {
    const auto rank = static_cast<std::size_t>(share.rank);
    for (int stage = 0; stage < 300; stage++) {
      sum[rank] = std::accumulate(value.begin(), value.end(), 0L);
      team.barrier();
      value[rank] = sum[rank] % 1000 + 1;
      team.barrier();
    }
  });
  for (std::size_t i = 1; i < size; i++) EXPECT_EQ(sum[i], sum[0]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TeamOfSize, testing::Values(1, 2, 3, 8));

TEST(Team, SleepersWake) {
  Team team(3);
  std::atomic<int> calls = 0;
  for (int round = 0; round < 3; round++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than the spin
    team.run([&](Share share) {
      if (share.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      team.barrier();
      calls++;
    });
  }
  EXPECT_EQ(calls, 9);
}

TEST(Team, CallerIsRankZero) {
  Team team(2);
  std::thread::id zero;
  team.run([&](Share share) {
    if (share.rank == 0) zero = std::this_thread::get_id();
  });
  EXPECT_EQ(zero, std::this_thread::get_id());
}

TEST(Team, OneOrLessIsTheCallerAlone) {
  Team team(0);
  EXPECT_EQ(team.size(), 1);
  int calls = 0;
  team.run([&](Share) {
    team.barrier();
    calls++;
  });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace fixpoint::kernels
