#include "local_engine/text/jinja/unicode.hpp"

#include <utf8proc.h>

#include <array>

#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

utf8proc_category_t category(char32_t point) {
  if (point >= kInvalidByte) return UTF8PROC_CATEGORY_CN;
  return utf8proc_category(static_cast<utf8proc_int32_t>(point));
}

// Titlecase letters (Lt) are cased but neither upper nor lower.
bool is_cased(char32_t point) {
  return is_cased_upper(point) || is_cased_lower(point) || category(point) == UTF8PROC_CATEGORY_LT;
}

// Property Case_Ignorable, close enough for where a final sigma may stand: marks, modifiers, format
// characters, and the punctuation that word breaks treat as part of a word.
bool is_case_ignorable(char32_t point) {
  switch (category(point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return point == U'\'' || point == U'.' || point == U':' || point == 0xB7 || point == 0x2018 ||
             point == 0x2019 || point == 0x2024 || point == 0x2027;
  }
}

// The full case folding; where it has several characters, so has the upper-case mapping, and each
// of its characters maps on its own (true of all of Unicode 15 but the capital forms excluded
// below).
std::size_t full_fold(char32_t point, std::array<utf8proc_int32_t, 4>& out) {
  int boundary = 0;
  const utf8proc_ssize_t size = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(point), out.data(), static_cast<utf8proc_ssize_t>(out.size()),
      UTF8PROC_CASEFOLD, &boundary);
  return size < 0 || size > 4 ? 0 : static_cast<std::size_t>(size);
}

char32_t simple(utf8proc_int32_t (*map)(utf8proc_int32_t), char32_t point) {
  return static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(point)));
}

enum class Case { upper, title };

// Greek with iota subscript (U+1F80 to U+1FFC) has single title-case characters of its own.
// Against Python, title case differs for U+0149 and nine Greek characters with accent and iota
// (U+1FB2, 4, 7, U+1FC2, 4, 7, U+1FF2, 4, 7); upper and lower case for none.
bool has_title_form(char32_t point) {
  return (point >= 0x1F80 && point <= 0x1FAF) || point == 0x1FB3 || point == 0x1FBC ||
         point == 0x1FC3 || point == 0x1FCC || point == 0x1FF3 || point == 0x1FFC;
}

void append_mapped(std::string& out, char32_t point, Case wanted) {
  if (point >= kInvalidByte) {
    append_code_point(out, point);
    return;
  }
  std::array<utf8proc_int32_t, 4> folded;
  const std::size_t size = point < 0x80 ? 1 : full_fold(point, folded);
  const bool title_alone = wanted == Case::title && has_title_form(point);
  // U+0130 and U+1E9E are capitals that fold to two characters.
  if (size > 1 && point != 0x130 && point != 0x1E9E && !title_alone) {
    for (std::size_t i = 0; i < size; ++i) {
      const auto part = static_cast<char32_t>(folded[i]);
      append_code_point(out,
                        i == 0 || wanted == Case::upper ? simple(utf8proc_toupper, part) : part);
    }
    return;
  }
  append_code_point(out,
                    simple(wanted == Case::title ? utf8proc_totitle : utf8proc_toupper, point));
}

// Size in bytes of the last character.
std::size_t last_character_size(std::string_view text) {
  for (std::size_t size = 2; size <= 4 && size <= text.size(); ++size) {
    if (utf8_character_size(text.substr(text.size() - size)) == size) return size;
  }
  return 1;
}

bool cased_before(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = last_character_size(text);
    const char32_t point = decode_code_point(text.substr(text.size() - size)).value;
    if (!is_case_ignorable(point)) return is_cased(point);
    text.remove_suffix(size);
  }
  return false;
}

bool cased_after(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = decode_code_point(text);
    if (!is_case_ignorable(point.value)) return is_cased(point.value);
    text.remove_prefix(point.size);
  }
  return false;
}

// Lower case of the character `point` at `text[at]`.
void append_lower(std::string& out, std::string_view text, std::size_t at, CodePoint point) {
  if (point.value == 0x130) {
    out += "i\xCC\x87";
  } else if (point.value == 0x3A3) {  // sigma has a final form
    const bool final =
        cased_before(text.substr(0, at)) && !cased_after(text.substr(at + point.size));
    append_code_point(out, final ? 0x3C2 : 0x3C3);
  } else if (point.value >= kInvalidByte) {
    append_code_point(out, point.value);
  } else {
    append_code_point(out, simple(utf8proc_tolower, point.value));
  }
}

// Calls visit(byte offset, code point) for every character.
template <class Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_code_point(text.substr(at));
    visit(at, point);
    at += point.size;
  }
}

bool is_line_end(char32_t point) {
  return (point >= 0x0A && point <= 0x0D) || (point >= 0x1C && point <= 0x1E) || point == 0x85 ||
         point == 0x2028 || point == 0x2029;
}

}  // namespace

bool is_space(char32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
         point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) ||
         point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
         point == 0x3000;
}

bool is_printable(char32_t point) {
  switch (category(point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return point == U' ';
    default:
      return true;
  }
}

bool is_cased_upper(char32_t point) {
  return category(point) == UTF8PROC_CATEGORY_LU;
}
bool is_cased_lower(char32_t point) {
  return category(point) == UTF8PROC_CATEGORY_LL;
}

std::size_t count_characters(std::string_view text) {
  return character_index(text, text.size());
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = decode_code_point(text.substr(at)).size;
    out.push_back(text.substr(at, size));
    at += size;
  }
  return out;
}

std::size_t character_index(std::string_view text, std::size_t byte) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < byte; ++count) at += decode_code_point(text.substr(at)).size;
  return count;
}

std::string to_upper(std::string_view text) {
  std::string out;
  for_each_character(
      text, [&](std::size_t, CodePoint point) { append_mapped(out, point.value, Case::upper); });
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  for_each_character(text,
                     [&](std::size_t at, CodePoint point) { append_lower(out, text, at, point); });
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::size_t at, CodePoint point) {
    if (at == 0) {
      append_mapped(out, point.value, Case::title);
    } else {
      append_lower(out, text, at, point);
    }
  });
  return out;
}

std::string title_case(std::string_view text) {
  std::string out;
  bool inside_word = false;
  for_each_character(text, [&](std::size_t at, CodePoint point) {
    if (inside_word) {
      append_lower(out, text, at, point);
    } else {
      append_mapped(out, point.value, Case::title);
    }
    inside_word = is_cased(point.value);
  });
  return out;
}

std::string_view strip(std::string_view text, Side side, const std::string_view* set) {
  const std::vector<std::string_view> stripped =
      set == nullptr ? std::vector<std::string_view>() : characters(*set);
  const auto goes = [&](std::string_view character) {
    if (set == nullptr) return is_space(decode_code_point(character).value);
    for (const std::string_view candidate : stripped) {
      if (candidate == character) return true;
    }
    return false;
  };
  if (side != Side::right) {
    while (!text.empty()) {
      const std::size_t size = decode_code_point(text).size;
      if (!goes(text.substr(0, size))) break;
      text.remove_prefix(size);
    }
  }
  if (side != Side::left) {
    while (!text.empty()) {
      const std::size_t begin = text.size() - last_character_size(text);
      if (!goes(text.substr(begin))) break;
      text = text.substr(0, begin);
    }
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_code_point(text.substr(at));
    if (!is_line_end(point.value)) {
      at += point.size;
      continue;
    }
    lines.push_back(text.substr(begin, at - begin));
    at += text.substr(at, 2) == "\r\n" ? 2 : point.size;
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace fixpoint::engine::jinja
