#include "gateway/dialects/request_members.hpp"

#include <algorithm>
#include <utility>

namespace fixpoint::dialects {

void Notes::refuse(std::string param, std::string message, std::string code) {
  if (error_) return;
  error_ = TranslationError{"'" + param + "': " + std::move(message), param, std::move(code)};
}

void Notes::announce(std::string_view param) {
  std::string name;
  bool in_index = false;
  for (const char c : param) {
    in_index = in_index && c != ']';
    if (!in_index) name += c;
    in_index = in_index || c == '[';
  }
  if (std::find(dropped_.begin(), dropped_.end(), name) == dropped_.end()) {
    dropped_.push_back(std::move(name));
  }
}

tl::expected<TranslatedRequest, TranslationError> Notes::result(Json body) && {
  if (error_) return tl::make_unexpected(std::move(*error_));
  return TranslatedRequest{std::move(body), std::move(dropped_)};
}

Members::Members(const Json& object, std::string path, Notes& notes)
    : object_(object.is_object() ? object : empty_),
      path_(std::move(path)),
      notes_(notes),
      taken_(object_.size()) {
  if (!object.is_object()) notes_.refuse(path_.empty() ? "body" : path_, "must be an object");
}

std::string Members::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

const Json* Members::take(std::string_view name) {
  std::size_t i = 0;
  for (auto each = object_.begin(); each != object_.end(); ++each, ++i) {
    if (each.key() != name) continue;
    taken_[i] = true;
    return each->is_null() ? nullptr : &*each;
  }
  return nullptr;
}

const std::string* Members::text(std::string_view name) {
  const Json* value = take(name);
  if (value && !value->is_string()) notes_.refuse(path_of(name), "must be a string");
  return value ? value->get_ptr<const std::string*>() : nullptr;
}

const Json* Members::array(std::string_view name) {
  const Json* value = take(name);
  if (value && !value->is_array()) notes_.refuse(path_of(name), "must be an array");
  return value && value->is_array() ? value : nullptr;
}

const Json* Members::object(std::string_view name) {
  const Json* value = take(name);
  if (value && !value->is_object()) notes_.refuse(path_of(name), "must be an object");
  return value && value->is_object() ? value : nullptr;
}

const Json* Members::number(std::string_view name) {
  const Json* value = take(name);
  if (value && !value->is_number()) notes_.refuse(path_of(name), "must be a number");
  return value && value->is_number() ? value : nullptr;
}

bool Members::flag(std::string_view name) {
  const Json* value = take(name);
  if (value && !value->is_boolean()) notes_.refuse(path_of(name), "must be true or false");
  return value && value->is_boolean() && value->get<bool>();
}

std::string Members::required_text(std::string_view name) {
  const std::string* value = text(name);
  if (!value) notes_.refuse(path_of(name), "is missing");
  return value ? *value : std::string();
}

void Members::copy(std::string_view name, Json& into, std::string_view as) {
  if (const Json* value = take(name)) into[std::string(as.empty() ? name : as)] = *value;
}

void Members::announce(std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    const Json* value = take(name);
    if (value && !value->empty()) notes_.announce(path_of(name));
  }
}

void Members::refuse(std::string_view name, std::string_view why) {
  if (take(name)) notes_.refuse(path_of(name), std::string(why));
}

void Members::refuse_unless(std::string_view name, const Json& harmless, std::string_view why) {
  const Json* value = take(name);
  if (value && *value != harmless) notes_.refuse(path_of(name), std::string(why));
}

void Members::refuse_rest(std::string_view target) {
  std::size_t i = 0;
  for (const auto& [name, value] : object_.items()) {
    if (!taken_[i++] && !value.is_null()) {
      notes_.refuse(path_of(name), "has no counterpart in " + std::string(target));
      return;
    }
  }
}

void Members::take_directives() {
  std::size_t i = 0;
  for (const auto& [name, value] : object_.items()) {
    if (is_directive(name)) taken_[i] = true;
    ++i;
  }
}

bool is_directive(std::string_view name) {
  return name.starts_with("fixpoint_");
}

std::string at(std::string_view path, std::size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

}  // namespace fixpoint::dialects
