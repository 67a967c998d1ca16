// What every store must do. A backend's test file defines a type with
//   std::unique_ptr<fixpoint::Store> open();   // the same, initially empty, store each time
// and says INSTANTIATE_TYPED_TEST_SUITE_P(Name, StoreConformance, ThatType).
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/base/digest.hpp"
#include "cache/store.hpp"

namespace fixpoint::test {

inline CacheKey key_of(const std::string& material, KeyKind kind = KeyKind::body) {
  return {kind, sha256_hex(material), material};
}

inline Entry entry_of(const std::string& material, const std::string& body,
                      KeyKind kind = KeyKind::body) {
  return {.key = key_of(material, kind),
          .endpoint = "chat.completions",
          .model = "model-1",
          .provider = "upstream",
          .generation = "gen-0123456789abcdef01234567",
          .created_ms = 1'700'000'000'123,
          .body = std::make_shared<const std::string>(body)};
}

// The body, or what get() said instead.
inline std::string body_of(Store& store, const CacheKey& key) {
  const Result<std::optional<Entry>> entry = store.get(key);
  if (!entry) return "error: " + entry.error().message;
  return *entry ? *(*entry)->body : "none";
}

template <class Backend>
class StoreConformance : public ::testing::Test {
 protected:
  Backend backend_;
  std::unique_ptr<Store> store_ = backend_.open();
};
TYPED_TEST_SUITE_P(StoreConformance);

TYPED_TEST_P(StoreConformance, AnEmptyStoreHasNothing) {
  EXPECT_EQ(body_of(*this->store_, key_of("a")), "none");
  const Result<StoreStats> stats = this->store_->stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->entries, 0u);
  EXPECT_EQ(stats->bytes, 0u);
  EXPECT_EQ(stats->oldest_ms, 0);
  EXPECT_EQ(stats->newest_ms, 0);
  EXPECT_EQ(*this->store_->purge({}), 0u);
}

TYPED_TEST_P(StoreConformance, KeepsEveryFieldByteForByte) {
  // Zero bytes, invalid UTF-8, empty and large values; before and after the commit, and reopened.
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  Entry entry = entry_of("material " + all_bytes, all_bytes, KeyKind::prompt);
  entry.endpoint = "";
  entry.model = std::string("m\0\xFF", 3);
  Entry large = entry_of("large", std::string(3'000'000, 'x') + all_bytes);
  Entry empty = entry_of("empty", "");
  const auto check = [&] {
    for (const Entry& expected : {entry, large, empty}) {
      const Result<std::optional<Entry>> found = this->store_->get(expected.key);
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_TRUE(*found);
      const Entry& actual = **found;
      EXPECT_EQ(actual.key.kind, expected.key.kind);
      EXPECT_EQ(actual.key.hex, expected.key.hex);
      EXPECT_EQ(actual.key.material, expected.key.material);
      EXPECT_EQ(actual.endpoint, expected.endpoint);
      EXPECT_EQ(actual.model, expected.model);
      EXPECT_EQ(actual.provider, expected.provider);
      EXPECT_EQ(actual.generation, expected.generation);
      EXPECT_EQ(actual.created_ms, expected.created_ms);
      EXPECT_TRUE(*actual.body == *expected.body);
    }
  };
  for (const Entry& each : {entry, large, empty}) this->store_->put(each);
  check();
  this->store_->flush();
  check();
  this->store_.reset();
  this->store_ = this->backend_.open();
  check();
  EXPECT_EQ(this->store_->failed_writes(), 0u);
}

TYPED_TEST_P(StoreConformance, KindsAreApart) {
  this->store_->put(entry_of("same", "of a body", KeyKind::body));
  EXPECT_EQ(body_of(*this->store_, key_of("same", KeyKind::prompt)), "none");
  this->store_->put(entry_of("same", "of a prompt", KeyKind::prompt));
  this->store_->flush();
  EXPECT_EQ(body_of(*this->store_, key_of("same", KeyKind::prompt)), "of a prompt");
  EXPECT_EQ(body_of(*this->store_, key_of("same", KeyKind::body)), "of a body");
}

TYPED_TEST_P(StoreConformance, APutReplacesAndIsSeenAtOnce) {
  for (int i = 0; i < 200; ++i) {
    const std::string body = std::to_string(i);
    this->store_->put(entry_of("k", body));
    ASSERT_EQ(body_of(*this->store_, key_of("k")), body);
    if (i % 50 == 0) this->store_->flush();
    ASSERT_EQ(body_of(*this->store_, key_of("k")), body);
  }
  this->store_->flush();
  EXPECT_EQ(body_of(*this->store_, key_of("k")), "199");
  EXPECT_EQ(this->store_->stats()->entries, 1u);
  EXPECT_EQ(this->store_->stats()->bytes, 3u);
}

TYPED_TEST_P(StoreConformance, AKeyByNameFindsTheMaterial) {
  this->store_->put(entry_of("m", "b"));
  for (int i = 0; i < 2; ++i) {
    const Result<CacheKey> by_name = parse_key_name(key_of("m").name());
    ASSERT_TRUE(by_name);
    const Result<std::optional<Entry>> entry = this->store_->get(*by_name);
    ASSERT_TRUE(entry && *entry);
    EXPECT_EQ((*entry)->key.material, "m");
    this->store_->flush();
  }
}

// A digest that two materials share cannot be found, so it is made up.
TYPED_TEST_P(StoreConformance, OtherMaterialUnderOneDigestIsAnError) {
  this->store_->put(entry_of("stored", "secret"));
  CacheKey key = key_of("stored");
  key.material = "another";
  for (int i = 0; i < 2; ++i) {
    const Result<std::optional<Entry>> entry = this->store_->get(key);
    ASSERT_FALSE(entry);
    EXPECT_EQ(entry.error().code, ErrorCode::corrupt);
    this->store_->flush();
  }
}

TYPED_TEST_P(StoreConformance, RefusesAKeyThatIsNone) {
  CacheKey key = key_of("x");
  key.hex = "../../etc";
  const Result<std::optional<Entry>> entry = this->store_->get(key);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::invalid);
}

TYPED_TEST_P(StoreConformance, StatsCountKindsBytesAndTimes) {
  Entry old_entry = entry_of("a", "12345");
  old_entry.created_ms = 1000;
  Entry new_entry = entry_of("b", "123", KeyKind::prompt);
  new_entry.created_ms = 3000;
  this->store_->put(old_entry);
  this->store_->put(new_entry);
  const Result<StoreStats> stats = this->store_->stats();  // sees what is queued
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->entries, 2u);
  EXPECT_EQ(stats->bytes, 8u);
  EXPECT_EQ(stats->prompt_entries, 1u);
  EXPECT_EQ(stats->body_entries, 1u);
  EXPECT_EQ(stats->oldest_ms, 1000);
  EXPECT_EQ(stats->newest_ms, 3000);
}

TYPED_TEST_P(StoreConformance, PurgeMeetsAllItsConditions) {
  const auto fill = [&] {
    for (int i = 0; i < 10; ++i) {
      Entry entry = entry_of(std::string("k").append(std::to_string(i)), "b");
      entry.model = i % 2 == 0 ? "even" : "odd";
      entry.created_ms = 1000 + i;
      this->store_->put(entry);
    }
  };
  PurgeFilter filter;
  fill();
  filter.model = "even";
  filter.older_than_ms = 1004;  // before, not at
  EXPECT_EQ(*this->store_->purge(filter), 2u);
  EXPECT_EQ(body_of(*this->store_, key_of("k2")), "none");
  EXPECT_EQ(body_of(*this->store_, key_of("k4")), "b");
  filter = {};
  filter.key = key_of("k3").name();
  filter.model = "even";
  EXPECT_EQ(*this->store_->purge(filter), 0u);
  filter.model.reset();
  EXPECT_EQ(*this->store_->purge(filter), 1u);
  EXPECT_EQ(*this->store_->purge(filter), 0u);
  EXPECT_EQ(body_of(*this->store_, key_of("k3")), "none");
  filter = {};
  filter.older_than_ms = 1006;
  EXPECT_EQ(*this->store_->purge(filter), 3u);
  filter = {};
  filter.model = "nobody";
  EXPECT_EQ(*this->store_->purge(filter), 0u);
  filter.key = "nonsense";
  EXPECT_EQ(this->store_->purge(filter).error().code, ErrorCode::invalid);
  EXPECT_EQ(*this->store_->purge({}), 4u);
  EXPECT_EQ(this->store_->stats()->entries, 0u);
  fill();
  EXPECT_EQ(body_of(*this->store_, key_of("k3")), "b");
}

TYPED_TEST_P(StoreConformance, PurgesMoreThanOneStep) {
  for (int i = 0; i < 2500; ++i) this->store_->put(entry_of(std::to_string(i), "b"));
  EXPECT_EQ(*this->store_->purge({}), 2500u);
  EXPECT_EQ(this->store_->stats()->entries, 0u);
  EXPECT_EQ(body_of(*this->store_, key_of("17")), "none");
}

// Each thread puts and reads its own keys, and reads those of the others: an entry is there whole
// or not at all, and one's own is always there.
TYPED_TEST_P(StoreConformance, ThreadsPutAndGetAtOnce) {
  constexpr int kThreads = 4, kKeys = 300;
  std::atomic<int> wrong = 0, missed = 0;
  const auto body = [](int thread, int i) {
    return std::string(1 + std::size_t(i) * 7, char('a' + thread)) + std::to_string(i);
  };
  const auto name = [](int thread, int i) {
    return std::to_string(thread) + "/" + std::to_string(i);
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kKeys; ++i) {
        this->store_->put(entry_of(name(thread, i), body(thread, i)));
        const int back = i * 7 % (i + 1);
        if (body_of(*this->store_, key_of(name(thread, back))) != body(thread, back)) ++missed;
        const int other = (thread + 1) % kThreads;
        const std::string seen = body_of(*this->store_, key_of(name(other, i)));
        if (seen != "none" && seen != body(other, i)) ++wrong;
        if (thread == 0 && i % 100 == 50) this->store_->flush();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(this->store_->failed_writes(), 0u);
  EXPECT_EQ(this->store_->stats()->entries, std::uint64_t(kThreads) * kKeys);
}

REGISTER_TYPED_TEST_SUITE_P(StoreConformance, AnEmptyStoreHasNothing, KeepsEveryFieldByteForByte,
                            KindsAreApart, APutReplacesAndIsSeenAtOnce, AKeyByNameFindsTheMaterial,
                            OtherMaterialUnderOneDigestIsAnError, RefusesAKeyThatIsNone,
                            StatsCountKindsBytesAndTimes, PurgeMeetsAllItsConditions,
                            PurgesMoreThanOneStep, ThreadsPutAndGetAtOnce);

}  // namespace fixpoint::test
