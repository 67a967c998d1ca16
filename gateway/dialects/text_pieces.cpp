#include "gateway/dialects/text_pieces.hpp"

#include <algorithm>

namespace fixpoint::dialects {
namespace {

constexpr std::size_t kPieceBytes = 24;  // text of one replayed event when tokens are not known

}  // namespace

std::vector<std::string_view> pieces_of(std::string_view text, Pieces size) {
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = size == Pieces::whole ? text.size() : std::min(text.size(), at + kPieceBytes);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

std::vector<std::pair<std::string_view, const Json*>> token_pieces(std::string_view text,
                                                                   const Json* entries,
                                                                   Pieces size) {
  std::vector<std::pair<std::string_view, const Json*>> pieces;
  if (size == Pieces::whole || !entries || !entries->is_array()) return pieces;
  std::size_t at = 0;
  for (const auto& entry : *entries) {
    const std::string* token = text_member(entry, "token");
    if (!token || text.substr(at, token->size()) != *token) return {};
    pieces.emplace_back(text.substr(at, token->size()), &entry);
    at += token->size();
  }
  if (at != text.size()) return {};
  return pieces;
}

}  // namespace fixpoint::dialects
