#include "local_engine/text/jinja/value.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

Value Value::undefined(std::string what) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(what))};
  return value;
}

int Value::depth() const {
  switch (kind()) {
    case Kind::list:
      return list().depth;
    case Kind::dict:
      return dict().depth;
    case Kind::loop:
      return 1 + loop().items.depth();
    case Kind::callable:
      if (const auto* method = std::get_if<Method>(&callable().target)) {
        return 1 + method->self.depth();
      }
      return 1;
    default:
      return 0;
  }
}

const char* Value::type_name() const {
  switch (kind()) {
    case Kind::undefined:
      return "undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return "str";
    case Kind::list:
      switch (list().kind) {
        case ListKind::list:
          return "list";
        case ListKind::tuple:
          return "tuple";
        case ListKind::range:
          return "range";
        case ListKind::keys:
          return "dict_keys";
        case ListKind::values:
          return "dict_values";
        case ListKind::items:
          return "dict_items";
        case ListKind::generator:
          return "generator";
      }
      return "list";
    case Kind::dict:
      return "dict";
    case Kind::name_space:
      return "Namespace";
    case Kind::callable:
      return "function";
    case Kind::loop:
      return "LoopContext";
  }
  return "object";
}

const Value* Dict::find(std::string_view key) const {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : &items[found->second].second;
}

const Value* Dict::find(const Value& key) const {
  if (key.is(Kind::string)) return find(std::string_view(key.string()));
  // Other keys come from literals in the template only, so there are few.
  for (const auto& [name, value] : items) {
    if (!name.is(Kind::string) && same_key(name, key)) return &value;
  }
  return nullptr;
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

namespace {

void check_depth(int depth) {
  if (depth > kMaxValueDepth) {
    fail_render("values are nested deeper than " + std::to_string(kMaxValueDepth));
  }
}

}  // namespace

Value make_list(std::vector<Value> items, ListKind kind) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) list->depth = std::max(list->depth, 1 + item.depth());
  check_depth(list->depth);
  list->kind = kind;
  list->items = std::move(items);
  return Value(std::shared_ptr<const List>(std::move(list)));
}

Value make_dict(std::vector<std::pair<Value, Value>> items) {
  auto dict = std::make_shared<Dict>();
  dict->items.reserve(items.size());
  for (auto& [key, value] : items) {
    check_hashable(key);
    dict->depth = std::max({dict->depth, 1 + key.depth(), 1 + value.depth()});
    if (const Value* old = dict->find(key)) {
      *const_cast<Value*>(old) = std::move(value);
      continue;
    }
    dict->items.emplace_back(std::move(key), std::move(value));
    const Value& stored = dict->items.back().first;
    if (stored.is(Kind::string)) dict->index.emplace(stored.string(), dict->items.size() - 1);
  }
  check_depth(dict->depth);
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

namespace {

using Json = nlohmann::ordered_json;

Value from_json_at(const Json& json, int depth) {
  check_depth(depth);
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
      return Value(json.get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail_render("the integer " + std::to_string(number) + " in the input is outside 64 bits");
      }
      return Value(static_cast<std::int64_t>(number));
    }
    case Json::value_t::number_float:
      return Value(json.get<double>());
    case Json::value_t::string:
      return Value(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json_at(item, depth + 1));
      return make_list(std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<Value, Value>> items;
      items.reserve(json.size());
      for (const auto& [key, value] : json.items()) {
        items.emplace_back(Value(key), from_json_at(value, depth + 1));
      }
      return make_dict(std::move(items));
    }
    default:
      return Value(None{});
  }
}

}  // namespace

Value from_json(const Json& json) {
  return from_json_at(json, 0);
}

}  // namespace fixpoint::engine::jinja
