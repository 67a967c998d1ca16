// Takes out of a generation's tokens what must not be logged.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/token_log.hpp"

namespace fixpoint {

struct RedactionOutcome {
  std::size_t redacted_tokens = 0;  // lost their text or that of an alternative
  // Choices that were redacted as a whole because a pattern reached its limit.
  std::size_t gave_up = 0;
};

// PCRE2 patterns (UTF and Unicode properties on), compiled once. Thread-safe. Copies share the
// compiled patterns.
//
// A pattern sees the text of one choice, all of its tokens in a row, so that a token's border hides
// nothing. Every token that a match touches loses its bytes, its id and those of its alternatives
// and is flagged; its log-probabilities and its margin stay. An alternative that was not chosen has
// no text after it: it loses its bytes and id when a match ends in it that begins there or in the
// text before (at most 1 KiB before). An error message in finish_reason has "[redacted]" in a
// match's place.
//
// Nothing hangs: matches are bounded in steps and in the thread's time (kTimePerGeneration, and a
// tenth of a second for the call that passes it), and a choice whose search was cut short is
// redacted as a whole.
class Redactor {
 public:
  static constexpr std::size_t kMaxPatterns = 64;
  static constexpr std::size_t kMaxPatternBytes = 4096;
  static constexpr std::chrono::milliseconds kTimePerGeneration{200};

  // keep_text false: no text and no id of any token is kept, whatever the patterns say.
  // Errors: invalid, naming the pattern and the place in it.
  static Result<Redactor> compile(const std::vector<std::string>& patterns, bool keep_text = true);

  // There is nothing to do for any generation.
  bool idle() const;
  RedactionOutcome redact(GenerationRecord& record) const;

 private:
  struct Impl;
  explicit Redactor(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace fixpoint
