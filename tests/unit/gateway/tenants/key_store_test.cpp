#include "gateway/tenants/key_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using testing::HasSubstr;
using testing::Not;

class KeyStoreTest : public testing::Test {
 protected:
  std::unique_ptr<KeyStore> open() {
    auto store = KeyStore::open(path_);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  static NewKey wanted(const std::string& name) {
    NewKey key;
    key.name = name;
    key.policy.models = {"gpt-*", "claude-*"};
    key.policy.requests_per_minute = 60;
    key.policy.monthly_cost = 5 * kDollar;
    return key;
  }

  const test::TempDir folder_;
  const std::string path_ = folder_.file("keys.db");
};

TEST_F(KeyStoreTest, KeysSurvive) {
  const CreatedKey created = open()->create(wanted("one"), 5).value();
  const auto keys = open()->keys().value();
  ASSERT_EQ(keys.size(), 1U);
  const ApiKey& key = keys[0];
  EXPECT_EQ(key.id, created.key.id);
  EXPECT_EQ(key.name, "one");
  EXPECT_EQ(key.cache_namespace, key.id);
  EXPECT_EQ(key.digest, sha256(created.secret));
  EXPECT_EQ(key.policy, wanted("one").policy);
  EXPECT_EQ(key.created_ms, 5);
  EXPECT_EQ(key.revoked_ms, 0);
}

TEST_F(KeyStoreTest, TheFileIsPrivateAndHoldsNoSecret) {
  const std::string secret = open()->create(wanted("one"), 5)->secret;
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  std::ifstream file(path_, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(bytes, HasSubstr("one"));
  EXPECT_THAT(bytes, Not(HasSubstr(secret)));
  EXPECT_THAT(bytes, Not(HasSubstr(secret.substr(3))));
}

TEST_F(KeyStoreTest, ARevocationStaysWithItsTime) {
  const std::string id = open()->create(wanted("one"), 5)->key.id;
  EXPECT_EQ(open()->revoke(id, 9)->revoked_ms, 9);
  EXPECT_EQ(open()->revoke(id, 12)->revoked_ms, 9);
  EXPECT_EQ(open()->keys()->at(0).revoked_ms, 9);
}

TEST_F(KeyStoreTest, PoliciesChange) {
  const auto store = open();
  const std::string id = store->create(wanted("one"), 5)->key.id;
  KeyPolicy policy;
  policy.tokens_per_minute = 7;
  policy.monthly_tokens = 8;
  EXPECT_EQ(store->update(id, policy)->policy, policy);
  EXPECT_EQ(store->keys()->at(0).policy, policy);
}

TEST_F(KeyStoreTest, UnknownKeysAndWrongValuesAreErrors) {
  const auto store = open();
  EXPECT_EQ(store->revoke("key_000000000000", 1).error().code, ErrorCode::not_found);
  EXPECT_EQ(store->update("key_000000000000", {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(store->create({}, 1).error().code, ErrorCode::invalid);
  KeyPolicy policy;
  policy.models = {""};
  EXPECT_EQ(store->update("key_000000000000", policy).error().code, ErrorCode::invalid);
}

TEST_F(KeyStoreTest, UsageIsByKeyAndMonth) {
  const auto store = open();
  const KeyUsage little{1, 2, 3, 4}, more{10, 20, 30, 40};
  ASSERT_TRUE(store->save_usage({{"a", 202611, little}, {"b", 202611, little}}));
  ASSERT_TRUE(store->save_usage({{"a", 202611, more}, {"a", 202612, little}}));
  const auto of_a = store->usage("a", std::nullopt).value();
  ASSERT_EQ(of_a.size(), 2U);
  EXPECT_EQ(of_a[0].month, 202612);
  EXPECT_EQ(of_a[0].usage, little);
  EXPECT_EQ(of_a[1].usage, more);
  EXPECT_EQ(store->usage(std::nullopt, 202611)->size(), 2U);
  EXPECT_EQ(store->usage(std::nullopt, std::nullopt)->size(), 3U);
  EXPECT_EQ(store->usage("c", std::nullopt)->size(), 0U);
}

TEST_F(KeyStoreTest, OneProcessAtATime) {
  const auto first = open();
  const auto second = KeyStore::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::io);
  EXPECT_THAT(second.error().message, HasSubstr("another fixpoint"));
}

TEST_F(KeyStoreTest, AnotherFileIsNoKeyFile) {
  std::ofstream(path_) << std::string(1000, 'x');
  EXPECT_EQ(KeyStore::open(path_).error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace fixpoint
