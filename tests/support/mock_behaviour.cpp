#include "tests/support/mock_behaviour.hpp"

#include <algorithm>
#include <charconv>

namespace fixpoint::test {

std::optional<MockBehaviour> MockBehaviour::of(std::string_view model) {
  if (model != "mock" && !model.starts_with("mock-")) return std::nullopt;
  MockBehaviour result;
  std::string word;
  bool names_fingerprint = false;
  for (std::string_view rest = model.substr(4); !rest.empty();) {
    rest.remove_prefix(1);  // the dash
    const std::size_t dash = std::min(rest.find('-'), rest.size());
    const std::string_view part = rest.substr(0, dash);
    rest.remove_prefix(dash);
    if (names_fingerprint) {
      result.fingerprint_ = part;
      names_fingerprint = false;
      continue;
    }
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error == std::errc() && end == part.data() + part.size() && !word.empty()) {
      result.words_[word].push_back(value);
      continue;
    }
    word = part;
    names_fingerprint = word == "fp";
    result.words_[word];
  }
  return result;
}

std::size_t MockBehaviour::number(std::string_view word, std::size_t index,
                                  std::size_t fallback) const {
  const auto found = words_.find(word);
  if (found == words_.end() || index >= found->second.size()) return fallback;
  return found->second[index];
}

}  // namespace fixpoint::test
