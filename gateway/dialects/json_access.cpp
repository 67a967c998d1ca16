#include "gateway/dialects/json_access.hpp"

namespace fixpoint::dialects {

const Json* member(const Json& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

const std::string* text_member(const Json& value, std::string_view name) {
  const Json* found = member(value, name);
  return found ? found->get_ptr<const std::string*>() : nullptr;
}

std::string text_or_empty(const Json& value, std::string_view name) {
  const std::string* text = text_member(value, name);
  return text ? *text : std::string();
}

const Json* array_member(const Json& value, std::string_view name) {
  const Json* found = member(value, name);
  return found && found->is_array() ? found : nullptr;
}

const Json* object_member(const Json& value, std::string_view name) {
  const Json* found = member(value, name);
  return found && found->is_object() ? found : nullptr;
}

std::uint64_t count_member(const Json& value, std::string_view name) {
  const Json* found = member(value, name);
  return found && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

bool has_value(const Json& value, std::string_view name) {
  const Json* found = member(value, name);
  return found && !found->is_null();
}

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fixpoint::dialects
