// One pass over JSON text (RFC 8259) that checks its grammar and hands out its tokens without
// building anything. What reads every request byte by byte is this loop, so it is written for
// speed: strings, most of a request, are skipped eight bytes at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fixpoint {

// A string's text between its quotes, as it is spelled.
struct JsonString {
  std::string_view raw;
  bool plain = true;  // no escapes: raw is the text itself
};
// The text of a string whose escapes were checked by the scanner, as UTF-8. A lone surrogate is
// U+FFFD.
std::string decode_json_string(const JsonString& string);
// The length of the checked escape that `text` begins with; a surrogate pair is one escape, and
// there are no lone surrogates.
std::size_t json_escape_length(std::string_view text);

namespace json_scanner_detail {

// Bytes of a string that end a run of ordinary ones: '"', '\\', controls, and everything beyond
// ASCII. The tests for a byte below n and for a zero byte are those of Bit Twiddling Hacks
// (S. E. Anderson): exact for the lowest byte found, which is all that is used.
inline bool has_special(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const auto zero = [](std::uint64_t w) { return (w - kOnes) & ~w & kHighs; };
  const std::uint64_t control = (word - kOnes * 0x20) & ~word & kHighs;
  return (control | zero(word ^ (kOnes * '"')) | zero(word ^ (kOnes * '\\')) | (word & kHighs)) !=
         0;
}

inline bool is_ordinary(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

// The length of the well-formed UTF-8 sequence at `at` (RFC 3629, section 4); 0: there is none.
std::size_t utf8_length(const unsigned char* at, const unsigned char* end);

}  // namespace json_scanner_detail

// Handler's methods return false to stop the scan, having set an error of their own:
//   null(), boolean(bool), number(std::string_view literal, bool is_integer), string(JsonString),
//   key(JsonString), start_object(), end_object(), start_array(), end_array().
// Positions for slices of the text: value_begin() of a value being handed out (for objects and
// arrays, of their bracket), position() just behind the last token.
template <class Handler>
class JsonScanner {
 public:
  static constexpr std::size_t kMaxDepth = 128;

  // Escapes of lone surrogates are within the grammar, but no text: they stop the scan unless they
  // are allowed.
  JsonScanner(std::string_view text, Handler& handler, bool allow_lone_surrogates = false)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        handler_(handler),
        allow_lone_surrogates_(allow_lone_surrogates) {}

  // False: stopped by the handler (error() is empty) or by the grammar.
  bool scan() {
    skip_space();
    if (!value()) return false;
    while (depth_ > 0) {
      if (!next()) return false;
    }
    skip_space();
    return at_ == end_ || wrong("something follows the value");
  }

  const std::string& error() const { return error_; }  // "a number was expected at byte 17"
  bool too_deep() const { return too_deep_; }          // that is what error() says
  bool saw_lone_surrogate() const { return saw_lone_surrogate_; }
  std::size_t value_begin() const { return static_cast<std::size_t>(value_ - begin_); }
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  bool wrong(std::string_view what) {
    error_ = std::string(what) + " at byte " + std::to_string(position());
    return false;
  }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  // The next member or item of the innermost container, or its end.
  bool next() {
    const bool in_object = objects_[depth_ - 1];
    const char close = in_object ? '}' : ']';
    skip_space();
    if (at_ == end_) return wrong("the text ends too early");
    if (*at_ == close) {
      ++at_;
      --depth_;
      fresh_ = false;
      return in_object ? handler_.end_object() : handler_.end_array();
    }
    if (!fresh_) {
      if (*at_ != ',') return wrong("a comma or a closing bracket is missing");
      ++at_;
      skip_space();
    }
    fresh_ = false;
    if (!in_object) return value();
    if (at_ == end_ || *at_ != '"') return wrong("a member's name is missing");
    JsonString name;
    if (!read_string(name) || !handler_.key(name)) return false;
    skip_space();
    if (at_ == end_ || *at_ != ':') return wrong("a colon is missing");
    ++at_;
    skip_space();
    return value();
  }

  bool value() {
    if (at_ == end_) return wrong("the text ends too early");
    value_ = at_;
    switch (*at_) {
      case '"': {
        JsonString string;
        return read_string(string) && handler_.string(string);
      }
      case '{':
        return open(true) && handler_.start_object();
      case '[':
        return open(false) && handler_.start_array();
      case 't':
        return word("true") && handler_.boolean(true);
      case 'f':
        return word("false") && handler_.boolean(false);
      case 'n':
        return word("null") && handler_.null();
      default:
        return number();
    }
  }

  bool open(bool is_object) {
    if (depth_ == kMaxDepth) {
      too_deep_ = true;
      error_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
      return false;
    }
    objects_[depth_++] = is_object;
    fresh_ = true;
    ++at_;
    return true;
  }

  bool word(std::string_view expected) {
    const auto left = static_cast<std::size_t>(end_ - at_);
    if (std::string_view(at_, std::min(left, expected.size())) != expected) {
      return wrong("no JSON value");
    }
    at_ += expected.size();
    return true;
  }

  bool digits() {
    const char* const from = at_;
    while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ > from || wrong("a digit is missing");
  }

  bool number() {
    const char* const from = at_;
    if (*at_ == '-') ++at_;
    if (at_ == end_ || *at_ < '0' || *at_ > '9') {
      return wrong(at_ > from ? "a digit is missing" : "no JSON value");
    }
    if (*at_ == '0') {
      ++at_;
      if (at_ < end_ && *at_ >= '0' && *at_ <= '9') return wrong("a number with a leading zero");
    } else {
      digits();
    }
    bool is_integer = true;
    if (at_ < end_ && *at_ == '.') {
      is_integer = false;
      ++at_;
      if (!digits()) return false;
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      is_integer = false;
      ++at_;
      if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    return handler_.number({from, static_cast<std::size_t>(at_ - from)}, is_integer);
  }

  bool read_string(JsonString& out) {
    const char* const from = ++at_;
    out.plain = true;
    while (true) {
      while (end_ - at_ >= 8) {
        std::uint64_t eight;
        std::memcpy(&eight, at_, 8);
        if (json_scanner_detail::has_special(eight)) break;
        at_ += 8;
      }
      while (at_ < end_ && json_scanner_detail::is_ordinary(*at_)) ++at_;
      if (at_ == end_) return wrong("a string without an end");
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte == '"') {
        out.raw = {from, static_cast<std::size_t>(at_ - from)};
        ++at_;
        return true;
      }
      if (byte == '\\') {
        out.plain = false;
        if (!escape()) return false;
      } else if (byte < 0x20) {
        return wrong("an unescaped control character");
      } else {
        const std::size_t length =
            json_scanner_detail::utf8_length(reinterpret_cast<const unsigned char*>(at_),
                                             reinterpret_cast<const unsigned char*>(end_));
        if (length == 0) return wrong("ill-formed UTF-8");
        at_ += length;
      }
    }
  }

  bool hex4(unsigned& out) {
    out = 0;
    if (end_ - at_ < 4) return wrong("an unfinished escape");
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = *at_;
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return wrong("an escape without four hexadecimal digits");
      out = out * 16 + static_cast<unsigned>(digit);
    }
    return true;
  }

  bool escape() {
    ++at_;
    if (at_ == end_) return wrong("an unfinished escape");
    const char kind = *at_;
    if (kind != 'u') {
      constexpr std::string_view kKinds = "\"\\/bfnrt";
      if (kKinds.find(kind) == std::string_view::npos) return wrong("an unknown escape");
      ++at_;
      return true;
    }
    ++at_;
    unsigned unit = 0;
    if (!hex4(unit)) return false;
    if (unit < 0xD800 || unit > 0xDFFF) return true;
    const char* const behind = at_;
    if (unit <= 0xDBFF && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
      at_ += 2;
      unsigned low = 0;
      if (!hex4(low)) return false;
      if (low >= 0xDC00 && low <= 0xDFFF) return true;
      at_ = behind;  // the next one is an escape of its own
    }
    saw_lone_surrogate_ = true;
    return allow_lone_surrogates_ || wrong("a lone surrogate");
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* value_ = nullptr;
  Handler& handler_;
  std::array<bool, kMaxDepth> objects_{};  // of each open container: whether it is an object
  std::size_t depth_ = 0;
  bool fresh_ = false;  // the innermost container was just opened
  bool too_deep_ = false;
  const bool allow_lone_surrogates_;
  bool saw_lone_surrogate_ = false;
  std::string error_;
};

}  // namespace fixpoint
