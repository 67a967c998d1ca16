#include "cache/base/canonical_number.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fixpoint {
namespace {

// Integers beyond this are not all doubles any more.
constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

// A double's exact decimal expansion has at most 767 significant digits, so a literal that has more
// (after its trailing zeros went) is never what a double prints.
constexpr std::size_t kMaxDoubleDigits = 767;

// +-0.DIGITS x 10^exponent; no leading and no trailing zeros; no digits at all for zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  bool operator==(const Decimal&) const = default;
};

std::optional<Decimal> parse_decimal(std::string_view literal) {
  Decimal decimal;
  std::size_t at = 0;
  if (at < literal.size() && literal[at] == '-') {
    decimal.negative = true;
    ++at;
  }
  bool in_fraction = false;
  for (; at < literal.size() && literal[at] != 'e' && literal[at] != 'E'; ++at) {
    const char c = literal[at];
    if (c < '0' || c > '9') {
      in_fraction = true;  // the decimal point; nlohmann hands it over as the C locale writes it
    } else if (c == '0' && decimal.digits.empty()) {
      if (in_fraction) --decimal.exponent;
    } else {
      decimal.digits += c;
      if (!in_fraction) ++decimal.exponent;
    }
  }
  while (!decimal.digits.empty() && decimal.digits.back() == '0') decimal.digits.pop_back();
  if (decimal.digits.empty()) return Decimal{};  // ECMAScript writes -0 as 0

  if (at < literal.size()) {
    ++at;
    if (at < literal.size() && literal[at] == '+') ++at;
    std::int32_t exponent = 0;
    const auto parsed =
        std::from_chars(literal.data() + at, literal.data() + literal.size(), exponent);
    if (parsed.ec != std::errc{}) return std::nullopt;
    decimal.exponent += exponent;
  }
  return decimal;
}

// ECMAScript Number::toString(x, radix 10), steps 6 to 10: k digits, value = digits x 10^(n-k).
std::string layout(const Decimal& decimal) {
  if (decimal.digits.empty()) return "0";
  const std::string& digits = decimal.digits;
  const auto k = static_cast<std::int64_t>(digits.size());
  const std::int64_t n = decimal.exponent;
  std::string text = decimal.negative ? "-" : "";
  if (0 < n && n <= 21) {
    if (k <= n) {
      text += digits;
      text.append(static_cast<std::size_t>(n - k), '0');
    } else {
      text.append(digits, 0, static_cast<std::size_t>(n));
      text += '.';
      text.append(digits, static_cast<std::size_t>(n));
    }
  } else if (-6 < n && n <= 0) {
    text += "0.";
    text.append(static_cast<std::size_t>(-n), '0');
    text += digits;
  } else {
    text += digits[0];
    if (k > 1) {
      text += '.';
      text.append(digits, 1);
    }
    text += n > 0 ? "e+" : "e-";
    text += std::to_string(n > 0 ? n - 1 : 1 - n);
  }
  return text;
}

std::optional<Decimal> shortest(double value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  return parse_decimal({buffer.data(), end.ptr});
}

std::optional<Decimal> rounded(double value, std::size_t digits) {
  std::array<char, kMaxDoubleDigits + 16> buffer;  // sign, point and exponent
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific, static_cast<int>(digits) - 1);
  return parse_decimal({buffer.data(), end.ptr});
}

}  // namespace

std::optional<std::string> canonical_number(std::string_view literal, double value) {
  const std::optional<Decimal> exact = parse_decimal(literal);
  if (!exact) return std::nullopt;
  const std::size_t digits = exact->digits.size();
  const bool kept_by_double = digits > 0 && digits <= kMaxDoubleDigits &&
                              std::abs(value) <= kExactIntegers && rounded(value, digits) == exact;
  return layout(kept_by_double ? *shortest(value) : *exact);
}

}  // namespace fixpoint
