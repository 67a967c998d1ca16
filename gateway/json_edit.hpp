// Edits of a JSON object's top-level members that leave every other byte as it stands: order, white
// space, number spellings. A parse and re-serialisation would change large integers and member
// order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint {

// All functions: thread-safe. Errors: invalid, when `object` is not one JSON object (with the byte
// offset), is nested deeper than 128, or has the named member more than once. Names are compared
// after their escapes are decoded.

// The member's value, as it is spelled; a view into `object`. Nothing if there is no such member.
Result<std::optional<std::string_view>> find_member(std::string_view object, std::string_view name);
// Replaces the value, or adds the member at the end. `value_json` must be one JSON value.
Result<std::string> set_member(std::string_view object, std::string_view name,
                               std::string_view value_json);

// `text` as a JSON string, with its quotes. Bytes beyond ASCII pass as they are.
std::string json_string(std::string_view text);

}  // namespace fixpoint
