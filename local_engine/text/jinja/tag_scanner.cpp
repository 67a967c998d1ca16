// The inside of {{ }} and {% %}.
#include <array>
#include <charconv>

#include "local_engine/text/jinja/error.hpp"
#include "local_engine/text/jinja/lexer.hpp"
#include "local_engine/text/jinja/unicode.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

}  // namespace

void TagScanner::fail(const std::string& message) const {
  throw TemplateError(ErrorCode::bad_model_file, message, line_);
}

bool TagScanner::skip_space() {
  while (at_ < source_.size()) {
    const CodePoint point = decode_code_point(source_.substr(at_));
    if (!is_space(point.value)) return true;
    if (point.value == U'\n') ++line_;
    at_ += point.size;
  }
  return false;
}

TagScanner::Close TagScanner::scan(std::string_view close) {
  while (skip_space()) {
    const char c = source_[at_];
    if (brackets_.empty()) {
      const std::string_view rest = source_.substr(at_);
      if (rest.starts_with(close)) {
        at_ += close.size();
        return Close::plain;
      }
      // `+` before the end is a sign for blocks only; for variables it would be an operator.
      if ((c == '-' || (c == '+' && close == "%}")) && rest.substr(1).starts_with(close)) {
        at_ += 1 + close.size();
        return c == '-' ? Close::minus : Close::plus;
      }
    }
    if (is_name_start(c)) {
      scan_name();
    } else if (is_digit(c)) {
      scan_number();
    } else if (c == '"' || c == '\'') {
      scan_string();
    } else {
      scan_symbol();
    }
  }
  fail("tag without '" + std::string(close) + "'");
}

void TagScanner::scan_name() {
  const std::size_t begin = at_;
  while (at_ < source_.size() && is_name_part(source_[at_])) ++at_;
  out_.push_back({TokenKind::name, line_, std::string(source_.substr(begin, at_ - begin))});
}

void TagScanner::scan_number() {
  std::string digits;
  const auto take_digits = [&](int base) {
    bool last_was_digit = !digits.empty() && is_digit(digits.back());
    while (at_ < source_.size()) {
      if (digit_value(source_[at_]) < base) {
        digits += source_[at_++];
        last_was_digit = true;
      } else if (source_[at_] == '_' && last_was_digit && at_ + 1 < source_.size() &&
                 digit_value(source_[at_ + 1]) < base) {
        ++at_;
      } else {
        break;
      }
    }
  };
  int base = 10;
  if (source_[at_] == '0' && at_ + 2 < source_.size()) {
    const char letter = static_cast<char>(source_[at_ + 1] | 0x20);
    const int other = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (other != 0 && digit_value(source_[at_ + 2]) < other) {
      base = other;
      at_ += 2;
    }
  }
  take_digits(base);
  bool real = false;
  if (base == 10 && at_ + 1 < source_.size() && source_[at_] == '.' && is_digit(source_[at_ + 1])) {
    real = true;
    digits += source_[at_++];
    take_digits(10);
  }
  if (base == 10 && at_ < source_.size() && (source_[at_] | 0x20) == 'e') {
    const std::size_t sign = at_ + 1;
    const bool has_sign = sign < source_.size() && (source_[sign] == '-' || source_[sign] == '+');
    const std::size_t first = sign + (has_sign ? 1 : 0);
    if (first < source_.size() && is_digit(source_[first])) {
      real = true;
      digits += 'e';
      if (source_[sign] == '-') digits += '-';
      at_ = first;
      take_digits(10);
    }
  }
  const char* end = digits.data() + digits.size();
  if (real) {
    double value = 0;
    if (std::from_chars(digits.data(), end, value).ec != std::errc()) {
      fail("the number " + digits + " is out of range");
    }
    out_.push_back({TokenKind::real, line_, digits, Value(value)});
    return;
  }
  std::int64_t value = 0;
  if (std::from_chars(digits.data(), end, value, base).ec != std::errc()) {
    fail("the integer " + digits + " is outside 64 bits");
  }
  if (base == 10 && digits.size() > 1 && digits[0] == '0' && value != 0) {
    fail("an integer must not begin with 0");
  }
  out_.push_back({TokenKind::integer, line_, digits, Value(value)});
}

void TagScanner::scan_string() {
  const int line = line_;
  const char quote = source_[at_++];
  std::string out;
  for (;;) {
    if (at_ >= source_.size()) fail("string without end");
    const char c = source_[at_];
    if (c == quote) break;
    if (c == '\n') ++line_;
    ++at_;
    if (c == '\\') {
      append_escape(out);
    } else {
      out += c;
    }
  }
  ++at_;
  out_.push_back({TokenKind::string, line, std::move(out)});
}

// After a backslash, as in Python's string literals.
void TagScanner::append_escape(std::string& out) {
  if (at_ >= source_.size()) fail("string without end");
  const char c = source_[at_++];
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeaning = "\a\b\f\n\r\t\v\\'\"";
  const std::size_t letter = kLetters.find(c);
  if (letter != std::string_view::npos) {
    out += kMeaning[letter];
    return;
  }
  if (c == '\n') {  // a continued line
    ++line_;
    return;
  }
  const auto take = [&](std::size_t most, int base) {
    char32_t value = 0;
    std::size_t count = 0;
    while (count < most && at_ < source_.size() && digit_value(source_[at_]) < base) {
      value =
          value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(source_[at_]));
      ++at_;
      ++count;
    }
    if (base == 16 && count != most) fail("a string escape is cut short");
    return value;
  };
  char32_t value = 0;
  if (c >= '0' && c <= '7') {
    --at_;
    value = take(3, 8);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    value = take(c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
  } else if (c == 'N') {
    throw TemplateError(ErrorCode::unsupported, "the escape \\N{...} is not implemented", line_);
  } else {
    out += '\\';
    out += c;
    return;
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    fail("a string escape is no character");
  }
  append_code_point(out, value);
}

void TagScanner::scan_symbol() {
  constexpr std::array<std::string_view, 25> kSymbols = {
      // longer ones first
      "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "[",
      "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ","};
  const std::string_view rest = source_.substr(at_);
  for (const std::string_view symbol : kSymbols) {
    if (!rest.starts_with(symbol)) continue;
    const char c = symbol[0];
    if (c == '(' || c == '[' || c == '{') brackets_ += c;
    if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (brackets_.empty() || brackets_.back() != open)
        fail(std::string("unexpected '") + c + "'");
      brackets_.pop_back();
    }
    at_ += symbol.size();
    out_.push_back({TokenKind::symbol, line_, std::string(symbol)});
    return;
  }
  fail("unexpected character '" + std::string(rest.substr(0, decode_code_point(rest).size)) + "'");
}

}  // namespace fixpoint::engine::jinja
