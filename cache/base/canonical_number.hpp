// The canonical text of one JSON number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fixpoint {

// `literal` is a number in JSON's grammar, `value` the nearest double (finite).
//
// A number up to 2^53 that a double keeps, in the sense that printing the double with as many
// digits as the literal has gives the literal back, is written as ECMAScript's Number::toString
// writes the double; this is RFC 8785. Every other number keeps its own digits, in the same layout:
// 9007199254740993.0, 1.00000000000000001 and 1e-400 stay what they are, and no two of them share a
// text. Empty: the exponent of a number other than zero does not fit 32 bits.
std::optional<std::string> canonical_number(std::string_view literal, double value);

}  // namespace fixpoint
