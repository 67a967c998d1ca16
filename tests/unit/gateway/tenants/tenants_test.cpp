#include "gateway/tenants/tenants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "tests/support/http_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// 2026-11-30T12:00:00Z: half a day before the month ends.
const Tenants::Time kNoon{milliseconds(1'796'040'000'000)};

std::string header(const Headers& headers, std::string_view name) {
  const std::string* value = headers.find(name);
  return value == nullptr ? "" : *value;
}

class TenantsTest : public testing::Test {
 protected:
  std::unique_ptr<Tenants> open(Tenants::Time now = kNoon) {
    TenantsOptions options;
    options.path = path_;
    options.prices = {{"gpt-*", 2.5, 10, 1.25}};
    options.save_every = hours(1);  // tests say when
    options.on_error = [this](const Error& error) {
      const std::lock_guard lock(errors_mutex_);
      errors_.push_back(error.message);
    };
    auto tenants = Tenants::open(options, now);
    if (!tenants) throw std::runtime_error(tenants.error().message);
    return std::move(*tenants);
  }
  static CreatedKey create(Tenants& tenants, const KeyPolicy& policy = {},
                           const std::string& name = "ci") {
    auto created = tenants.create({.name = name, .cache_namespace = "", .policy = policy});
    if (!created) throw std::runtime_error(created.error().message);
    return std::move(*created);
  }
  static TenantPtr tenant_with(Tenants& tenants, const KeyPolicy& policy) {
    return tenants.authenticate(create(tenants, policy).secret);
  }

  const test::TempDir folder_;
  const std::string path_ = folder_.file("keys.db");
  std::mutex errors_mutex_;
  std::vector<std::string> errors_;
};

TEST_F(TenantsTest, WithoutKeysNobodyHasToBringOne) {
  const auto tenants = open();
  EXPECT_FALSE(tenants->any());
  EXPECT_EQ(tenants->authenticate(""), nullptr);
}

TEST_F(TenantsTest, ASecretIsItsKey) {
  const auto tenants = open();
  const CreatedKey one = create(*tenants), two = create(*tenants);
  EXPECT_TRUE(tenants->any());
  EXPECT_EQ(tenants->authenticate(one.secret)->key.id, one.key.id);
  EXPECT_EQ(tenants->authenticate(two.secret)->key.id, two.key.id);
  std::string other = one.secret;
  other.back() = other.back() == 'A' ? 'E' : 'A';
  for (const std::string& unknown : {std::string(), one.key.id, other, one.secret + "A",
                                     one.secret.substr(1), std::string(1'000'000, 'x')}) {
    EXPECT_EQ(tenants->authenticate(unknown), nullptr);
  }
}

TEST_F(TenantsTest, ARevokedKeyIsUnknownAndTheGatewayStaysClosed) {
  std::string secret;
  {
    const auto tenants = open();
    const CreatedKey created = create(*tenants);
    secret = created.secret;
    const TenantPtr in_flight = tenants->authenticate(secret);
    ASSERT_TRUE(tenants->revoke(created.key.id));
    EXPECT_EQ(tenants->authenticate(secret), nullptr);
    EXPECT_TRUE(tenants->any());
    tenants->charge(*in_flight, "gpt-4o", {.prompt = 100, .completion = 0, .cached = 0}, kNoon);
    EXPECT_EQ(tenants->list(kNoon).at(0).usage.requests, 1U);
    // A changed limit does not bring it back.
    ASSERT_TRUE(tenants->update(created.key.id, {}));
    EXPECT_EQ(tenants->authenticate(secret), nullptr);
  }
  const auto tenants = open();
  EXPECT_EQ(tenants->authenticate(secret), nullptr);
  EXPECT_TRUE(tenants->any());
}

TEST_F(TenantsTest, ModelsAreThoseOfThePatterns) {
  const auto tenants = open();
  const TenantPtr any = tenant_with(*tenants, {});
  EXPECT_TRUE(tenants->admit(*any, "anything", kNoon));
  KeyPolicy policy;
  policy.models = {"gpt-4o*", "claude-3"};
  const TenantPtr some = tenant_with(*tenants, policy);
  EXPECT_TRUE(tenants->admit(*some, "gpt-4o-mini", kNoon));
  EXPECT_TRUE(tenants->admit(*some, "claude-3", kNoon));
  const auto refused = tenants->admit(*some, "gpt-4", kNoon);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 403);
  EXPECT_EQ(refused.error().code, "permission_denied");
  EXPECT_EQ(refused.error().param, "model");
  EXPECT_THAT(refused.error().message, HasSubstr("may not use model 'gpt-4'"));
}

TEST_F(TenantsTest, RequestsPerMinute) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.requests_per_minute = 3;
  policy.models = {"m"};
  const TenantPtr tenant = tenant_with(*tenants, policy);
  // Neither a refused model nor an answer counts.
  EXPECT_FALSE(tenants->admit(*tenant, "other", kNoon));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon));
    tenants->charge(*tenant, "m", {}, kNoon);
  }
  const auto refused = tenants->admit(*tenant, "m", kNoon + milliseconds(500));
  ASSERT_FALSE(refused);
  const ApiError& error = refused.error();
  EXPECT_EQ(error.status, 429);
  EXPECT_EQ(error.type, "requests");
  EXPECT_EQ(error.code, "rate_limit_exceeded");
  EXPECT_THAT(error.message, HasSubstr("limit of 3 requests per minute; try again in 19.5s"));
  EXPECT_EQ(header(error.headers, "Retry-After"), "20");
  EXPECT_EQ(header(error.headers, "retry-after-ms"), "19500");
  EXPECT_EQ(header(error.headers, "x-ratelimit-limit-requests"), "3");
  EXPECT_EQ(header(error.headers, "x-ratelimit-remaining-requests"), "0");
  EXPECT_EQ(header(error.headers, "x-ratelimit-reset-requests"), "59.5s");
  EXPECT_EQ(header(error.headers, "x-ratelimit-limit-tokens"), "");
  EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon + seconds(20)));
  EXPECT_FALSE(tenants->admit(*tenant, "m", kNoon + seconds(20)));
}

TEST_F(TenantsTest, TokensPerMinuteCountWhatWasCharged) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.tokens_per_minute = 600;
  policy.requests_per_minute = 100;
  const TenantPtr tenant = tenant_with(*tenants, policy);
  EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon));
  tenants->charge(*tenant, "m", {.prompt = 500, .completion = 99, .cached = 400}, kNoon);
  EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon));
  tenants->charge(*tenant, "m", {.prompt = 300, .completion = 1, .cached = 0}, kNoon);
  const auto refused = tenants->admit(*tenant, "m", kNoon);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_EQ(refused.error().type, "tokens");
  EXPECT_EQ(refused.error().code, "rate_limit_exceeded");
  // 900 were charged; below 600 is room again: 301 drain in 30.1 s.
  EXPECT_EQ(header(refused.error().headers, "retry-after-ms"), "30100");
  EXPECT_EQ(header(refused.error().headers, "x-ratelimit-remaining-tokens"), "0");
  EXPECT_EQ(header(refused.error().headers, "x-ratelimit-reset-tokens"), "1m30s");
  // The refused request took none of the requests.
  EXPECT_EQ(header(refused.error().headers, "x-ratelimit-remaining-requests"), "98");
  EXPECT_FALSE(tenants->admit(*tenant, "m", kNoon + milliseconds(30'099)));
  EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon + milliseconds(30'100)));
}

TEST_F(TenantsTest, AHitCostsARequestAndNoTokens) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.tokens_per_minute = 1;
  const TenantPtr tenant = tenant_with(*tenants, policy);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(tenants->admit(*tenant, "gpt-4o", kNoon));
    EXPECT_EQ(tenants->charge(*tenant, "gpt-4o", {}, kNoon), 0);
  }
  EXPECT_EQ(tenants->list(kNoon).at(0).usage, (KeyUsage{10, 0, 0, 0}));
}

TEST_F(TenantsTest, ChargeTellsTheCost) {
  const auto tenants = open();
  const TenantPtr tenant = tenant_with(*tenants, {});
  const TokenCounts tokens{.prompt = 100, .completion = 10, .cached = 40};
  EXPECT_EQ(tenants->charge(*tenant, "gpt-4o", tokens, kNoon), 150 + 50 + 100);
  EXPECT_EQ(tenants->charge(*tenant, "llama", tokens, kNoon), 0);
  ASSERT_TRUE(tenants->set_prices({{"llama", 1, 1, 1}}));
  EXPECT_EQ(tenants->charge(*tenant, "llama", tokens, kNoon), 110);
  EXPECT_EQ(tenants->set_prices({{"llama", -1, 1, 1}}).error().code, ErrorCode::invalid);
  EXPECT_EQ(tenants->charge(*tenant, "llama", tokens, kNoon), 110);
  EXPECT_EQ(tenants->list(kNoon).at(0).usage, (KeyUsage{4, 400, 40, 520}));
}

TEST_F(TenantsTest, MonthlyTokens) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.monthly_tokens = 100;
  const TenantPtr tenant = tenant_with(*tenants, policy);
  tenants->charge(*tenant, "m", {.prompt = 90, .completion = 9, .cached = 0}, kNoon);
  EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon));
  tenants->charge(*tenant, "m", {.prompt = 0, .completion = 1, .cached = 0}, kNoon);
  const auto refused = tenants->admit(*tenant, "m", kNoon);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_EQ(refused.error().type, "insufficient_quota");
  EXPECT_EQ(refused.error().code, "insufficient_quota");
  EXPECT_THAT(refused.error().message, HasSubstr("budget of 100 tokens"));
  EXPECT_EQ(header(refused.error().headers, "Retry-After"), "43200");
  EXPECT_EQ(header(refused.error().headers, "x-should-retry"), "false");
  EXPECT_FALSE(tenants->admit(*tenant, "m", kNoon + hours(12) - milliseconds(1)));
  EXPECT_TRUE(tenants->admit(*tenant, "m", kNoon + hours(12)));
}

TEST_F(TenantsTest, MonthlyCost) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.monthly_cost = 1000;
  const TenantPtr tenant = tenant_with(*tenants, policy);
  tenants->charge(*tenant, "gpt-4o", {.prompt = 399, .completion = 0, .cached = 0}, kNoon);
  EXPECT_TRUE(tenants->admit(*tenant, "gpt-4o", kNoon));
  tenants->charge(*tenant, "gpt-4o", {.prompt = 1, .completion = 0, .cached = 0}, kNoon);
  const auto refused = tenants->admit(*tenant, "gpt-4o", kNoon);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "insufficient_quota");
  EXPECT_THAT(refused.error().message, HasSubstr("budget of 0.001 US dollars"));
}

TEST_F(TenantsTest, ANewMonthBeginsAtZeroAndTheOldOneIsKept) {
  std::string id;
  {
    const auto tenants = open();
    const CreatedKey created = create(*tenants);
    id = created.key.id;
    const TenantPtr tenant = tenants->authenticate(created.secret);
    const TokenCounts tokens{.prompt = 10, .completion = 0, .cached = 0};
    tenants->charge(*tenant, "m", tokens, kNoon);
    tenants->charge(*tenant, "m", tokens, kNoon + hours(12));
    tenants->charge(*tenant, "m", tokens, kNoon + hours(12));
    // A clock that is set back goes on in the month that was reached.
    tenants->charge(*tenant, "m", tokens, kNoon);
    EXPECT_EQ(tenants->list(kNoon + hours(12)).at(0).usage.requests, 3U);
  }
  const auto tenants = open(kNoon + hours(13));
  EXPECT_EQ(tenants->list(kNoon + hours(13)).at(0).usage.requests, 3U);
  const auto months = tenants->usage(id).value();
  ASSERT_EQ(months.size(), 2U);
  EXPECT_EQ(months[0].month, 202612);
  EXPECT_EQ(months[0].usage.prompt_tokens, 30U);
  EXPECT_EQ(months[1].month, 202611);
  EXPECT_EQ(months[1].usage.prompt_tokens, 10U);
}

TEST_F(TenantsTest, ABudgetGoesOnAfterARestart) {
  std::string secret;
  KeyPolicy policy;
  policy.monthly_tokens = 100;
  {
    const auto tenants = open();
    secret = create(*tenants, policy).secret;
    tenants->charge(*tenants->authenticate(secret), "m",
                    {.prompt = 100, .completion = 0, .cached = 0}, kNoon);
  }
  {
    const auto tenants = open();
    EXPECT_FALSE(tenants->admit(*tenants->authenticate(secret), "m", kNoon));
  }
  const auto tenants = open(kNoon + hours(13));
  EXPECT_TRUE(tenants->admit(*tenants->authenticate(secret), "m", kNoon + hours(13)));
}

TEST_F(TenantsTest, AChangedLimitCountsForTheNextRequestWithWhatWasSpent) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.requests_per_minute = 2;
  const CreatedKey created = create(*tenants, policy);
  const TenantPtr before = tenants->authenticate(created.secret);
  EXPECT_TRUE(tenants->admit(*before, "m", kNoon));
  EXPECT_TRUE(tenants->admit(*before, "m", kNoon));
  EXPECT_FALSE(tenants->admit(*before, "m", kNoon));
  policy.requests_per_minute = 3;
  ASSERT_TRUE(tenants->update(created.key.id, policy));
  const TenantPtr after = tenants->authenticate(created.secret);
  EXPECT_TRUE(tenants->admit(*after, "m", kNoon));
  EXPECT_FALSE(tenants->admit(*after, "m", kNoon));
  EXPECT_EQ(tenants->find(created.key.id)->policy, policy);
}

TEST_F(TenantsTest, ResetsReadAsOpenAisDo) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.tokens_per_minute = 60;
  const auto reset_after = [&](std::uint64_t tokens) {
    const TenantPtr tenant = tenant_with(*tenants, policy);
    tenants->charge(*tenant, "m", {.prompt = tokens, .completion = 0, .cached = 0}, kNoon);
    return header(tenants->rate_limit_headers(*tenant, kNoon + milliseconds(500)),
                  "x-ratelimit-reset-tokens");
  };
  EXPECT_EQ(reset_after(0), "0s");
  EXPECT_EQ(reset_after(1), "500ms");
  EXPECT_EQ(reset_after(9), "8.5s");
  EXPECT_EQ(reset_after(61), "1m0.5s");
  EXPECT_EQ(reset_after(1'000'000), "59m59.5s");
}

TEST_F(TenantsTest, ConcurrentRequestsNeverExceedTheLimit) {
  const auto tenants = open();
  KeyPolicy policy;
  policy.requests_per_minute = 1000;
  const CreatedKey created = create(*tenants, policy);
  constexpr int kThreads = 4;
  std::atomic<int> admitted{0};
  std::latch begin(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      begin.arrive_and_wait();
      for (int n = 0; n < 500; ++n) {
        const TenantPtr tenant = tenants->authenticate(created.secret);
        if (!tenants->admit(*tenant, "m", kNoon)) continue;
        ++admitted;
        tenants->charge(*tenant, "gpt-4o", {.prompt = 2, .completion = 1, .cached = 0}, kNoon);
      }
    });
  }
  begin.wait();
  // Meanwhile keys come and go, prices change and usage is saved.
  for (int n = 0; n < 5; ++n) {
    const CreatedKey other = create(*tenants);
    ASSERT_TRUE(tenants->set_prices({{"gpt-*", 2.5, 10, 1.25}}));
    ASSERT_TRUE(tenants->save());
    ASSERT_TRUE(tenants->update(created.key.id, policy));
    ASSERT_TRUE(tenants->revoke(other.key.id));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 1000);
  const auto months = tenants->usage(created.key.id).value();
  ASSERT_EQ(months.size(), 1U);
  EXPECT_EQ(months[0].usage, (KeyUsage{1000, 2000, 1000, 15'000}));
}

// The usage table is taken away and given back, from another connection: saves fail meanwhile.
void alter(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  sqlite3_busy_timeout(handle, 5000);
  EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
}

TEST_F(TenantsTest, WhatCouldNotBeSavedIsSavedLater) {
  const auto tenants = open();
  const CreatedKey created = create(*tenants);
  const TenantPtr tenant = tenants->authenticate(created.secret);
  const TokenCounts tokens{.prompt = 10, .completion = 0, .cached = 0};
  alter(path_, "ALTER TABLE usage RENAME TO away");
  tenants->charge(*tenant, "m", tokens, kNoon);
  EXPECT_FALSE(tenants->save());
  tenants->charge(*tenant, "m", tokens, kNoon);
  tenants->charge(*tenant, "m", tokens, kNoon + hours(12));
  EXPECT_FALSE(tenants->save());
  EXPECT_FALSE(tenants->save());
  tenants->charge(*tenant, "m", tokens, kNoon + hours(12));
  alter(path_, "ALTER TABLE away RENAME TO usage");
  EXPECT_TRUE(tenants->save());
  const auto months = tenants->usage(created.key.id).value();
  ASSERT_EQ(months.size(), 2U);
  EXPECT_EQ(months[0].usage.requests, 2U);
  EXPECT_EQ(months[1].usage.requests, 2U);
  const std::lock_guard lock(errors_mutex_);
  EXPECT_FALSE(errors_.empty());
}

TEST_F(TenantsTest, UsageGoesToTheDiskByItself) {
  TenantsOptions options;
  options.path = path_;
  options.save_every = milliseconds(5);
  const auto tenants = Tenants::open(options, kNoon).value();
  const CreatedKey created = create(*tenants);
  tenants->charge(*tenants->authenticate(created.secret), "m", {}, kNoon);
  const auto saved = [&] {
    sqlite3* handle = nullptr;
    sqlite3_open_v2(path_.c_str(), &handle, SQLITE_OPEN_READONLY, nullptr);
    int rows = 0;
    sqlite3_exec(
        handle, "SELECT requests FROM usage",
        [](void* count, int, char**, char**) { return ++*static_cast<int*>(count), 0; }, &rows,
        nullptr);
    sqlite3_close(handle);
    return rows;
  };
  EXPECT_TRUE(test::eventually([&] { return saved() != 0; }));
}

}  // namespace
}  // namespace fixpoint
