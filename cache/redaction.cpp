#include "cache/redaction.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace fixpoint {
namespace {

// Steps that one try at one place of the text may take. Patterns for addresses, keys and numbers
// take tens.
constexpr std::uint32_t kMatchLimit = 10'000;
constexpr std::uint32_t kHeapKibibytes = 4096;   // where there is no JIT
constexpr std::size_t kStackBytes = 512 * 1024;  // of JIT code
// Places that one call tries: PCRE2 counts the steps of each place anew, and a run of one kind of
// character (\w+) is one step, however long. So a call reads at most about kBytesPerCall bytes, a
// tenth of a second in the worst case; the time is looked at between calls.
constexpr std::size_t kBytesPerCall = 128u << 20;
constexpr std::size_t kMaxPlacesPerCall = 4096;
// Of a choice's text before a token: how far back a match may begin that its alternative ends.
constexpr std::size_t kTailBytes = 1024;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

// What a match writes to: one for each thread.
class Scratch {
 public:
  Scratch()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(32 * 1024, kStackBytes, nullptr)) {
    if (!data_ || !context_) throw std::bad_alloc();
    pcre2_set_match_limit(context_.get(), kMatchLimit);
    pcre2_set_heap_limit(context_.get(), kHeapKibibytes);
    // Without a JIT there is no stack either.
    if (stack_) pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
  }

  // Matches that begin in [start, start + places].
  int match(const pcre2_code* code, std::string_view text, std::size_t start, std::size_t places,
            std::uint32_t options = 0) {
    pcre2_set_offset_limit(context_.get(), start + places);
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                       PCRE2_NOTEMPTY | options, data_.get(), context_.get());
  }
  const PCRE2_SIZE* span() { return pcre2_get_ovector_pointer(data_.get()); }

 private:
  std::unique_ptr<pcre2_match_data, FreeMatch> data_;
  std::unique_ptr<pcre2_match_context, FreeContext> context_;
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack_;
};

Scratch& scratch() {
  thread_local Scratch one;
  return one;
}

struct Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::uint32_t min_length = 0;  // characters of the shortest match
  std::optional<char> required;  // is in every match

  // false: no match is in `text`, to be seen without a search.
  bool may_match(std::string_view text) const {
    // A character has a byte or more.
    return text.size() >= min_length &&
           (!required || text.find(*required) != std::string_view::npos);
  }
};

// The rightmost character that is in every match, if the pattern has one. Letters may stand for
// other cases, too.
std::optional<char> required_in(const pcre2_code* code) {
  std::uint32_t type = 0, unit = 0;
  pcre2_pattern_info(code, PCRE2_INFO_LASTCODETYPE, &type);
  pcre2_pattern_info(code, PCRE2_INFO_LASTCODEUNIT, &unit);
  const bool letter = (unit | 0x20) >= 'a' && (unit | 0x20) <= 'z';
  if (type != 1 || unit >= 0x80 || letter) return std::nullopt;
  return static_cast<char>(unit);
}

std::string error_text(int code) {
  PCRE2_UCHAR text[128];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// The first letter that begins at `at` or behind it: no search can begin inside one.
std::size_t letter_from(std::string_view text, std::size_t at) {
  while (at < text.size() && continues_character(text[at])) ++at;
  return std::min(at, text.size());
}

// Without the beginning of a letter that the text's end cuts off.
std::string_view whole_letters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (continues_character(text[text.size() - back])) continue;
    const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    if (size > back) text.remove_suffix(back);
    break;
  }
  return text;
}

// Time of this thread alone: what else the machine does redacts nothing.
std::chrono::nanoseconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

using Deadline = std::chrono::nanoseconds;  // in thread_time()

// Calls `found` with the beginning and end of every match from `start` on, in order; it says where
// the search goes on. false: a limit was reached or the deadline passed, and what is in the rest of
// the text is not known.
template <class Found>
bool find_from(std::size_t start, const Pattern& pattern, std::string_view text, Deadline deadline,
               Found found) {
  const std::size_t places =
      text.empty() ? 0 : std::clamp<std::size_t>(kBytesPerCall / text.size(), 1, kMaxPlacesPerCall);
  while (start < text.size()) {
    const int matched = scratch().match(pattern.code.get(), text, start, places);
    if (matched == PCRE2_ERROR_NOMATCH) {
      start = letter_from(text, start + places + 1);
    } else {
      const PCRE2_SIZE* span = scratch().span();
      // \K in a look-around can make a match end before it begins.
      if (matched < 0 || span[1] <= start || span[0] >= span[1]) return false;
      const std::size_t next = found(span[0], span[1]);
      if (next <= start) return false;
      start = next;
    }
    if (start < text.size() && thread_time() > deadline) return false;
  }
  return true;
}

// The same with matches that do not overlap.
template <class Found>
bool find_all(const Pattern& pattern, std::string_view text, Deadline deadline, Found found) {
  return find_from(0, pattern, text, deadline, [&](std::size_t begin, std::size_t end) {
    found(begin, end);
    return end;
  });
}

// The first place from `start` on where a match may begin that goes on behind the end of `text`;
// the end: there is none. Nothing: a limit was reached.
std::optional<std::size_t> first_open(const Pattern& pattern, std::string_view text,
                                      std::size_t start) {
  while (start < text.size()) {
    const int matched =
        scratch().match(pattern.code.get(), text, start, text.size() - start, PCRE2_PARTIAL_HARD);
    if (matched == PCRE2_ERROR_NOMATCH) break;
    const std::size_t begin = scratch().span()[0];
    if (matched == PCRE2_ERROR_PARTIAL) return begin;
    // A match that ends before: not with what follows, but one that begins inside it may be.
    if (matched < 0 || begin < start) return std::nullopt;
    start = letter_from(text, begin + 1);
  }
  return text.size();
}

void take_text(LoggedToken& token) {
  token.bytes.clear();
  token.id.reset();
  for (LoggedAlternative& alternative : token.top) {
    alternative.bytes.clear();
    alternative.id.reset();
  }
  token.redacted = true;
}

// Takes out the alternatives with which the text before them would match, token by token. What
// follows a token that was not chosen is not known.
class Alternatives {
 public:
  Alternatives(const std::vector<Pattern>& patterns, Deadline deadline)
      : patterns_(patterns), open_(patterns.size()), deadline_(deadline) {}

  void redact(LoggedToken& token) {
    for (LoggedAlternative& alternative : token.top) {
      if (alternative.bytes.empty() || alternative.bytes == token.bytes) continue;
      if (!completes_match(alternative.bytes)) continue;
      alternative.bytes.clear();
      alternative.id.reset();
      token.redacted = true;
    }
  }
  // The next token comes after this text.
  void append(std::string_view bytes) { text_ += bytes; }

 private:
  struct Open {
    // No match that begins before this place reaches the end of the text, however it goes on. So a
    // search begins where the last one ended, and most text is looked at once.
    std::size_t at = 0;
    std::size_t text_size = 0;  // when it was looked for
  };

  bool completes_match(std::string_view bytes) {
    const std::size_t size = text_.size();
    text_ += bytes;
    bool found = gave_up_;
    for (std::size_t i = 0; i < patterns_.size() && !found; ++i) {
      found = completes(patterns_[i], open_[i], size) || gave_up_;
    }
    text_.resize(size);
    return found;
  }

  // A match that begins in the first `size` bytes of the text, or behind them, ends behind them.
  bool completes(const Pattern& pattern, Open& open, std::size_t size) {
    const std::string_view with(text_);
    const std::string_view before = whole_letters(with.substr(0, size));
    open.at = std::max(open.at, before.size() - std::min(before.size(), kTailBytes));
    if (!pattern.may_match(with.substr(open.at))) return false;
    if (open.text_size != size) {
      look_back(pattern, open, before);
      open.text_size = size;
      if (!pattern.may_match(with.substr(open.at))) return false;
    }
    bool found = false;
    const std::size_t start = letter_from(with, open.at);
    count_time(with.size() - start);
    const bool whole =
        find_from(start, pattern, with, deadline_, [&](std::size_t begin, std::size_t end) {
          found = end > size;
          return found ? with.size() : letter_from(with, begin + 1);
        });
    return found || !whole;
  }

  void look_back(const Pattern& pattern, Open& open, std::string_view before) {
    const std::size_t start = letter_from(before, open.at);
    count_time(before.size() - start);
    const std::optional<std::size_t> at = first_open(pattern, before, start);
    gave_up_ = gave_up_ || !at;
    if (at) open.at = *at;
  }

  // The clock costs more than a short search.
  void count_time(std::size_t places) {
    places_ += places;
    if (places_ < kTailBytes) return;
    places_ = 0;
    gave_up_ = gave_up_ || thread_time() > deadline_;
  }

  const std::vector<Pattern>& patterns_;
  std::string text_;
  std::vector<Open> open_;  // of each pattern
  const Deadline deadline_;
  std::size_t places_ = 0;  // that were tried since the last look at the clock
  bool gave_up_ = false;    // from here on every alternative goes
};

}  // namespace

struct Redactor::Impl {
  bool keep_text = true;
  std::vector<Pattern> patterns;

  void redact_choice(std::span<LoggedToken> tokens, Deadline deadline,
                     RedactionOutcome& outcome) const;
  bool find_touched(std::span<const LoggedToken> tokens, std::vector<bool>& touched,
                    Deadline deadline) const;
  std::string redact_message(std::string_view text, Deadline deadline) const;
};

Redactor::Redactor(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Redactor> Redactor::compile(const std::vector<std::string>& patterns, bool keep_text) {
  if (patterns.size() > kMaxPatterns) {
    return fail(ErrorCode::invalid, "redact: " + std::to_string(patterns.size()) +
                                        " patterns, at most " + std::to_string(kMaxPatterns));
  }
  auto impl = std::make_shared<Impl>();
  impl->keep_text = keep_text;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const std::string& text = patterns[i];
    const std::string name = "redact[" + std::to_string(i) + "]: ";
    if (text.empty()) return fail(ErrorCode::invalid, name + "an empty pattern");
    if (text.size() > kMaxPatternBytes) {
      return fail(ErrorCode::invalid, name + std::to_string(text.size()) + " bytes, at most " +
                                          std::to_string(kMaxPatternBytes));
    }
    int error = 0;
    PCRE2_SIZE offset = 0;
    // Token bytes need not be UTF-8 (MATCH_INVALID_UTF: no match spans what is not). \C would see
    // half a character.
    Pattern pattern{{pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF |
                                       PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C,
                                   &error, &offset, nullptr),
                     {}},
                    0,
                    {}};
    if (!pattern.code) {
      return fail(ErrorCode::invalid, name + "'" + text + "' is no PCRE2 pattern: " +
                                          error_text(error) + " at byte " + std::to_string(offset));
    }
    // Without a JIT for this machine pcre2_match interprets the pattern: slower, the same matches.
    pcre2_jit_compile(pattern.code.get(), PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    pcre2_pattern_info(pattern.code.get(), PCRE2_INFO_MINLENGTH, &pattern.min_length);
    pattern.required = required_in(pattern.code.get());
    impl->patterns.push_back(std::move(pattern));
  }
  return Redactor(std::move(impl));
}

bool Redactor::idle() const {
  return impl_->keep_text && impl_->patterns.empty();
}

RedactionOutcome Redactor::redact(GenerationRecord& record) const {
  RedactionOutcome outcome;
  if (idle()) return outcome;
  const Deadline deadline = thread_time() + kTimePerGeneration;
  for (std::size_t begin = 0; begin < record.tokens.size();) {
    std::size_t end = begin + 1;
    while (end < record.tokens.size() && record.tokens[end].choice == record.tokens[begin].choice) {
      ++end;
    }
    impl_->redact_choice({record.tokens.data() + begin, end - begin}, deadline, outcome);
    begin = end;
  }
  outcome.redacted_tokens = static_cast<std::size_t>(
      std::count_if(record.tokens.begin(), record.tokens.end(),
                    [](const LoggedToken& token) { return token.redacted; }));
  if (!impl_->patterns.empty() && record.finish_reason.starts_with("error")) {
    record.finish_reason = impl_->redact_message(record.finish_reason, deadline);
  }
  return outcome;
}

void Redactor::Impl::redact_choice(std::span<LoggedToken> tokens, Deadline deadline,
                                   RedactionOutcome& outcome) const {
  std::vector<bool> touched(tokens.size(), !keep_text);
  if (keep_text && !find_touched(tokens, touched, deadline)) {
    touched.assign(tokens.size(), true);
    ++outcome.gave_up;
  }
  Alternatives alternatives(patterns, deadline);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!touched[i]) alternatives.redact(tokens[i]);
    alternatives.append(tokens[i].bytes);
    if (touched[i]) take_text(tokens[i]);
  }
}

bool Redactor::Impl::find_touched(std::span<const LoggedToken> tokens, std::vector<bool>& touched,
                                  Deadline deadline) const {
  std::string text;
  std::vector<std::size_t> begins;  // of each token in the text
  begins.reserve(tokens.size());
  for (const LoggedToken& token : tokens) {
    begins.push_back(text.size());
    text += token.bytes;
  }
  for (const Pattern& pattern : patterns) {
    const bool whole = find_all(pattern, text, deadline, [&](std::size_t begin, std::size_t end) {
      auto at = std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1;
      for (; at < std::ssize(begins) && begins[static_cast<std::size_t>(at)] < end; ++at) {
        touched[static_cast<std::size_t>(at)] = true;
      }
    });
    if (!whole) return false;
  }
  return true;
}

std::string Redactor::Impl::redact_message(std::string_view text, Deadline deadline) const {
  static constexpr std::string_view kMark = "[redacted]";
  std::string current(text);
  for (const Pattern& pattern : patterns) {
    std::string next;
    std::size_t copied = 0;
    const bool whole =
        find_all(pattern, current, deadline, [&](std::size_t begin, std::size_t end) {
          next.append(current, copied, begin - std::min(copied, begin));
          next += kMark;
          copied = end;
        });
    if (!whole) return "error: " + std::string(kMark);
    next.append(current, copied);
    current = std::move(next);
  }
  return current;
}

}  // namespace fixpoint
