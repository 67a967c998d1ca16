#include "local_engine/kv_cache.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fixpoint::engine {
namespace {

constexpr std::size_t kL = kernels::kLeafTokens;

ModelConfig small() {
  ModelConfig config;
  config.layers = 3;
  config.kv_heads = 2;
  config.head_dim = 8;
  return config;
}

TEST(KvPool, CountsPages) {
  EXPECT_EQ(KvPool::page_bytes(small()), 3 * 2 * 16 * kL * sizeof(float));
  EXPECT_EQ(KvPool::pages_for(1), 1U);
  EXPECT_EQ(KvPool::pages_for(kL), 1U);
  EXPECT_EQ(KvPool::pages_for(kL + 1), 2U);
}

TEST(KvPool, GivesEachLeafItsOwnMemory) {
  const auto pool = KvPool::create(small(), 5).value();
  const auto a = pool->reserve(2 * kL).value();
  const auto b = pool->reserve(2 * kL + 1).value();
  EXPECT_EQ(a.capacity(), 2 * kL);
  EXPECT_EQ(b.capacity(), 3 * kL);
  std::set<float*> leaves;
  for (const KvSequence* sequence : {&a, &b}) {
    for (std::size_t layer = 0; layer < 3; ++layer) {
      for (float* leaf : sequence->key_leaves(layer)) leaves.insert(leaf);
      for (float* leaf : sequence->value_leaves(layer)) leaves.insert(leaf);
    }
  }
  ASSERT_EQ(leaves.size(), 5U * 3 * 2);
  float* last = nullptr;
  for (float* leaf : leaves) {
    if (last) {
      EXPECT_GE(leaf - last, static_cast<std::ptrdiff_t>(16 * kL));
    }
    last = leaf;
    leaf[16 * kL - 1] = 1;  // inside the pool: ASan and the system would object otherwise
  }
}

TEST(KvPool, TakesPagesBack) {
  const auto pool = KvPool::create(small(), 4).value();
  {
    auto a = pool->reserve(3 * kL).value();
    EXPECT_EQ(pool->free_pages(), 1U);
    EXPECT_FALSE(pool->reserve(2 * kL));
    EXPECT_EQ(pool->free_pages(), 1U);
    auto b = pool->reserve(kL).value();
    EXPECT_EQ(pool->free_pages(), 0U);
    a = std::move(b);  // each keeps pages of its own until it dies
    EXPECT_EQ(a.capacity(), kL);
  }
  EXPECT_EQ(pool->free_pages(), 4U);
  EXPECT_TRUE(pool->reserve(4 * kL));
}

TEST(KvPool, NamesTheSizeThatTheSystemRefuses) {
  const auto pool = KvPool::create(small(), std::size_t{1} << 40);
  ASSERT_FALSE(pool);
  EXPECT_NE(pool.error().message.find("kv_bytes"), std::string::npos);
}

}  // namespace
}  // namespace fixpoint::engine
