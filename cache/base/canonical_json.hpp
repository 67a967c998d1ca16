// RFC 8785 (JSON Canonicalization Scheme), made safe for keys: two requests get one canonical text
// only if they mean the same thing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint {

// A member of a top-level object: its name, and its value as the text spells it.
struct JsonMember {
  std::string name;
  std::string_view value;  // into the text
};

struct CanonicalOptions {
  std::span<const std::string_view> exclude;  // top-level members to leave out, by exact name
  std::size_t max_depth = 128;
  std::size_t max_members = 100'000;   // of all objects together
  std::size_t max_values = 1'000'000;  // of all kinds together
};

// Members sorted by UTF-16 code units, no white space, ECMAScript numbers, minimal escapes.
// Stricter than RFC 8785 where it would lose something: integers keep all their digits, a number
// that a double would change keeps its own (canonical_number.hpp), duplicate members are an error.
// Numbers beyond the range of a double (1e400) are an error too, as in RFC 8785. `members`, where
// given, receives those of a top-level object in the text's order, the excluded ones among them.
// Errors: invalid, with the byte offset or the member's name, and without the text. Thread-safe.
Result<std::string> canonical_json(std::string_view text, const CanonicalOptions& options = {},
                                   std::vector<JsonMember>* members = nullptr);

}  // namespace fixpoint
