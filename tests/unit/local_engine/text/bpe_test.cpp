#include "local_engine/text/bpe.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fixpoint::engine {
namespace {

// The definition, one merge at a time.
std::vector<std::int32_t> merge_slowly(const MergeTable& table, std::vector<std::int32_t> ids) {
  for (;;) {
    std::size_t best = 0;
    MergeTable::Merge lowest{MergeTable::kNoMerge, -1};
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const MergeTable::Merge merge = table.find(ids[i], ids[i + 1]);
      if (merge.rank < lowest.rank) {
        lowest = merge;
        best = i;
      }
    }
    if (lowest.rank == MergeTable::kNoMerge) return ids;
    ids[best] = lowest.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Both the scan for short words and the heap for long ones.
TEST(MergeTable, MergesLowestRankLeftmostFirst) {
  EXPECT_TRUE(rc::check("apply() is the definition", [] {
    const int merges = *rc::gen::inRange(0, 60);
    MergeTable table(static_cast<std::size_t>(merges));
    std::int32_t next = 4;
    for (int rank = 0; rank < merges; ++rank) {
      const auto left = *rc::gen::inRange<std::int32_t>(0, next);
      const auto right = *rc::gen::inRange<std::int32_t>(0, next);
      if (table.add(left, right, {static_cast<std::uint32_t>(rank), next})) ++next;
    }
    const auto size = *rc::gen::inRange<std::size_t>(0, 200);
    auto ids =
        *rc::gen::container<std::vector<std::int32_t>>(size, rc::gen::inRange<std::int32_t>(0, 4));
    const auto expected = merge_slowly(table, ids);
    table.apply(ids);
    RC_ASSERT(ids == expected);
  }));
}

TEST(MergeTable, RefusesAPairTwice) {
  MergeTable table(2);
  EXPECT_TRUE(table.add(0, 1, {0, 2}));
  EXPECT_FALSE(table.add(0, 1, {1, 3}));
  EXPECT_EQ(table.find(0, 1).id, 2);
  EXPECT_EQ(table.find(1, 0).rank, MergeTable::kNoMerge);
}

}  // namespace
}  // namespace fixpoint::engine
