// Values of the template language: Python's, as far as chat templates can see them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace fixpoint::engine::jinja {

struct List;
struct Dict;
struct Namespace;
struct Callable;
struct LoopState;

// The result of a look-up that found nothing: prints as nothing, is false and empty, and fails with
// `what` in most other operations.
struct Undefined {
  std::shared_ptr<const std::string> what;
};
struct None {};

enum class Kind : std::uint8_t {  // in the order of Value::data
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  dict,
  name_space,
  callable,
  loop,
};

// Cheap to copy: compound values are shared and never change after they were made (a Namespace
// does, and so is owned by the Runtime, which outlives every value of its rendering).
class Value {
 public:
  Value() : data_(None{}) {}
  Value(None) : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::make_shared<const std::string>(std::move(value))) {}
  Value(const char* value) : Value(std::string(value)) {}
  Value(std::shared_ptr<const List> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}
  Value(Namespace* value) : data_(value) {}
  Value(std::shared_ptr<const Callable> value) : data_(std::move(value)) {}
  Value(std::shared_ptr<const LoopState> value) : data_(std::move(value)) {}
  static Value undefined(std::string what);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind_wanted) const { return kind() == kind_wanted; }
  bool is_number() const {  // as in Python, a bool is one
    return is(Kind::integer) || is(Kind::real) || is(Kind::boolean);
  }

  // Each is defined for its own kind only.
  const std::string& undefined_message() const { return *std::get<Undefined>(data_).what; }
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return std::get<std::int64_t>(data_); }
  double real() const { return std::get<double>(data_); }
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace& name_space() const { return *std::get<Namespace*>(data_); }
  const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(data_); }
  const LoopState& loop() const { return *std::get<std::shared_ptr<const LoopState>>(data_); }

  int depth() const;  // 0 for a value that holds no other
  // Python's name of the type, as in "'str object' has no attribute 'x'".
  const char* type_name() const;

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, Namespace*,
               std::shared_ptr<const Callable>, std::shared_ptr<const LoopState>>
      data_;
};

enum class ListKind : std::uint8_t { list, tuple, range, keys, values, items, generator };

struct List {
  ListKind kind = ListKind::list;
  std::vector<Value> items;
  int depth = 1;
  // Generators (what map, select and their like give) can be read once only, as in Python; a
  // template that relies on that must see the same. Everything before this index has been read.
  mutable std::size_t consumed = 0;
};

// In insertion order. Later values of one key replace the earlier.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  std::unordered_map<std::string_view, std::size_t> index;  // of the string keys, into `items`
  int depth = 1;

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

// Both check kMaxValueDepth, so that no destructor or printer can exhaust the stack.
Value make_list(std::vector<Value> items, ListKind kind = ListKind::list);
Value make_dict(std::vector<std::pair<Value, Value>> items);
// Errors: an integer outside 64 bits, nesting beyond kMaxValueDepth.
Value from_json(const nlohmann::ordered_json& json);

}  // namespace fixpoint::engine::jinja
