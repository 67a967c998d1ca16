#include "local_engine/text/special_tokens.hpp"

namespace fixpoint::engine {

const SpecialTokens::Node* SpecialTokens::child(const Node& node, char byte) const {
  for (const auto& [edge, index] : node.children) {
    if (edge == static_cast<unsigned char>(byte)) return &nodes_[index];
  }
  return nullptr;
}

void SpecialTokens::add(std::string_view spelling, std::int32_t id) {
  begins_[static_cast<unsigned char>(spelling.front())] = true;
  std::size_t at = 0;
  for (const char byte : spelling) {
    const Node* next = child(nodes_[at], byte);
    if (next != nullptr) {
      at = static_cast<std::size_t>(next - nodes_.data());
      continue;
    }
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
    nodes_[at].children.emplace_back(static_cast<unsigned char>(byte), index);
    at = index;
  }
  nodes_[at].id = id;
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text,
                                                        std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Match> longest;
    const Node* node = nodes_.data();
    for (std::size_t at = begin; at < text.size(); ++at) {
      node = child(*node, text[at]);
      if (node == nullptr) break;
      if (node->id >= 0) longest = Match{begin, at + 1 - begin, node->id};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace fixpoint::engine
