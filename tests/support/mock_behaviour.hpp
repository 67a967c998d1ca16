// The behaviour that a model's name asks for: "mock" and words after it, each with numbers of its
// own: "mock-delay-500", "mock-retry-1-429-retryafterms-50", "mock-crlf-split".
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::test {

class MockBehaviour {
 public:
  // Nothing: the name does not begin with "mock". Words without a meaning only name a model.
  static std::optional<MockBehaviour> of(std::string_view model);

  bool has(std::string_view word) const { return words_.find(word) != words_.end(); }
  // The word's argument at `index`; `fallback` where there is none.
  std::size_t number(std::string_view word, std::size_t index = 0, std::size_t fallback = 0) const;
  // What follows "fp-", up to the next dash.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::map<std::string, std::vector<std::size_t>, std::less<>> words_;
  std::string fingerprint_ = "fp_mock";
};

}  // namespace fixpoint::test
