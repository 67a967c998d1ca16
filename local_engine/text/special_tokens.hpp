// Finds special tokens spelled out in text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fixpoint::engine {

// A trie over the spellings. Immutable after the last add().
class SpecialTokens {
 public:
  struct Match {
    std::size_t begin;
    std::size_t size;
    std::int32_t id;
  };

  void add(std::string_view spelling, std::int32_t id);
  // The leftmost match at or after `from`, and the longest of those that begin there.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::uint32_t>> children;  // few: searched in order
    std::int32_t id = -1;
  };
  const Node* child(const Node& node, char byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  bool begins_[256] = {};  // bytes that some spelling begins with
};

}  // namespace fixpoint::engine
