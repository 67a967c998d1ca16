// Python's operators on template values.
#pragma once

#include <string_view>

#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

enum class Operator : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

bool truth(const Value& value);
// ==, with 1 == 1.0 == True as in Python.
bool equal(Runtime& runtime, const Value& left, const Value& right);
// < 0, 0, > 0. Errors: values without an order.
int compare(Runtime& runtime, const Value& left, const Value& right);
bool contains(Runtime& runtime, const Value& container, const Value& item);
bool apply_comparison(Runtime& runtime, Operator op, const Value& left, const Value& right);
Value apply_arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right);
Value negate(const Value& value);
Value plus(const Value& value);
double to_real(const Value& number);

// Equality of dict keys that are no strings, and whether a value may be a key at all.
bool same_key(const Value& left, const Value& right);
void check_hashable(const Value& key);

// Errors: the operation fails because `value` is undefined.
void require_defined(const Value& value);

// The elements that a `for` sees: a list's, a dict's keys, a string's characters, nothing for an
// undefined value. Reads a generator to its end. Errors: not iterable.
std::vector<Value> iterate(Runtime& runtime, const Value& value);
// len(). Errors: has none.
std::int64_t length(Runtime& runtime, const Value& value);

// a.name and a[index], with the fall-backs from one to the other; undefined where there is nothing.
Value get_attribute(const Value& object, std::string_view name);
Value get_item(Runtime& runtime, const Value& object, const Value& index);
// a[start:stop:step]; none for a part that was left out.
Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step);

// str.replace; a negative count replaces all.
Value replace_text(Runtime& runtime, std::string_view text, std::string_view old,
                   std::string_view fresh, std::int64_t count);

}  // namespace fixpoint::engine::jinja
