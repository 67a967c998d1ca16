// What every store must do. A backend's test file defines a type with
//   std::unique_ptr<Store> open(const StoreLimits& limits = {});  // the same, initially empty,
//   store
// and says INSTANTIATE_TYPED_TEST_SUITE_P(Name, StoreConformance, ThatType), and the same for each
// of the suites below it that applies:
//   PersistentStoreConformance  entries outlive the store object
//   CheckedStoreConformance     ... under a checksum; the type also has
//                               void damage(const CacheKey& key);  // spoils what is kept of it
//   CompressingStoreConformance ... through zstd where that helps
//   ExpiringStoreConformance    the store removes entries by limits.ttl
//   BoundedStoreConformance     the store removes entries by limits.max_bytes
// limits and damage() are used while no store is open.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <set>
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
  Entry entry;
  entry.key = key_of(material, kind);
  entry.endpoint = "chat.completions";
  entry.model = "model-1";
  entry.provider = "upstream";
  entry.generation = "gen-0123456789abcdef01234567";
  entry.created_ms = 1'700'000'000'123;
  entry.body = std::make_shared<const std::string>(body);
  return entry;
}

inline EntryPtr shared(Entry entry) {
  return std::make_shared<const Entry>(std::move(entry));
}

inline void put(Store& store, Entry entry) {
  store.put(shared(std::move(entry)));
}

// The body, or what get() said instead.
inline std::string body_of(Store& store, const CacheKey& key) {
  const Store::Found entry = get_and_wait(store, key);
  if (!entry) return "error: " + entry.error().message;
  return *entry ? *(*entry)->body : "none";
}

inline void expect_equal(const Entry& actual, const Entry& expected) {
  EXPECT_EQ(actual.key.kind, expected.key.kind);
  EXPECT_EQ(actual.key.hex, expected.key.hex);
  EXPECT_EQ(actual.key.material, expected.key.material);
  EXPECT_EQ(actual.tenant, expected.tenant);
  EXPECT_EQ(actual.endpoint, expected.endpoint);
  EXPECT_EQ(actual.model, expected.model);
  EXPECT_EQ(actual.provider, expected.provider);
  EXPECT_EQ(actual.generation, expected.generation);
  EXPECT_EQ(actual.created_ms, expected.created_ms);
  EXPECT_EQ(actual.first_token_ms, expected.first_token_ms);
  EXPECT_EQ(actual.total_ms, expected.total_ms);
  EXPECT_EQ(actual.pace, expected.pace);
  ASSERT_TRUE(actual.body);
  EXPECT_TRUE(*actual.body == *expected.body);
}

// Zero bytes, invalid UTF-8, empty and large values, the largest numbers.
inline std::vector<Entry> awkward_entries() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  std::vector<Entry> entries;
  entries.push_back(entry_of("material " + all_bytes, all_bytes, KeyKind::prompt));
  entries.back().endpoint = "";
  entries.back().tenant = std::string("t\0\xFE", 3);
  entries.back().model = std::string("m\0\xFF", 3);
  entries.back().first_token_ms = std::numeric_limits<std::uint32_t>::max();
  entries.back().total_ms = std::numeric_limits<std::uint32_t>::max();
  entries.push_back(entry_of("large", std::string(3'000'000, 'x') + all_bytes));
  entries.back().tenant = "team-a";
  entries.back().first_token_ms = 17;
  entries.back().total_ms = 4711;
  entries.back().pace = "17 20 4000";
  entries.push_back(entry_of("empty", ""));
  entries.back().created_ms = 0;
  entries.push_back(entry_of("", "of no material"));
  return entries;
}

// What for_each() saw, by key name.
inline std::set<std::string> names_in(Store& store, const EntryFilter& filter) {
  std::set<std::string> names;
  const Result<std::uint64_t> corrupt = store.for_each(filter, [&](const Entry& entry) {
    EXPECT_TRUE(names.insert(entry.key.name()).second) << "visited twice";
    return true;
  });
  EXPECT_TRUE(corrupt && *corrupt == 0u);
  return names;
}

// For what a store may do late: true as soon as `condition` is.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
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
  EXPECT_EQ(stats->stored_bytes, 0u);
  EXPECT_EQ(stats->oldest_ms, 0);
  EXPECT_EQ(stats->newest_ms, 0);
  EXPECT_EQ(stats->evicted, 0u);
  EXPECT_EQ(*this->store_->purge({}), 0u);
  EXPECT_TRUE(names_in(*this->store_, {}).empty());
}

TYPED_TEST_P(StoreConformance, KeepsEveryFieldByteForByte) {
  const auto check = [&] {
    for (const Entry& expected : awkward_entries()) {
      if (expected.key.material.empty()) continue;  // looked up by digest alone, below
      const Store::Found found = get_and_wait(*this->store_, expected.key);
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_TRUE(*found);
      expect_equal(**found, expected);
    }
  };
  for (Entry& each : awkward_entries()) put(*this->store_, each);
  check();
  this->store_->flush();
  check();
  EXPECT_EQ(this->store_->failed_writes(), 0u);
}

TYPED_TEST_P(StoreConformance, AnswersExactlyOnce) {
  put(*this->store_, entry_of("a", "b"));
  CacheKey other = key_of("a");
  other.material = "another";
  CacheKey invalid = key_of("a");
  invalid.hex = "x";
  const auto calls = std::make_shared<std::atomic<int>>(0);
  for (const CacheKey& key : {key_of("a"), key_of("missing"), other, invalid}) {
    this->store_->get(key, [calls](const Store::Found&) { ++*calls; });
  }
  EXPECT_TRUE(eventually([&] { return *calls >= 4; }));
  this->store_.reset();
  EXPECT_EQ(*calls, 4);
}

TYPED_TEST_P(StoreConformance, KindsAreApart) {
  put(*this->store_, entry_of("same", "of a body", KeyKind::body));
  EXPECT_EQ(body_of(*this->store_, key_of("same", KeyKind::prompt)), "none");
  put(*this->store_, entry_of("same", "of a prompt", KeyKind::prompt));
  this->store_->flush();
  EXPECT_EQ(body_of(*this->store_, key_of("same", KeyKind::prompt)), "of a prompt");
  EXPECT_EQ(body_of(*this->store_, key_of("same", KeyKind::body)), "of a body");
}

TYPED_TEST_P(StoreConformance, APutReplacesAndIsSeenAtOnce) {
  for (int i = 0; i < 200; ++i) {
    const std::string body = std::to_string(i);
    put(*this->store_, entry_of("k", body));
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
  put(*this->store_, entry_of("m", "b"));
  for (int i = 0; i < 2; ++i) {
    const Result<CacheKey> by_name = parse_key_name(key_of("m").name());
    ASSERT_TRUE(by_name);
    const Store::Found entry = get_and_wait(*this->store_, *by_name);
    ASSERT_TRUE(entry && *entry);
    EXPECT_EQ((*entry)->key.material, "m");
    this->store_->flush();
  }
}

// A digest that two materials share cannot be found, so it is made up.
TYPED_TEST_P(StoreConformance, OtherMaterialUnderOneDigestIsAnError) {
  put(*this->store_, entry_of("stored", "secret"));
  CacheKey key = key_of("stored");
  key.material = "another";
  for (int i = 0; i < 2; ++i) {
    const Store::Found entry = get_and_wait(*this->store_, key);
    ASSERT_FALSE(entry);
    EXPECT_EQ(entry.error().code, ErrorCode::corrupt);
    this->store_->flush();
  }
}

TYPED_TEST_P(StoreConformance, RefusesAKeyThatIsNone) {
  CacheKey key = key_of("x");
  key.hex = "../../etc";
  const Store::Found entry = get_and_wait(*this->store_, key);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, ErrorCode::invalid);
}

TYPED_TEST_P(StoreConformance, StatsCountKindsBytesAndTimes) {
  Entry old_entry = entry_of("a", "12345");
  old_entry.created_ms = 1000;
  Entry new_entry = entry_of("b", "123", KeyKind::prompt);
  new_entry.created_ms = 3000;
  put(*this->store_, old_entry);
  put(*this->store_, new_entry);
  const Result<StoreStats> stats = this->store_->stats();  // sees what is queued
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->entries, 2u);
  EXPECT_EQ(stats->bytes, 8u);
  EXPECT_EQ(stats->stored_bytes, 8u);
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
      put(*this->store_, entry);
    }
  };
  EntryFilter filter;
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

TYPED_TEST_P(StoreConformance, PurgesOneTenantAlone) {
  for (const std::string tenant : {"", "a", "b"}) {
    for (int i = 0; i < 3; ++i) {
      Entry entry = entry_of(tenant + "/" + std::to_string(i), "b");
      entry.tenant = tenant;
      entry.model = i == 0 ? "m" : "n";
      put(*this->store_, entry);
    }
  }
  EntryFilter filter;
  filter.tenant = "a";
  filter.model = "m";
  EXPECT_EQ(*this->store_->purge(filter), 1u);
  filter.model.reset();
  EXPECT_EQ(*this->store_->purge(filter), 2u);
  filter.tenant = "nobody";
  EXPECT_EQ(*this->store_->purge(filter), 0u);
  filter.tenant = "";  // a condition like any other: entries without a tenant
  EXPECT_EQ(*this->store_->purge(filter), 3u);
  EXPECT_EQ(this->store_->stats()->entries, 3u);
  EXPECT_EQ(body_of(*this->store_, key_of("b/2")), "b");
}

TYPED_TEST_P(StoreConformance, VisitsWhatTheFilterMatches) {
  for (int i = 0; i < 10; ++i) {
    Entry entry = entry_of(std::string("k").append(std::to_string(i)), "b");
    entry.model = i % 2 == 0 ? "even" : "odd";
    entry.tenant = i < 5 ? "low" : "high";
    entry.created_ms = 1000 + i;
    put(*this->store_, entry);
  }
  this->store_->flush();
  const auto name = [](const char* material) { return key_of(material).name(); };
  EXPECT_EQ(names_in(*this->store_, {}).size(), 10u);
  EntryFilter filter;
  filter.model = "even";
  filter.tenant = "high";
  EXPECT_EQ(names_in(*this->store_, filter), (std::set<std::string>{name("k6"), name("k8")}));
  filter.older_than_ms = 1008;
  EXPECT_EQ(names_in(*this->store_, filter), (std::set<std::string>{name("k6")}));
  filter.key = name("k6");
  EXPECT_EQ(names_in(*this->store_, filter), (std::set<std::string>{name("k6")}));
  filter.key = name("k7");
  EXPECT_TRUE(names_in(*this->store_, filter).empty());
  filter.key = "nonsense";
  const auto ignore = [](const Entry&) { return true; };
  EXPECT_EQ(this->store_->for_each(filter, ignore).error().code, ErrorCode::invalid);

  int visited = 0;
  ASSERT_TRUE(this->store_->for_each({}, [&](const Entry&) { return ++visited < 4; }));
  EXPECT_EQ(visited, 4);
  // The store can be used from inside.
  ASSERT_TRUE(this->store_->for_each({}, [&](const Entry& entry) {
    EXPECT_EQ(body_of(*this->store_, entry.key), "b");
    put(*this->store_, entry_of("more" + entry.key.material, "b"));
    return visited++ < 10;
  }));
}

TYPED_TEST_P(StoreConformance, VisitsEveryFieldByteForByte) {
  std::vector<Entry> expected = awkward_entries();
  for (const Entry& each : expected) put(*this->store_, each);
  this->store_->flush();
  std::size_t visited = 0;
  ASSERT_TRUE(this->store_->for_each({}, [&](const Entry& actual) {
    for (const Entry& each : expected) {
      if (each.key.name() != actual.key.name()) continue;
      expect_equal(actual, each);
      ++visited;
    }
    return true;
  }));
  EXPECT_EQ(visited, expected.size());
}

TYPED_TEST_P(StoreConformance, PurgesMoreThanOneStep) {
  for (int i = 0; i < 2500; ++i) put(*this->store_, entry_of(std::to_string(i), "b"));
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
        put(*this->store_, entry_of(name(thread, i), body(thread, i)));
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
                            AnswersExactlyOnce, KindsAreApart, APutReplacesAndIsSeenAtOnce,
                            AKeyByNameFindsTheMaterial, OtherMaterialUnderOneDigestIsAnError,
                            RefusesAKeyThatIsNone, StatsCountKindsBytesAndTimes,
                            PurgeMeetsAllItsConditions, PurgesOneTenantAlone,
                            VisitsWhatTheFilterMatches, VisitsEveryFieldByteForByte,
                            PurgesMoreThanOneStep, ThreadsPutAndGetAtOnce);

template <class Backend>
class PersistentStoreConformance : public StoreConformance<Backend> {};
TYPED_TEST_SUITE_P(PersistentStoreConformance);

TYPED_TEST_P(PersistentStoreConformance, EntriesOutliveTheStoreObject) {
  for (const Entry& each : awkward_entries()) put(*this->store_, each);
  this->store_.reset();  // without flush(): the destructor finishes the queue
  this->store_ = this->backend_.open();
  for (const Entry& expected : awkward_entries()) {
    const Result<CacheKey> name = parse_key_name(expected.key.name());
    ASSERT_TRUE(name);
    const Store::Found found = get_and_wait(*this->store_, *name);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(*found);
    expect_equal(**found, expected);
  }
  EXPECT_EQ(this->store_->stats()->entries, awkward_entries().size());
}

TYPED_TEST_P(PersistentStoreConformance, PurgedEntriesStayAway) {
  put(*this->store_, entry_of("a", "b"));
  put(*this->store_, entry_of("c", "d"));
  EntryFilter filter;
  filter.key = key_of("a").name();
  EXPECT_EQ(*this->store_->purge(filter), 1u);
  this->store_.reset();
  this->store_ = this->backend_.open();
  EXPECT_EQ(body_of(*this->store_, key_of("a")), "none");
  EXPECT_EQ(body_of(*this->store_, key_of("c")), "d");
}

REGISTER_TYPED_TEST_SUITE_P(PersistentStoreConformance, EntriesOutliveTheStoreObject,
                            PurgedEntriesStayAway);

template <class Backend>
class CheckedStoreConformance : public StoreConformance<Backend> {};
TYPED_TEST_SUITE_P(CheckedStoreConformance);

TYPED_TEST_P(CheckedStoreConformance, ADamagedEntryIsAnErrorAndNeverServed) {
  put(*this->store_, entry_of("good", "good answer"));
  put(*this->store_, entry_of("bad", std::string(20'000, 'x')));
  this->store_.reset();
  this->backend_.damage(key_of("bad"));
  this->store_ = this->backend_.open();
  const Store::Found found = get_and_wait(*this->store_, key_of("bad"));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::corrupt);
  EXPECT_EQ(body_of(*this->store_, key_of("good")), "good answer");

  std::set<std::string> names;
  const Result<std::uint64_t> corrupt = this->store_->for_each({}, [&](const Entry& entry) {
    names.insert(entry.key.name());
    return true;
  });
  ASSERT_TRUE(corrupt) << corrupt.error().message;
  EXPECT_EQ(*corrupt, 1u);
  EXPECT_EQ(names, std::set<std::string>{key_of("good").name()});

  put(*this->store_, entry_of("bad", "new answer"));  // heals it
  this->store_->flush();
  EXPECT_EQ(body_of(*this->store_, key_of("bad")), "new answer");
}

REGISTER_TYPED_TEST_SUITE_P(CheckedStoreConformance, ADamagedEntryIsAnErrorAndNeverServed);

template <class Backend>
class CompressingStoreConformance : public StoreConformance<Backend> {};
TYPED_TEST_SUITE_P(CompressingStoreConformance);

TYPED_TEST_P(CompressingStoreConformance, CompressionIsTransparent) {
  std::string noise;  // does not get smaller
  for (int i = 0; i < 400; ++i) {
    const Sha256Bytes digest = sha256(std::to_string(i));
    noise.append(digest.begin(), digest.end());
  }
  const std::string text(100'000, 'x'), short_text(1000, 'x');
  const auto check = [&] {
    EXPECT_TRUE(body_of(*this->store_, key_of("text")) == text);
    EXPECT_TRUE(body_of(*this->store_, key_of("noise")) == noise);
    EXPECT_TRUE(body_of(*this->store_, key_of("short")) == short_text);
    const Result<StoreStats> stats = this->store_->stats();
    EXPECT_EQ(stats->bytes, text.size() + noise.size() + short_text.size());
    EXPECT_GE(stats->stored_bytes, noise.size() + short_text.size());
    EXPECT_LT(stats->stored_bytes, noise.size() + short_text.size() + 1000);
  };
  put(*this->store_, entry_of("text", text));
  put(*this->store_, entry_of("noise", noise));
  put(*this->store_, entry_of("short", short_text));
  check();
  this->store_.reset();
  // The limit is of writes: what was written under another one is read all the same.
  StoreLimits limits;
  limits.compress_above = std::numeric_limits<std::size_t>::max();
  this->store_ = this->backend_.open(limits);
  check();
  put(*this->store_, entry_of("text", text));
  this->store_->flush();
  EXPECT_TRUE(body_of(*this->store_, key_of("text")) == text);
  EXPECT_EQ(this->store_->stats()->stored_bytes, this->store_->stats()->bytes);
}

REGISTER_TYPED_TEST_SUITE_P(CompressingStoreConformance, CompressionIsTransparent);

template <class Backend>
class ExpiringStoreConformance : public StoreConformance<Backend> {};
TYPED_TEST_SUITE_P(ExpiringStoreConformance);

TYPED_TEST_P(ExpiringStoreConformance, OldEntriesGoAndYoungOnesStay) {
  Entry young = entry_of("young", "b");
  young.created_ms = unix_ms();
  put(*this->store_, young);
  for (int i = 0; i < 1500; ++i) put(*this->store_, entry_of(std::to_string(i), "b"));
  this->store_.reset();
  StoreLimits limits;
  limits.ttl = std::chrono::hours(24);
  this->store_ = this->backend_.open(limits);
  put(*this->store_, entry_of("old", "b"));
  put(*this->store_, young);
  EXPECT_EQ(body_of(*this->store_, key_of("young")), "b");
  this->store_.reset();
  this->store_ = this->backend_.open(limits);
  EXPECT_TRUE(eventually([&] { return body_of(*this->store_, key_of("old")) == "none"; }));
  EXPECT_EQ(body_of(*this->store_, key_of("young")), "b");
  EXPECT_EQ(this->store_->stats()->evicted, 0u);  // that is of max_bytes
}

REGISTER_TYPED_TEST_SUITE_P(ExpiringStoreConformance, OldEntriesGoAndYoungOnesStay);

template <class Backend>
class BoundedStoreConformance : public StoreConformance<Backend> {
 protected:
  // About a hundred entries of 10,000 bytes.
  static constexpr std::uint64_t kMaxBytes = 1 << 20;
  void open_bounded() {
    this->store_.reset();
    StoreLimits limits;
    limits.max_bytes = kMaxBytes;
    limits.compress_above = std::numeric_limits<std::size_t>::max();
    this->store_ = this->backend_.open(limits);
  }
  void put_numbers(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      put(*this->store_, entry_of(std::to_string(i), std::string(10'000, 'x')));
    }
  }
};
TYPED_TEST_SUITE_P(BoundedStoreConformance);

TYPED_TEST_P(BoundedStoreConformance, WhatWasNotUsedForLongestGoesFirst) {
  this->open_bounded();
  this->put_numbers(0, 60);
  this->store_->flush();
  EXPECT_EQ(this->store_->stats()->evicted, 0u);
  EXPECT_EQ(body_of(*this->store_, key_of("0")).size(), 10'000u);  // a use
  this->put_numbers(60, 110);
  this->store_->flush();
  const Result<StoreStats> stats = this->store_->stats();
  ASSERT_TRUE(stats);
  EXPECT_GT(stats->evicted, 0u);
  EXPECT_LT(stats->evicted, 30u);
  EXPECT_EQ(stats->entries + stats->evicted, 110u);
  EXPECT_LE(stats->stored_bytes, this->kMaxBytes);
  EXPECT_EQ(body_of(*this->store_, key_of("0")).size(), 10'000u);
  EXPECT_EQ(body_of(*this->store_, key_of("1")), "none");
  EXPECT_EQ(body_of(*this->store_, key_of("109")).size(), 10'000u);
  EXPECT_EQ(this->store_->failed_writes(), 0u);
}

TYPED_TEST_P(BoundedStoreConformance, AUseThatIsNotedCountsAsOne) {
  this->open_bounded();
  this->put_numbers(0, 60);
  this->store_->note_use(key_of("0"));
  this->store_->note_use(key_of("none"));
  this->store_->note_use({});
  this->put_numbers(60, 110);
  this->store_->flush();
  EXPECT_EQ(body_of(*this->store_, key_of("0")).size(), 10'000u);
  EXPECT_EQ(body_of(*this->store_, key_of("1")), "none");
  EXPECT_EQ(body_of(*this->store_, key_of("none")), "none");
}

// However fast the others come and go.
TYPED_TEST_P(BoundedStoreConformance, WhatIsAlwaysUsedStays) {
  this->open_bounded();
  this->put_numbers(0, 2);
  for (int i = 2; i < 500; i += 2) {
    this->put_numbers(i, i + 2);
    this->store_->flush();
    ASSERT_EQ(body_of(*this->store_, key_of("0")).size(), 10'000u) << i;
    this->store_->note_use(key_of("1"));
  }
  EXPECT_EQ(body_of(*this->store_, key_of("1")).size(), 10'000u);
  EXPECT_EQ(body_of(*this->store_, key_of("2")), "none");
  EXPECT_GT(this->store_->stats()->evicted, 350u);
}

TYPED_TEST_P(BoundedStoreConformance, AReplacedEntryCountsOnce) {
  this->open_bounded();
  for (int i = 0; i < 5; ++i) this->put_numbers(0, 60);
  this->store_->flush();
  EXPECT_EQ(this->store_->stats()->evicted, 0u);
  EXPECT_EQ(this->store_->stats()->entries, 60u);
  EXPECT_EQ(*this->store_->purge({}), 60u);
  this->put_numbers(60, 120);  // what a purge removed makes room
  this->store_->flush();
  EXPECT_EQ(this->store_->stats()->evicted, 0u);
}

REGISTER_TYPED_TEST_SUITE_P(BoundedStoreConformance, WhatWasNotUsedForLongestGoesFirst,
                            AUseThatIsNotedCountsAsOne, WhatIsAlwaysUsedStays,
                            AReplacedEntryCountsOnce);

}  // namespace fixpoint::test
