#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/store.hpp"
#include "tests/unit/cache/store_conformance.hpp"
#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::test {
namespace {

std::unique_ptr<Store> memory() {
  return make_memory_store(16u << 20);
}

struct TieredBackend {
  TemporaryFolder folder;
  std::unique_ptr<Store> open(const StoreLimits& limits = {}) {
    SqliteStoreOptions options;
    options.path = folder.file("cache.db");
    options.limits = limits;
    return make_tiered_store(memory(), std::move(open_sqlite_store(options).value()));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Tiered, StoreConformance, TieredBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Tiered, PersistentStoreConformance, TieredBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Tiered, CompressingStoreConformance, TieredBackend);

// A store in memory that answers look-ups when the test says so, as a remote one would.
class SlowStore final : public Store {
 public:
  void get(const CacheKey& key, GetDone done) override {
    ++gets;
    if (failing) {
      done(fail(ErrorCode::unreachable, "away"));
      return;
    }
    Found found = get_and_wait(*kept_, key);
    if (!holding) {
      done(std::move(found));
      return;
    }
    waiting_.emplace_back(std::move(done), std::move(found));
  }
  void answer() {
    for (auto& [done, found] : std::exchange(waiting_, {})) done(std::move(found));
  }
  void put(EntryPtr entry) override {
    if (on_put) on_put();
    kept_->put(std::move(entry));
  }
  Result<std::uint64_t> purge(const EntryFilter& filter) override {
    if (failing) return fail(ErrorCode::unreachable, "away");
    Result<std::uint64_t> removed = kept_->purge(filter);
    if (after_purge) after_purge();
    return removed;
  }
  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit) override {
    return kept_->for_each(filter, visit);
  }
  Result<StoreStats> stats() override { return kept_->stats(); }
  void flush() override {}
  std::uint64_t failed_writes() const override { return 42; }

  bool holding = false, failing = false;
  int gets = 0;
  std::function<void()> on_put, after_purge;

 private:
  std::unique_ptr<Store> kept_ = memory();
  std::vector<std::pair<GetDone, Found>> waiting_;
};

TEST(TieredStore, WhatMemoryAlwaysAnswersStaysInTheStoreBelow) {
  TieredBackend backend;
  StoreLimits limits;
  limits.max_bytes = 1 << 20;
  limits.compress_above = std::size_t(-1);
  std::unique_ptr<Store> store = backend.open(limits);
  const std::string body(10'000, 'x');
  put(*store, entry_of("0", body));
  for (int i = 1; i < 300; ++i) {
    put(*store, entry_of(std::to_string(i), body));
    store->flush();
    ASSERT_EQ(body_of(*store, key_of("0")), body);
  }
  store.reset();
  store = backend.open(limits);
  EXPECT_EQ(body_of(*store, key_of("0")), body);
  EXPECT_EQ(body_of(*store, key_of("1")), "none");
}

class TieredStoreTest : public ::testing::Test {
 protected:
  TieredStoreTest() {
    auto slow = std::make_unique<SlowStore>();
    below_ = slow.get();
    store_ = make_tiered_store(memory(), std::move(slow));
  }
  // Starts a look-up; the answer's body is in the result once there is one.
  std::shared_ptr<std::optional<std::string>> look_up(const std::string& material) {
    auto result = std::make_shared<std::optional<std::string>>();
    store_->get(key_of(material), [result](const Store::Found& found) {
      *result = !found ? "error" : *found ? *(*found)->body : "none";
    });
    return result;
  }
  SlowStore* below_;
  std::unique_ptr<Store> store_;
};

TEST_F(TieredStoreTest, MemoryAnswersWhatWasPutOrFoundBelow) {
  put(*store_, entry_of("put", "b"));
  EXPECT_EQ(body_of(*store_, key_of("put")), "b");
  EXPECT_EQ(below_->gets, 0);
  put(*below_, entry_of("below", "c"));
  EXPECT_EQ(body_of(*store_, key_of("below")), "c");
  EXPECT_EQ(body_of(*store_, key_of("below")), "c");
  EXPECT_EQ(below_->gets, 1);
  EXPECT_EQ(body_of(*store_, key_of("none")), "none");
  EXPECT_EQ(body_of(*store_, key_of("none")), "none");  // a miss is not remembered
  EXPECT_EQ(below_->gets, 3);
  EXPECT_EQ(store_->failed_writes(), 42u);
  EXPECT_EQ(store_->stats()->entries, 2u);
}

TEST_F(TieredStoreTest, ErrorsOfTheStoreBelowAreTheResult) {
  put(*store_, entry_of("put", "b"));
  below_->failing = true;
  EXPECT_EQ(body_of(*store_, key_of("other")), "error: away");
  EXPECT_EQ(body_of(*store_, key_of("put")), "b");  // memory needs nobody
  EXPECT_EQ(store_->purge({}).error().code, ErrorCode::unreachable);
  EXPECT_EQ(body_of(*store_, key_of("put")), "error: away");  // it is gone from memory all the same
}

TEST_F(TieredStoreTest, APurgeIsNotUndoneByALookUpThatBeganBefore) {
  put(*below_, entry_of("a", "old"));
  below_->holding = true;
  const auto early = look_up("a");
  EXPECT_EQ(*store_->purge({}), 1u);
  below_->answer();
  EXPECT_EQ(*early, "old");  // it was there when that began
  below_->holding = false;
  EXPECT_EQ(body_of(*store_, key_of("a")), "none");
}

TEST_F(TieredStoreTest, APurgeRemovesWhatALookUpFillsBetweenTheTiers) {
  put(*below_, entry_of("a", "old"));
  below_->holding = true;
  const auto early = look_up("a");
  below_->after_purge = [&] { below_->answer(); };
  EXPECT_EQ(*store_->purge({}), 1u);
  EXPECT_EQ(*early, "old");
  below_->holding = false;
  EXPECT_EQ(body_of(*store_, key_of("a")), "none");
}

TEST_F(TieredStoreTest, APutIsNotUndoneByALookUpThatBeganBefore) {
  put(*below_, entry_of("a", "old"));
  below_->holding = true;
  const auto early = look_up("a");
  put(*store_, entry_of("a", "new"));
  below_->answer();
  EXPECT_EQ(*early, "old");
  EXPECT_EQ(body_of(*store_, key_of("a")), "new");
}

TEST_F(TieredStoreTest, APutIsNotUndoneByALookUpThatBeganMeanwhile) {
  put(*below_, entry_of("a", "old"));
  below_->holding = true;
  std::shared_ptr<std::optional<std::string>> early;
  below_->on_put = [&] { early = look_up("a"); };
  put(*store_, entry_of("a", "new"));
  below_->answer();
  EXPECT_EQ(*early, "old");
  EXPECT_EQ(body_of(*store_, key_of("a")), "new");
}

// Versions of each key only grow, for each reader, and a purged key stays away until the next put.
TEST(TieredStore, ThreadsNeverSeeAnOlderAnswerAgain) {
  TieredBackend backend;
  const std::unique_ptr<Store> store = [&] {
    SqliteStoreOptions options;
    options.path = backend.folder.file("cache.db");
    // So small that memory forgets all the time.
    return make_tiered_store(make_memory_store(3000),
                             std::move(open_sqlite_store(options).value()));
  }();
  constexpr int kKeys = 8, kVersions = 400;
  std::atomic<bool> stop = false;
  std::atomic<int> backwards = 0;
  std::vector<std::thread> readers;
  for (unsigned reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      std::mt19937 random(reader);
      std::vector<int> seen(kKeys, -1);
      while (!stop) {
        const std::size_t key = random() % kKeys;
        const std::string body = body_of(*store, key_of(std::to_string(key)));
        if (body == "none") continue;
        const int version = std::stoi(body);
        if (version < seen[key]) ++backwards;
        seen[key] = version;
      }
    });
  }
  for (int version = 0; version < kVersions; ++version) {
    for (int key = 0; key < kKeys; ++key) {
      put(*store, entry_of(std::to_string(key), std::to_string(version)));
    }
    if (version % 20 == 10) {
      EXPECT_TRUE(store->purge({}));
      for (int key = 0; key < kKeys; ++key) {
        EXPECT_EQ(body_of(*store, key_of(std::to_string(key))), "none");
      }
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(backwards, 0);
}

}  // namespace
}  // namespace fixpoint::test
