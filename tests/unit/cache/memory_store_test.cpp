#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/store.hpp"
#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {
namespace {

struct MemoryBackend {
  std::unique_ptr<Store> open(const StoreLimits& limits = {}) {
    return make_memory_store(limits.max_bytes);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreConformance, MemoryBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, BoundedStoreConformance, MemoryBackend);

constexpr std::uint64_t kMegabyte = 1 << 20;

EntryPtr get(Store& store, const CacheKey& key) {
  const Store::Found found = get_and_wait(store, key);
  return found ? *found : nullptr;
}

TEST(MemoryStore, ReadersShareTheEntry) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte);
  const EntryPtr entry = shared(entry_of("a", "b"));
  store->put(entry);
  EXPECT_EQ(get(*store, entry->key), entry);
}

TEST(MemoryStore, FormsStayWithTheEntryAndCount) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte);
  for (int i = 0; i < 10; ++i) put(*store, entry_of(std::to_string(i), "body"));
  const auto form = std::make_shared<const std::string>(300'000, 'x');
  get(*store, key_of("0"))->forms.keep(7, form);
  EXPECT_EQ(get(*store, key_of("0"))->forms.find(7), form);
  for (int i = 1; i < 4; ++i) get(*store, key_of(std::to_string(i)))->forms.keep(7, form);
  put(*store, entry_of("10", "body"));     // makes room: 4 forms are more than a megabyte
  EXPECT_EQ(store->stats()->evicted, 7u);  // 4 to 9, which were not read, and 0
  EXPECT_EQ(get(*store, key_of("0")), nullptr);
  EXPECT_EQ(get(*store, key_of("3"))->forms.find(7), form);
  EXPECT_NE(get(*store, key_of("10")), nullptr);
}

// Look-ups alone make room for what readers keep: many entries that are read and never put.
TEST(MemoryStore, FormsThatReadersKeepStayWithinTheLimit) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte);
  for (int i = 0; i < 100; ++i) put(*store, entry_of(std::to_string(i), "body"));
  std::vector<std::weak_ptr<const std::string>> forms;
  for (int i = 0; i < 100; ++i) {
    if (const EntryPtr entry = get(*store, key_of(std::to_string(i)))) {
      const auto form = std::make_shared<const std::string>(50'000, 'x');
      forms.push_back(form);
      entry->forms.keep(1, form);
    }
  }
  EXPECT_GT(forms.size(), 10u);
  const auto kept =
      std::count_if(forms.begin(), forms.end(), [](const auto& form) { return !form.expired(); });
  EXPECT_LE(kept * 50'000, std::int64_t{kMegabyte} + 50'000);
  EXPECT_GT(kept * 50'000, std::int64_t{kMegabyte} / 2);
  EXPECT_GT(store->stats()->evicted, 0u);
}

TEST(MemoryStore, FormsOfAnEntryThatIsGoneDoNotCount) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte);
  put(*store, entry_of("a", "body"));
  const EntryPtr held = get(*store, key_of("a"));
  EXPECT_EQ(*store->purge({}), 1u);
  held->forms.keep(1, std::make_shared<const std::string>(2 * kMegabyte, 'x'));
  put(*store, entry_of("b", "body"));
  EXPECT_NE(get(*store, key_of("b")), nullptr);
  store->put(held);  // comes with more than there is room for
  EXPECT_EQ(get(*store, key_of("a")), nullptr);
}

TEST(MemoryStore, RefusesAnEntryThatIsLargerThanItsShare) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte);
  put(*store, entry_of("a", "small"));
  put(*store, entry_of("a", std::string(kMegabyte, 'x')));
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_EQ(body_of(*store, key_of("a")), "none");  // and not the one before it
}

TEST(MemoryStore, EntriesOfACertainAgeAreMisses) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte, std::chrono::milliseconds(20));
  put(*store, entry_of("a", "b"));
  EXPECT_TRUE(eventually([&] { return get(*store, key_of("a")) == nullptr; }));
  EXPECT_EQ(store->stats()->entries, 0u);
  put(*store, entry_of("a", "c"));
  const std::unique_ptr<Store> patient = make_memory_store(kMegabyte, std::chrono::hours(24));
  put(*patient, entry_of("a", "b"));
  EXPECT_EQ(body_of(*patient, key_of("a")), "b");
}

// Accounting holds for every size of entry: what is kept together is never more than the limit.
TEST(MemoryStore, TheLimitHoldsForManySizes) {
  const std::unique_ptr<Store> store = make_memory_store(16 * kMegabyte);
  std::uint64_t puts = 0;
  for (const std::size_t size : {1u, 100u, 10'000u, 1'000'000u}) {
    for (std::size_t i = 0; i < 20 * kMegabyte / (size + 1000); ++i, ++puts) {
      put(*store, entry_of(std::to_string(puts), std::string(size, 'x')));
    }
    const Result<StoreStats> stats = store->stats();
    EXPECT_EQ(stats->entries + stats->evicted, puts);
    EXPECT_LE(stats->bytes + stats->entries * sizeof(Entry), 16 * kMegabyte);
    EXPECT_GT(stats->bytes + stats->entries * (sizeof(Entry) + 1000), 12 * kMegabyte);
  }
}

TEST(MemoryStore, ThreadsPutGetPurgeAndKeepFormsAtOnce) {
  const std::unique_ptr<Store> store = make_memory_store(kMegabyte / 4);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 3000; ++i) {
        const std::string name = std::to_string((i * 7 + thread) % 50);
        if (i % 5 == 0) put(*store, entry_of(name, std::string(2000, 'b')));
        if (const EntryPtr entry = get(*store, key_of(name))) {
          if (entry->forms.find(1) == nullptr) {
            entry->forms.keep(1, std::make_shared<const std::string>(3000, 'f'));
          }
        }
        EntryFilter filter;
        filter.key = key_of(name).name();
        if (i % 11 == 0) (void)store->purge(filter);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store->stats()->bytes, kMegabyte / 4);
}

}  // namespace
}  // namespace fixpoint::test
