// UTF-8 on bytes that may be anything: where the valid runs are, and one code point at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fixpoint::engine {

// Length of the longest prefix of `text` that is valid UTF-8 (no overlong forms, no surrogates, at
// most U+10FFFF).
std::size_t valid_utf8_prefix(std::string_view text);

// Size in bytes (1 to 4) of the valid character at the start of `text`, 0 if there is none.
std::size_t utf8_character_size(std::string_view text);

struct CodePoint {
  char32_t value;    // kInvalidByte + byte where the text is not UTF-8
  std::size_t size;  // bytes read: 1 for an invalid byte
};
// Invalid bytes decode to values above Unicode, so that nothing is lost and none equals a
// character.
inline constexpr char32_t kInvalidByte = 0x110000;

// `text` must not be empty.
CodePoint decode_code_point(std::string_view text);
// Appends the character, or the byte for a value from kInvalidByte on.
void append_code_point(std::string& out, char32_t value);

}  // namespace fixpoint::engine
