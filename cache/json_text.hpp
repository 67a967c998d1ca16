// JSON as text: its white space changes and its tokens do not, so that numbers keep their digits
// and strings their escapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/canonical_json.hpp"

namespace fixpoint {

enum class JsonLayout {
  compact,   // no white space
  spaced,    // one line, a space after each ',' and ':'
  indented,  // two spaces a level, each member and element on a line of its own
  readable,  // the same, but for arrays of numbers, which take one line
};

// JSON that the functions below can take: without duplicate members, 100 levels deep at most, and
// not larger than an upstream's answer may be.
bool is_json(std::string_view text);

// `json` is_json().
std::string layout_json(std::string_view json, JsonLayout layout);

// The members of an object in their order, with values as they stand in `json`, which may hold
// twice of what is_json() allows. Errors: invalid (no such JSON, no object).
Result<std::vector<JsonMember>> json_members(std::string_view json);

// A string's text, quoted and escaped; nothing when it is not UTF-8.
std::optional<std::string> quote_json(std::string_view text);
// Back again; nothing when `json` is no string. It is_json().
std::optional<std::string> unquote_json(std::string_view json);

}  // namespace fixpoint
