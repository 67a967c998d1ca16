#include "cache/key.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <string>
#include <vector>

#include "cache/base/digest.hpp"

namespace fixpoint {
namespace {

constexpr const char* kRequest =
    R"({"model":"m","messages":[{"role":"user","content":"Hello"}],"temperature":0})";

BodyKeyInput body_input() {
  return {.tenant = "",
          .provider = "openai",
          .base_url = "https://api.openai.com/v1",
          .endpoint = "chat.completions",
          .request = kRequest,
          .sample = 0};
}

std::string hex_of(const BodyKeyInput& input) {
  const Result<CacheKey> key = body_key(input);
  return key ? key->hex : "error: " + key.error().message;
}

std::string hex_of_request(std::string_view request) {
  BodyKeyInput input = body_input();
  input.request = request;
  return hex_of(input);
}

TEST(BodyKey, MaterialIsExactlyWhatIsHashed) {
  const Result<CacheKey> key = body_key(body_input());
  ASSERT_TRUE(key);
  EXPECT_EQ(key->kind, KeyKind::body);
  EXPECT_EQ(key->material,
            "fixpoint-key-v1\nkind 4\nbody\ntenant 0\n\nprovider 6\nopenai\n"
            "base_url 25\nhttps://api.openai.com/v1\nendpoint 16\nchat.completions\nsample 1\n0\n"
            "request 76\n{\"messages\":[{\"content\":\"Hello\",\"role\":\"user\"}],"
            "\"model\":\"m\",\"temperature\":0}\n");
  EXPECT_EQ(key->hex, sha256_hex(key->material));
  EXPECT_EQ(key->name(), "body:" + key->hex);
}

TEST(BodyKey, EveryPartCounts) {
  std::set<std::string> seen = {hex_of(body_input())};
  const auto differs = [&](auto change) {
    BodyKeyInput input = body_input();
    change(input);
    EXPECT_TRUE(seen.insert(hex_of(input)).second);
  };
  differs([](BodyKeyInput& input) { input.tenant = "team-a"; });
  differs([](BodyKeyInput& input) { input.provider = "other"; });
  differs([](BodyKeyInput& input) { input.base_url = "https://other/v1"; });
  differs([](BodyKeyInput& input) { input.endpoint = "completions"; });
  differs([](BodyKeyInput& input) { input.sample = 1; });
  differs([](BodyKeyInput& input) { input.sample = 2; });
  // Bytes moved from one part to the next one.
  differs([](BodyKeyInput& input) { input.tenant = "o", input.provider = "penai"; });
  differs([](BodyKeyInput& input) { input.tenant = "\nprovider 6\nopenai\n"; });
}

TEST(BodyKey, EveryMemberThatIsNotExcludedCounts) {
  std::set<std::string> seen = {hex_of_request("{}")};
  for (const char* request :
       {R"({"model":"m"})",
        R"({"model":"M"})",
        R"({"model":"m","temperature":0})",
        R"({"model":"m","temperature":1})",
        R"({"model":"m","temperature":null})",
        R"({"model":"m","seed":1})",
        R"({"model":"m","top_k":1})",
        R"({"model":"m","num_ctx":1})",
        R"({"model":"m","n":1})",
        R"({"model":"m","n":2})",
        R"({"model":"m","stop":"a"})",
        R"({"model":"m","stop":["a"]})",
        R"({"model":"m","logprobs":true})",
        R"({"model":"m","store":true})",
        R"({"model":"m","service_tier":"flex"})",
        R"({"model":"m","never_heard_of":0})",
        R"({"model":"m","never_heard_of":""})",
        R"({"model":"m","seed":9007199254740992})",
        R"({"model":"m","seed":9007199254740993})",
        R"({"model":"m","messages":[{"role":"user","content":"x","user":"a"}]})",
        R"({"model":"m","messages":[{"role":"user","content":"x","user":"b"}]})",
        R"({"model":"m","messages":[{"role":"user","content":"x "}]})"}) {
    EXPECT_TRUE(seen.insert(hex_of_request(request)).second) << request;
  }
}

TEST(BodyKey, ExcludedMembersDoNotCount) {
  const std::string plain = hex_of_request(R"({"model":"m"})");
  for (const std::string_view name : excluded_members()) {
    EXPECT_EQ(hex_of_request(R"({"model":"m",")" + std::string(name) + R"(":{"a":[1]}})"), plain);
  }
  for (const std::string_view name : {"stream", "stream_options", "user", "metadata", "timeout"}) {
    EXPECT_EQ(hex_of_request(R"({")" + std::string(name) + R"(":1,"model":"m"})"), plain) << name;
  }
}

TEST(BodyKey, RefusesWhatIsNoRequest) {
  for (const char* request :
       {"", "[]", "1", "null", R"({"a":1,"a":1})", "{", R"({"stream":tru})"}) {
    BodyKeyInput input = body_input();
    input.request = request;
    const Result<CacheKey> key = body_key(input);
    ASSERT_FALSE(key) << request;
    EXPECT_EQ(key.error().code, ErrorCode::invalid);
  }
}

TEST(PromptKey, MaterialIsExactlyWhatIsHashed) {
  const std::vector<std::int32_t> tokens = {1, -2, 0x01020304};
  const CacheKey key = prompt_key({.tenant = "t",
                                   .endpoint = "completions",
                                   .fingerprint = "fp",
                                   .tokens = tokens,
                                   .parameters = "{}",
                                   .sample = 7});
  EXPECT_EQ(key.material, std::string("fixpoint-key-v1\nkind 6\nprompt\ntenant 1\nt\n"
                                      "endpoint 11\ncompletions\nfingerprint 2\nfp\nsample 1\n7\n"
                                      "parameters 2\n{}\ntokens 12\n"
                                      "\x01\0\0\0\xFE\xFF\xFF\xFF\x04\x03\x02\x01\n",
                                      132));
  EXPECT_EQ(key.hex, sha256_hex(key.material));
  EXPECT_EQ(key.name(), "prompt:" + key.hex);
}

TEST(PromptKey, EveryPartCounts) {
  const std::vector<std::int32_t> one = {1}, other = {2}, two = {1, 1}, none = {};
  std::set<std::string> seen;
  const auto differs = [&](const PromptKeyInput& input) {
    EXPECT_TRUE(seen.insert(prompt_key(input).hex).second);
  };
  differs({"", "chat.completions", "f", one, "{}", 0});
  differs({"t", "chat.completions", "f", one, "{}", 0});
  differs({"", "completions", "f", one, "{}", 0});
  differs({"", "chat.completions", "g", one, "{}", 0});
  differs({"", "chat.completions", "f", other, "{}", 0});
  differs({"", "chat.completions", "f", two, "{}", 0});
  differs({"", "chat.completions", "f", none, "{}", 0});
  differs({"", "chat.completions", "f", one, R"({"seed":1})", 0});
  differs({"", "chat.completions", "f", one, "{}", 1});
}

// The material of any input can be taken apart again, so that no two inputs share one.
TEST(PromptKey, NoTwoInputsShareAMaterial) {
  EXPECT_TRUE(rc::check(
      [](const std::string& a, const std::string& b, const std::string& c, const std::string& d) {
        const PromptKeyInput left{a, b, c, {}, d, 0};
        const std::string both = a + b;
        const PromptKeyInput moved{both, "", c, {}, d, 0};
        RC_ASSERT((prompt_key(left).material == prompt_key(moved).material) == b.empty());
      }));
}

TEST(KeyName, RoundTripsAndRefuses) {
  const std::string hex = sha256_hex("x");
  for (const std::string prefix : {"prompt:", "body:"}) {
    const Result<CacheKey> key = parse_key_name(prefix + hex);
    ASSERT_TRUE(key);
    EXPECT_EQ(key->name(), prefix + hex);
    EXPECT_TRUE(key->material.empty());
  }
  std::string upper = hex;
  upper.back() = 'A';
  for (const std::string& name : {std::string(), std::string("prompt:"), hex, "Body:" + hex,
                                  "body:" + hex.substr(1), "body:" + hex + "0", "body:" + upper,
                                  " body:" + hex, "body: " + hex.substr(1), "gen-" + hex}) {
    const Result<CacheKey> key = parse_key_name(name);
    ASSERT_FALSE(key) << name;
    EXPECT_EQ(key.error().code, ErrorCode::invalid);
  }
}

}  // namespace
}  // namespace fixpoint
