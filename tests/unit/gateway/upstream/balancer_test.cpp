#include "gateway/upstream/balancer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace fixpoint {
namespace {

std::vector<std::string> texts(const std::vector<const std::string*>& names) {
  std::vector<std::string> out;
  for (const std::string* name : names) out.push_back(*name);
  return out;
}

using Names = std::vector<std::string>;

class BalancerTest : public testing::Test {
 protected:
  std::set<std::string> open_;
  Names order(Balancer& balancer) {
    return texts(balancer.order([this](const std::string& name) { return open_.contains(name); }));
  }
};

TEST_F(BalancerTest, SmoothRoundRobin) {
  Balancer balancer({{"a", 5}, {"b", 1}, {"c", 1}}, {});
  std::string chosen;
  for (int i = 0; i < 14; ++i) chosen += order(balancer).front();
  EXPECT_EQ(chosen, "aabacaaaabacaa");
}

TEST_F(BalancerTest, ChosenThenFallbacksEachOnce) {
  Balancer balancer({{"a", 1}, {"b", 1}}, {"b", "c"});
  EXPECT_EQ(order(balancer), (Names{"a", "b", "c"}));
  EXPECT_EQ(order(balancer), (Names{"b", "c"}));
}

TEST_F(BalancerTest, OpenOnesAreLeftOut) {
  Balancer balancer({{"a", 3}, {"b", 1}}, {"c", "d"});
  open_ = {"a", "c"};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(order(balancer), (Names{"b", "d"}));
  open_ = {"a", "b"};
  EXPECT_EQ(order(balancer), (Names{"c", "d"}));
  open_.clear();
  std::map<std::string, int> counts;
  for (int i = 0; i < 400; ++i) ++counts[order(balancer).front()];
  EXPECT_EQ(counts["a"], 300) << "nobody gains from having been away";
}

TEST_F(BalancerTest, AllOpen) {
  Balancer single({{"a", 1}}, {"b"});
  open_ = {"a", "b"};
  EXPECT_EQ(order(single), (Names{"a"}));
  Balancer weighted({{"a", 1}, {"b", 1}}, {});
  EXPECT_EQ(order(weighted).size(), 1u);
}

TEST(BalancerThreads, SharesHold) {
  Balancer balancer({{"a", 3}, {"b", 1}}, {});
  std::atomic<int> a{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        if (*balancer.order([](const std::string&) { return false; }).front() == "a") ++a;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(a, 3000);
}

}  // namespace
}  // namespace fixpoint
