#include "local_engine/text/pretokenize.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>

#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine {

namespace {

struct Family {
  std::string_view name;
  const char* pattern;  // as published, \s and \S included
  bool compose;         // NFC first
  bool whole_words_first;
};

// Sources of the patterns: the tokenizer.json files of the model families; gpt-2 is the ByteLevel
// pre-tokenizer's built-in pattern. smollm is published as two steps, "isolate every digit, then
// the gpt-2 pattern on each piece between". As one pattern: a digit is an alternative of its own,
// and a digit ends a run of spaces as the end of the text does (the published pieces end there).
constexpr std::array<Family, 4> kFamilies = {{
    {"smollm", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)",
     false, false},
    {"gpt-2", R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", false,
     false},
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     false, true},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     true, false},
}};

// PCRE2's \s under UCP has one code point too many (U+180E) for Oniguruma, which the published
// patterns were written for. These are the 25 code points with the property White_Space.
std::string expand_space_classes(std::string_view pattern) {
  constexpr std::string_view kWhiteSpace =
      R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      const char next = pattern[++i];
      if (next == 's') {
        out += in_class ? std::string(kWhiteSpace) : "[" + std::string(kWhiteSpace) + "]";
      } else if (next == 'S') {
        out += "[^" + std::string(kWhiteSpace) + "]";  // never inside a class in these patterns
      } else {
        out += c;
        out += next;
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using Code = std::unique_ptr<pcre2_code, FreeCode>;
using MatchData = std::unique_ptr<pcre2_match_data, FreeMatch>;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeContext>;

// Anchored: the patterns match at every position of non-empty text, so nothing is ever searched
// for.
Code compile(const Family& family) {
  const std::string pattern = expand_space_classes(family.pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, &error,
                          &offset, nullptr));
  if (!code) throw std::logic_error("pre-tokenizer pattern does not compile");
  // Without a JIT for this machine pcre2_match interprets the pattern: slower, the same words.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// Everything below U+0300 is composed already and composes with nothing before it.
bool surely_composed(std::string_view valid_utf8) {
  for (const char c : valid_utf8) {
    if (static_cast<unsigned char>(c) >= 0xCC) return false;  // U+0300 is CC 80
  }
  return true;
}

std::string compose(std::string_view valid_utf8) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid_utf8.data()),
                   static_cast<utf8proc_ssize_t>(valid_utf8.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) throw std::bad_alloc();  // valid input leaves no other error
  std::string out(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(size));
  std::free(composed);
  return out;
}

}  // namespace

struct PreTokenizer::Impl {
  const Family* family;
  Code code;
  MatchContext context;

  void split_valid(std::string_view text, const Word& word) const {
    const MatchData data(pcre2_match_data_create(1, nullptr));
    if (!data) throw std::bad_alloc();
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
    for (std::size_t at = 0; at < text.size(); at = span[1]) {
      const int matched = pcre2_match(code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                                      data.get(), context.get());
      if (matched < 0 || span[1] <= at) {
        throw std::logic_error("pre-tokenizer pattern failed with PCRE2 error " +
                               std::to_string(matched));
      }
      word(text.substr(at, span[1] - at));
    }
  }
};

PreTokenizer::PreTokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreTokenizer::~PreTokenizer() = default;

Result<std::unique_ptr<PreTokenizer>> PreTokenizer::create(std::string_view name) {
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.name == name) {
      MatchContext context(pcre2_match_context_create(nullptr));
      if (!context) throw std::bad_alloc();
      // A run of one class takes one step per character to give back; text is bounded elsewhere.
      pcre2_set_match_limit(context.get(), UINT32_MAX);
      auto impl = std::make_unique<Impl>(Impl{&family, compile(family), std::move(context)});
      return std::unique_ptr<PreTokenizer>(new PreTokenizer(std::move(impl)));
    }
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  }
  return fail(ErrorCode::unsupported, "pre-tokenizer '" + std::string(name) +
                                          "' is not implemented (known: " + known + ")");
}

std::string_view pre_tokenizer_with_pattern(std::string_view pattern) {
  for (const Family& family : kFamilies) {
    if (family.pattern == pattern) return family.name;
  }
  return {};
}

void PreTokenizer::split(std::string_view text, const Word& word) const {
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    const std::string_view run = text.substr(0, valid);
    if (impl_->family->compose && !surely_composed(run)) {
      impl_->split_valid(compose(run), word);
    } else {
      impl_->split_valid(run, word);
    }
    text.remove_prefix(valid);
    if (text.empty()) return;
    word(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

bool PreTokenizer::whole_words_first() const {
  return impl_->family->whole_words_first;
}

std::string PreTokenizer::unicode_versions() const {
  std::array<char, 64> version{};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version.data());
  std::string out = std::string("pcre2 ") + version.data();
  if (impl_->family->compose) out += std::string(" utf8proc ") + utf8proc_unicode_version();
  return out;
}

}  // namespace fixpoint::engine
