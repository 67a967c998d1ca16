// Byte-pair merges by rank: the inner part of the tokenizer, on ids alone.
#pragma once

#include <cstdint>
#include <vector>

namespace fixpoint::engine {

// Pairs of adjacent tokens that merge, and the order in which they do. Immutable after the last
// add().
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // lower merges first; kNoMerge where the pair does not merge
    std::int32_t id;     // the token that the pair becomes
  };
  static constexpr std::uint32_t kNoMerge = UINT32_MAX;

  explicit MergeTable(std::size_t merges);
  // False if the pair is in the table already.
  bool add(std::int32_t left, std::int32_t right, Merge merge);
  Merge find(std::int32_t left, std::int32_t right) const;

  // Merges until no adjacent pair is in the table: always the pair of the lowest rank, of equal
  // ones the leftmost. O(n log n) for n ids.
  void apply(std::vector<std::int32_t>& ids) const;

 private:
  struct Slot {
    std::uint64_t pair;
    Merge merge;
  };
  std::size_t slot_of(std::uint64_t pair) const;
  void apply_short(std::vector<std::int32_t>& ids) const;
  void apply_long(std::vector<std::int32_t>& ids) const;

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  int shift_;                // 64 - log2(slots)
};

}  // namespace fixpoint::engine
