#include "gateway/tenants/key_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

TEST(KeyJson, ShowsLimitsAndNothingSecret) {
  ApiKey key;
  key.id = "key_0123456789ab";
  key.name = "ci";
  key.cache_namespace = "team";
  key.digest = sha256("x");
  key.policy.models = {"gpt-*"};
  key.policy.requests_per_minute = 60;
  key.policy.monthly_cost = 12'500'000;
  key.created_ms = 5;
  const KeyStatus status{key, 202611, {1, 2, 3, 40}};
  EXPECT_EQ(key_json(status).dump(),
            R"({"id":"key_0123456789ab","name":"ci","namespace":"team","models":["gpt-*"],)"
            R"("requests_per_minute":60,"tokens_per_minute":null,"monthly_tokens":null,)"
            R"("monthly_usd":12.5,"created_ms":5,"revoked_ms":null,)"
            R"("usage":{"month":"2026-11","requests":1,"prompt_tokens":2,"completion_tokens":3,)"
            R"("cost_usd":4e-05}})");
}

TEST(KeyJson, ReadsANewKey) {
  const NewKey key = read_new_key(Json::parse(R"({"name":"ci","namespace":"team",
      "models":["gpt-*","m"],"requests_per_minute":60,"tokens_per_minute":1000,
      "monthly_tokens":null,"monthly_usd":0.1})"))
                         .value();
  EXPECT_EQ(key.name, "ci");
  EXPECT_EQ(key.cache_namespace, "team");
  EXPECT_THAT(key.policy.models, testing::ElementsAre("gpt-*", "m"));
  EXPECT_EQ(key.policy.requests_per_minute, 60U);
  EXPECT_EQ(key.policy.tokens_per_minute, 1000U);
  EXPECT_EQ(key.policy.monthly_tokens, 0U);
  EXPECT_EQ(key.policy.monthly_cost, 100'000);
}

TEST(KeyJson, RefusesByMemberAndLimit) {
  const auto why = [](const char* text) {
    const auto read = read_new_key(Json::parse(text));
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(why("[]"), HasSubstr("JSON object"));
  EXPECT_THAT(why("{}"), HasSubstr("name: 1 to 128"));
  EXPECT_THAT(why(R"({"name":1})"), HasSubstr("name: must be a string"));
  EXPECT_THAT(why(R"({"name":"a","id":"b"})"), HasSubstr("'id' is not one of name"));
  EXPECT_THAT(why(R"({"name":"a","models":"m"})"), HasSubstr("models: must be a list"));
  EXPECT_THAT(why(R"({"name":"a","models":[1]})"), HasSubstr("models: must be a list"));
  for (const char* bad : {"0", "-1", "1.5", "\"60\"", "true"}) {
    const std::string text = R"({"name":"a","requests_per_minute":)" + std::string(bad) + "}";
    EXPECT_THAT(why(text.c_str()), HasSubstr("requests_per_minute: must be a whole number above 0"))
        << bad;
  }
  for (const char* bad : {"0", "-1", "0.0000001", "1e10", "\"5\""}) {
    const std::string text = R"({"name":"a","monthly_usd":)" + std::string(bad) + "}";
    EXPECT_THAT(why(text.c_str()), HasSubstr("monthly_usd: must be US dollars")) << bad;
  }
  EXPECT_THAT(why(R"({"name":"a","tokens_per_minute":1000000001})"),
              HasSubstr("tokens_per_minute: at most 1000000000"));
}

TEST(KeyJson, AChangeLeavesTheRest) {
  KeyPolicy policy;
  policy.models = {"m"};
  policy.requests_per_minute = 60;
  policy.monthly_cost = kDollar;
  const KeyPolicy changed =
      read_policy(Json::parse(R"({"requests_per_minute":null,"monthly_tokens":7})"), policy)
          .value();
  EXPECT_THAT(changed.models, testing::ElementsAre("m"));
  EXPECT_EQ(changed.requests_per_minute, 0U);
  EXPECT_EQ(changed.monthly_tokens, 7U);
  EXPECT_EQ(changed.monthly_cost, kDollar);
  EXPECT_FALSE(read_policy(Json::parse(R"({"name":"other"})"), policy));
}

}  // namespace
}  // namespace fixpoint
