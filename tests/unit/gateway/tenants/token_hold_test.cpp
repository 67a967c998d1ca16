// Limits in tokens and money against requests that run at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <random>
#include <stdexcept>
#include <thread>

#include "gateway/tenants/tenants.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using testing::HasSubstr;

// 2026-11-30T12:00:00Z. Nothing drains: it stays noon.
const Tenants::Time kNoon{std::chrono::milliseconds(1'796'040'000'000)};
const std::vector<std::string_view> kModels{"one"};

TokenCounts prompt_of(std::uint64_t tokens) {
  return {.prompt = tokens, .completion = 0, .cached = 0};
}

// Its parameter is a key's limit of 1000 tokens, which are 1000 micro-dollars.
class TokenHoldTest : public testing::TestWithParam<KeyPolicy> {
 protected:
  TokenHoldTest() {
    TenantsOptions options;
    options.path = folder_.file("keys.db");
    options.prices = {{"one", 1, 1, 1}, {"ten", 10, 10, 10}};
    options.save_every = std::chrono::hours(1);
    tenants_ = Tenants::open(options, kNoon).value();
    tenant_ = tenant_with(GetParam());
  }
  TenantPtr tenant_with(const KeyPolicy& policy) {
    auto created = tenants_->create({.name = "ci", .cache_namespace = "", .policy = policy});
    if (!created) throw std::runtime_error(created.error().message);
    return tenants_->authenticate(created->secret);
  }
  ApiResult<TokenHoldPtr> hold(std::uint64_t tokens) {
    return tenants_->hold(*tenant_, kModels, prompt_of(tokens), kNoon);
  }
  void charge(std::uint64_t tokens) { tenants_->charge(*tenant_, "one", prompt_of(tokens), kNoon); }
  std::uint64_t charged() { return tenants_->list(kNoon).at(0).usage.prompt_tokens; }

  const test::TempDir folder_;
  std::unique_ptr<Tenants> tenants_;
  TenantPtr tenant_;
};

TEST_P(TokenHoldTest, OthersSeeWhatIsHeldAndOneDoesNotSeeItself) {
  auto first = hold(5000);  // more than the whole limit
  ASSERT_TRUE(first);
  const auto refused = hold(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_EQ(refused.error().code, "rate_limit_exceeded");
  EXPECT_THAT(refused.error().message, HasSubstr("Key 'ci'"));
  EXPECT_THAT(refused.error().message, HasSubstr("in flight that hold the rest of its limit of "));
  EXPECT_EQ(*refused.error().headers.find("Retry-After"), "1");
  EXPECT_TRUE(tenants_->admit(*tenant_, "one", kNoon)) << "what the cache has costs nothing";
  first->reset();
  EXPECT_TRUE(hold(1));
}

TEST_P(TokenHoldTest, RoomIsWhatIsNeitherChargedNorHeld) {
  charge(300);
  const auto first = hold(300);
  const auto second = hold(399);
  const auto third = hold(1);  // at 999 as at 0
  EXPECT_TRUE(first && second && third);
  EXPECT_FALSE(hold(1));
}

TEST_P(TokenHoldTest, WhatIsChargedRefusesAsEver) {
  const auto running = hold(1);
  charge(1000);
  const auto admitted = tenants_->admit(*tenant_, "one", kNoon);
  const auto held = hold(1);
  ASSERT_FALSE(admitted);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, admitted.error().code);
  EXPECT_EQ(held.error().message, admitted.error().message);
}

// As long as expectations are exact: never more than the limit and one answer.
TEST_P(TokenHoldTest, AnyOrderOfRequests) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    tenant_ = tenant_with(GetParam());
    std::mt19937 random(seed);
    struct Running {
      std::uint64_t tokens;
      TokenHoldPtr hold;
    };
    std::vector<Running> running;
    std::uint64_t spent = 0;
    constexpr std::uint64_t kLongest = 400;
    for (int step = 0; step < 100; ++step) {
      if (running.empty() || random() % 2 == 0) {
        const std::uint64_t tokens = 1 + random() % kLongest;
        std::uint64_t others = spent;
        for (const auto& one : running) others += one.tokens;
        auto held = hold(tokens);
        ASSERT_EQ(held.has_value(), others < 1000) << "seed " << seed << ", step " << step;
        if (held) running.push_back({tokens, std::move(*held)});
        continue;
      }
      const std::size_t which = random() % running.size();
      if (random() % 4 != 0) {  // else it failed
        charge(running[which].tokens);
        spent += running[which].tokens;
      }
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      ASSERT_LT(spent, 1000 + kLongest);
    }
  }
}

TEST_P(TokenHoldTest, ThreadsGoBeyondByOneAnswerAtMost) {
  constexpr int kThreads = 4;
  std::latch begin(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int n = 0; n < 500; ++n) {
        const auto held = hold(7);
        if (!held) continue;
        std::this_thread::yield();
        charge(7);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(charged(), 1001U);
  while (hold(7)) charge(7);
  EXPECT_EQ(charged(), 1001U) << "nothing is held any more";
}

KeyPolicy limited(std::uint64_t per_minute, std::uint64_t monthly, MicroDollars cost) {
  KeyPolicy policy;
  policy.tokens_per_minute = per_minute;
  policy.monthly_tokens = monthly;
  policy.monthly_cost = cost;
  return policy;
}

INSTANTIATE_TEST_SUITE_P(Limits, TokenHoldTest,
                         testing::Values(limited(1000, 0, 0), limited(0, 1000, 0),
                                         limited(0, 0, 1000)));

class MoneyHoldTest : public TokenHoldTest {};

TEST_P(MoneyHoldTest, TheDearestModelCounts) {
  const auto first = tenants_->hold(*tenant_, {"one", "ten"}, prompt_of(99), kNoon);
  const auto second = hold(10);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(hold(1));
}

TEST_P(MoneyHoldTest, NoAmountOverflows) {
  const TokenCounts most{.prompt = ~std::uint64_t{0}, .completion = ~std::uint64_t{0}};
  ASSERT_TRUE(tenants_->set_prices({{"one", 1e6, 1e6, 1e6}}));
  const TenantPtr free = tenant_with({});
  std::vector<TokenHoldPtr> held;
  for (int i = 0; i < 100; ++i) {
    held.push_back(std::move(*tenants_->hold(*free, kModels, most, kNoon)));
  }
  EXPECT_TRUE(tenants_->hold(*tenant_, kModels, most, kNoon));
}

INSTANTIATE_TEST_SUITE_P(Limits, MoneyHoldTest, testing::Values(limited(0, 0, 1000)));

}  // namespace
}  // namespace fixpoint
