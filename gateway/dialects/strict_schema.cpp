#include "gateway/dialects/strict_schema.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace fixpoint::dialects {
namespace {

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// `type` is a name or an array of names.
bool has_type(const Json& schema, std::string_view name) {
  const Json* type = member(schema, "type");
  if (!type) return false;
  return *type == name || (type->is_array() && is_one_of(*type, name));
}

bool is_object_schema(const Json& schema) {
  return has_type(schema, "object") || object_member(schema, "properties");
}

// Any names, and none that are given: closed, it could only be empty.
bool is_map(const Json& schema) {
  const Json* properties = object_member(schema, "properties");
  const Json* others = member(schema, "additionalProperties");
  if (properties && !properties->empty()) return false;
  return others ? *others != false : !properties;
}

bool holds_schemas_by_name(std::string_view keyword) {
  return keyword == "$defs" || keyword == "definitions" || keyword == "properties";
}

// The keywords that are announced by name; there may be any number of others.
void announce(std::string_view keyword, const std::string& path, Notes& notes) {
  constexpr std::string_view kKnown[] = {"additionalProperties",
                                         "allOf",
                                         "anyOf",
                                         "const",
                                         "default",
                                         "description",
                                         "enum",
                                         "examples",
                                         "exclusiveMaximum",
                                         "exclusiveMinimum",
                                         "format",
                                         "maxItems",
                                         "maxLength",
                                         "maxProperties",
                                         "maximum",
                                         "minItems",
                                         "minLength",
                                         "minProperties",
                                         "minimum",
                                         "multipleOf",
                                         "not",
                                         "oneOf",
                                         "pattern",
                                         "patternProperties",
                                         "propertyNames",
                                         "title",
                                         "uniqueItems"};
  notes.announce(is_one_of(kKnown, keyword) ? path + "." + std::string(keyword) : path);
}

bool is_kept(const Json& schema, std::string_view keyword, const Json& value) {
  if (keyword == "type" || keyword == "description" || keyword == "title") return true;
  if (keyword == "required") return is_object_schema(schema);
  if (keyword == "const") return value.is_primitive();
  if (keyword == "enum") {
    return value.is_array() && std::all_of(value.begin(), value.end(),
                                           [](const Json& each) { return each.is_primitive(); });
  }
  if (keyword == "minItems") return has_type(schema, "array") && (value == 0 || value == 1);
  if (keyword == "format") {
    constexpr std::string_view kFormats[] = {"date-time", "time", "date", "duration", "email",
                                             "hostname",  "uri",  "ipv4", "ipv6",     "uuid"};
    const std::string* name = value.get_ptr<const std::string*>();
    return name && has_type(schema, "string") && is_one_of(kFormats, *name);
  }
  return false;
}

// The one of several combinations that Anthropic takes: `anyOf`, then `oneOf` in its place, then
// `allOf`.
std::string_view combination_of(const Json& schema) {
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    if (array_member(schema, keyword)) return keyword;
  }
  return {};
}

}  // namespace

Json schema_for_anthropic(const Json& schema, const std::string& path, Notes& notes) {
  if (!schema.is_object()) return schema;
  const bool reference = schema.contains("$ref");
  const std::string_view combination = combination_of(schema);
  Json out = Json::object();
  std::string moved;
  for (const auto& [name, value] : schema.items()) {
    if (holds_schemas_by_name(name) && value.is_object() && (!reference || name != "properties")) {
      Json& inner = out[name] = Json::object();
      for (const auto& [key, each] : value.items()) {
        inner[key] = schema_for_anthropic(each, path, notes);
      }
    } else if (reference) {  // it stands alone
      if (name == "$ref") out[name] = value;
      if (name != "$ref") announce(name, path, notes);
    } else if (name == combination) {
      if (name == "oneOf") announce(name, path, notes);
      Json& inner = out[name == "oneOf" ? "anyOf" : name] = Json::array();
      for (const auto& each : value) inner.push_back(schema_for_anthropic(each, path, notes));
    } else if (name == "items" && has_type(schema, "array")) {
      out[name] = schema_for_anthropic(value, path, notes);
    } else if (is_kept(schema, name, value)) {
      out[name] = value;
    } else if (name == "additionalProperties" && value == false && is_object_schema(schema)) {
      continue;  // as below
    } else if (name != "$schema") {
      announce(name, path, notes);
      moved += (moved.empty() ? "{" : ", ") + name + ": " + to_text(value);
    }
  }
  if (is_object_schema(schema) && !reference) {
    if (is_map(schema)) {
      notes.refuse(path,
                   "has an object whose properties have no names ('additionalProperties'); "
                   "Anthropic's structured outputs take objects with named properties only");
    }
    if (!out.contains("type")) out["type"] = "object";
    if (!out.contains("properties")) out["properties"] = Json::object();
    out["additionalProperties"] = false;
  }
  if (!moved.empty()) {
    const std::string described = text_or_empty(out, "description");
    out["description"] = described + (described.empty() ? "" : "\n\n") + moved + "}";
  }
  return out;
}

bool is_strict_for_openai(const Json& schema) {
  if (!schema.is_object()) return false;
  if (schema.contains("$ref")) return schema.size() == 1;
  for (const char* refused : {"allOf", "oneOf", "default"}) {
    if (schema.contains(refused)) return false;
  }
  if (const Json* format = member(schema, "format")) {
    constexpr std::string_view kFormats[] = {"date-time", "time", "date", "duration", "email",
                                             "hostname",  "ipv4", "ipv6", "uuid"};
    if (!format->is_string() || !is_one_of(kFormats, format->get_ref<const std::string&>())) {
      return false;
    }
  }
  if (is_object_schema(schema)) {
    const Json* closed = member(schema, "additionalProperties");
    if (!closed || *closed != false) return false;
    std::set<std::string_view> required;
    if (const Json* names = array_member(schema, "required")) {
      for (const auto& name : *names) {
        if (name.is_string()) required.insert(name.get_ref<const std::string&>());
      }
    }
    if (const Json* properties = object_member(schema, "properties")) {
      for (const auto& [name, value] : properties->items()) {
        if (!required.contains(name)) return false;
      }
    }
  }
  for (const auto& [keyword, value] : schema.items()) {
    const bool several =
        keyword == "anyOf" || (holds_schemas_by_name(keyword) && value.is_object());
    if (keyword == "items" && !is_strict_for_openai(value)) return false;
    if (several && !std::all_of(value.begin(), value.end(), is_strict_for_openai)) return false;
  }
  return true;
}

}  // namespace fixpoint::dialects
