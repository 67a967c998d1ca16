#include "local_engine/text/bpe.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>

namespace fixpoint::engine {

namespace {

// No pair of two non-negative ids has this value.
constexpr std::uint64_t kEmpty = UINT64_MAX;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

// Up to here, scanning all ranks for the lowest costs less than a heap.
constexpr std::size_t kShort = 48;

}  // namespace

MergeTable::MergeTable(std::size_t merges)
    : slots_(std::bit_ceil(2 * merges + 2), Slot{kEmpty, {kNoMerge, -1}}),
      shift_(64 - std::countr_zero(slots_.size())) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  // Fibonacci hashing: 2^64 over the golden ratio, the upper bits.
  std::size_t at = (pair * 0x9E3779B97F4A7C15u) >> shift_;
  while (slots_[at].pair != kEmpty && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
  return at;
}

bool MergeTable::add(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t pair = pair_of(left, right);
  Slot& slot = slots_[slot_of(pair)];
  if (slot.pair == pair) return false;
  slot = {pair, merge};
  return true;
}

MergeTable::Merge MergeTable::find(std::int32_t left, std::int32_t right) const {
  return slots_[slot_of(pair_of(left, right))].merge;
}

void MergeTable::apply(std::vector<std::int32_t>& ids) const {
  if (ids.size() <= kShort) {
    apply_short(ids);
  } else {
    apply_long(ids);
  }
}

void MergeTable::apply_short(std::vector<std::int32_t>& ids) const {
  std::size_t size = ids.size();
  if (size < 2) return;
  std::array<Merge, kShort> merges;  // merges[i]: what ids[i] and ids[i + 1] become
  for (std::size_t i = 0; i + 1 < size; ++i) merges[i] = find(ids[i], ids[i + 1]);
  while (size > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < size; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNoMerge) break;
    ids[best] = merges[best].id;
    for (std::size_t i = best + 1; i + 1 < size; ++i) {
      ids[i] = ids[i + 1];
      merges[i] = merges[i + 1];  // the last one is not in use
    }
    --size;
    if (best > 0) merges[best - 1] = find(ids[best - 1], ids[best]);
    if (best + 1 < size) merges[best] = find(ids[best], ids[best + 1]);
  }
  ids.resize(size);
}

void MergeTable::apply_long(std::vector<std::int32_t>& ids) const {
  // A doubly linked list over the ids; a merge keeps its left node. A heap entry is stale when one
  // of its nodes has changed since: then its pair is no longer what the entry says.
  constexpr std::size_t kEnd = SIZE_MAX;
  struct Node {
    std::int32_t id;  // -1: merged away
    std::size_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;
    std::int32_t left, right, merged;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::vector<Node> nodes(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    nodes[i] = {ids[i], i == 0 ? kEnd : i - 1, i + 1 == ids.size() ? kEnd : i + 1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto consider = [&](std::size_t at) {
    if (at == kEnd || nodes[at].next == kEnd) return;
    const std::int32_t left = nodes[at].id;
    const std::int32_t right = nodes[nodes[at].next].id;
    const Merge merge = find(left, right);
    if (merge.rank != kNoMerge) heap.push({merge.rank, at, left, right, merge.id});
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) consider(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Node& left = nodes[best.at];
    if (left.id != best.left || left.next == kEnd || nodes[left.next].id != best.right) continue;
    Node& right = nodes[left.next];
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next != kEnd) nodes[left.next].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
  ids.clear();
  for (std::size_t at = 0; at != kEnd; at = nodes[at].next) ids.push_back(nodes[at].id);
}

}  // namespace fixpoint::engine
