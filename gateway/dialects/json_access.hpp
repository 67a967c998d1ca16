// Reading JSON of a peer without assuming its shape. Inside this folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fixpoint::dialects {

using Json = nlohmann::ordered_json;

// The member, also where it is null; null pointer: `value` is no object or has no such member.
const Json* member(const Json& value, std::string_view name);
// The member's text; null pointer: it is not there or no string.
const std::string* text_member(const Json& value, std::string_view name);
std::string text_or_empty(const Json& value, std::string_view name);
const Json* array_member(const Json& value, std::string_view name);
const Json* object_member(const Json& value, std::string_view name);
// 0 where it is no count.
std::uint64_t count_member(const Json& value, std::string_view name);
// There, and not null.
bool has_value(const Json& value, std::string_view name);

// On one line; bytes that are no UTF-8 become U+FFFD.
std::string to_text(const Json& value);

}  // namespace fixpoint::dialects
