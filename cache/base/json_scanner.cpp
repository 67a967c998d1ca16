#include "cache/base/json_scanner.hpp"

namespace fixpoint {
namespace json_scanner_detail {

std::size_t utf8_length(const unsigned char* at, const unsigned char* end) {
  const auto left = static_cast<std::size_t>(end - at);
  const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
    return i < left && at[i] >= low && at[i] <= high;
  };
  const unsigned first = at[0];
  if (first >= 0xC2 && first <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {  // neither overlong (E0) nor a surrogate (ED)
    const bool second = follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return second && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {  // neither overlong (F0) nor beyond U+10FFFF (F4)
    const bool second = follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

}  // namespace json_scanner_detail

namespace {

unsigned hex4(const char* at) {
  unsigned value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    value = value * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

void append_utf8(std::string& out, unsigned point) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  }
}

}  // namespace

std::size_t json_escape_length(std::string_view text) {
  if (text[1] != 'u') return 2;
  const unsigned unit = hex4(text.data() + 2);
  return unit >= 0xD800 && unit <= 0xDBFF ? 12 : 6;
}

std::string decode_json_string(const JsonString& string) {
  const std::string_view raw = string.raw;
  if (string.plain) return std::string(raw);
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size();) {
    const std::size_t slash = std::min(raw.find('\\', i), raw.size());
    out.append(raw, i, slash - i);
    if (slash == raw.size()) break;
    const char kind = raw[slash + 1];
    i = slash + 2;
    switch (kind) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        unsigned point = hex4(raw.data() + i);
        i += 4;
        const bool follows = point >= 0xD800 && point <= 0xDBFF && raw.substr(i, 2) == "\\u";
        const unsigned low = follows ? hex4(raw.data() + i + 2) : 0;
        if (low >= 0xDC00 && low <= 0xDFFF) {
          point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
          i += 6;
        } else if (point >= 0xD800 && point <= 0xDFFF) {
          point = 0xFFFD;
        }
        append_utf8(out, point);
        break;
      }
      default:  // '"', '\\', '/'
        out += kind;
    }
  }
  return out;
}

}  // namespace fixpoint
