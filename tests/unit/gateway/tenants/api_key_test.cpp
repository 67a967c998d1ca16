#include "gateway/tenants/api_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fixpoint {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string why(const Result<void>& checked) {
  return checked ? "" : checked.error().message;
}

TEST(ApiKey, IdAndSecretHaveTheirForms) {
  const CreatedKey created = generate_key({.name = "ci", .cache_namespace = "", .policy = {}}, 7);
  EXPECT_THAT(created.key.id, MatchesRegex("key_[0-9a-f]{12}"));
  EXPECT_THAT(created.secret, MatchesRegex("fp-[A-Za-z0-9_-]{43}"));
  EXPECT_TRUE(looks_like_secret(created.secret));
  EXPECT_TRUE(looks_like_key_id(created.key.id));
  EXPECT_EQ(created.key.digest, sha256(created.secret));
  EXPECT_EQ(created.key.cache_namespace, created.key.id);
  EXPECT_EQ(created.key.created_ms, 7);
  EXPECT_EQ(created.key.revoked_ms, 0);
}

TEST(ApiKey, EveryKeyIsAnother) {
  std::set<std::string> texts;
  std::set<char> last_digits;
  for (int i = 0; i < 200; ++i) {
    const CreatedKey created =
        generate_key({.name = "ci", .cache_namespace = "team", .policy = {}}, 7);
    texts.insert(created.key.id);
    texts.insert(created.secret);
    last_digits.insert(created.secret.back());
    EXPECT_EQ(created.key.cache_namespace, "team");
  }
  EXPECT_EQ(texts.size(), 400U);
  EXPECT_EQ(last_digits.size(), 16U);  // 4 bits: 256 are 42 digits of 6, and 4
}

TEST(ApiKey, OtherTextIsNoSecretAndNoId) {
  for (const char* text : {"", "fp-", "sk-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst",
                           "fp-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopq7",
                           "Bearer fp-abcdefghijklmnopqrstuvwxyzabcdefghijklm"}) {
    EXPECT_FALSE(looks_like_secret(text)) << text;
  }
  for (const char* text :
       {"", "key_", "key_0123456789ab/", "key_0123456789aB", "key_../../purge"}) {
    EXPECT_FALSE(looks_like_key_id(text)) << text;
  }
}

TEST(ApiKey, ChecksNameTheFieldAndTheLimit) {
  NewKey key{.name = "ci", .cache_namespace = "team-a.eu:1_x", .policy = {}};
  EXPECT_EQ(why(check_new_key(key)), "");
  key.name = "";
  EXPECT_THAT(why(check_new_key(key)), HasSubstr("name: 1 to 128 bytes"));
  key.name = std::string(129, 'a');
  EXPECT_THAT(why(check_new_key(key)), HasSubstr("name: 1 to 128 bytes"));
  for (const char* bad : {"a\nb", "a\x1b[31m", "\xff", "a\\b"}) {
    key.name = bad;
    EXPECT_THAT(why(check_new_key(key)), HasSubstr("printable")) << bad;
  }
  key.name = "Künstler 日本";
  EXPECT_EQ(why(check_new_key(key)), "");
  for (const char* bad : {"a b", "a/b", "ä", "a\n"}) {
    key.cache_namespace = bad;
    EXPECT_THAT(why(check_new_key(key)), HasSubstr("namespace: at most 128")) << bad;
  }
  key.cache_namespace = std::string(129, 'a');
  EXPECT_THAT(why(check_new_key(key)), HasSubstr("namespace: at most 128"));
}

TEST(ApiKey, PolicyHasLimits) {
  KeyPolicy policy;
  policy.models.assign(64, "m");
  policy.requests_per_minute = policy.tokens_per_minute = kMaxPerMinute;
  policy.monthly_tokens = kMaxMonthlyTokens;
  policy.monthly_cost = kMaxMonthlyCost;
  EXPECT_EQ(why(check_policy(policy)), "");
  const auto with = [&](auto change) {
    KeyPolicy changed = policy;
    change(changed);
    return why(check_policy(changed));
  };
  EXPECT_THAT(with([](KeyPolicy& p) { p.models.push_back("m"); }), HasSubstr("models: a key has"));
  EXPECT_THAT(with([](KeyPolicy& p) { p.models[3] = ""; }), HasSubstr("models: a pattern has"));
  EXPECT_THAT(with([](KeyPolicy& p) { p.models[3] = "a\nb"; }), HasSubstr("models: a pattern has"));
  EXPECT_THAT(with([](KeyPolicy& p) { p.models[3] = std::string(257, 'a'); }),
              HasSubstr("models: a pattern has"));
  EXPECT_THAT(with([](KeyPolicy& p) { ++p.requests_per_minute; }),
              HasSubstr("requests_per_minute: at most 1000000000"));
  EXPECT_THAT(with([](KeyPolicy& p) { ++p.tokens_per_minute; }), HasSubstr("tokens_per_minute"));
  EXPECT_THAT(with([](KeyPolicy& p) { ++p.monthly_tokens; }), HasSubstr("monthly_tokens"));
  EXPECT_THAT(with([](KeyPolicy& p) { ++p.monthly_cost; }),
              HasSubstr("monthly_usd: at most 1000000000"));
  EXPECT_THAT(with([](KeyPolicy& p) { p.monthly_cost = -1; }), HasSubstr("monthly_usd"));
}

TEST(Months, AreThoseOfTheCalendarInUtc) {
  EXPECT_EQ(month_of(0), 197001);
  EXPECT_EQ(month_of(1'796'083'199'999), 202611);  // 2026-11-30T23:59:59.999Z
  EXPECT_EQ(month_of(1'796'083'200'000), 202612);
  EXPECT_EQ(month_end_ms(202611), 1'796'083'200'000);
  EXPECT_EQ(month_of(month_end_ms(202612) - 1), 202612);
  EXPECT_EQ(month_of(month_end_ms(202612)), 202701);
  EXPECT_EQ(format_month(202611), "2026-11");
  EXPECT_EQ(format_month(202601), "2026-01");
}

TEST(Dollars, HaveNoTrailingZeros) {
  EXPECT_EQ(format_dollars(0), "0");
  EXPECT_EQ(format_dollars(1), "0.000001");
  EXPECT_EQ(format_dollars(12 * kDollar + 500'000), "12.5");
  EXPECT_EQ(format_dollars(100 * kDollar), "100");
}

}  // namespace
}  // namespace fixpoint
