// Values as text: str(), repr() and JSON, each as Python writes it.
#pragma once

#include <optional>
#include <string>

#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

// All append to `out` and fail beyond kMaxText.
void append_str(Runtime& runtime, std::string& out, const Value& value);
void append_repr(Runtime& runtime, std::string& out, const Value& value);
std::string to_str(Runtime& runtime, const Value& value);

struct JsonStyle {
  std::optional<std::string> indent;  // per level; none: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};
void append_json(Runtime& runtime, std::string& out, const Value& value, const JsonStyle& style);

// repr() of a float: the shortest digits that read back as the same number.
std::string real_repr(double value);

}  // namespace fixpoint::engine::jinja
