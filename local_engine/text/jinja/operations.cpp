#include "local_engine/text/jinja/operations.hpp"

#include <cmath>

#include "local_engine/text/jinja/unicode.hpp"

namespace fixpoint::engine::jinja {

namespace {

// Kinds that count as int in arithmetic.
bool is_integral(const Value& value) {
  return value.is(Kind::integer) || value.is(Kind::boolean);
}

std::int64_t to_integer(const Value& value) {
  return value.is(Kind::boolean) ? static_cast<std::int64_t>(value.boolean()) : value.integer();
}

template <class T>
int three_way(const T& left, const T& right) {
  return left < right ? -1 : right < left ? 1 : 0;
}

bool numbers_equal(const Value& left, const Value& right) {
  if (is_integral(left) && is_integral(right)) return to_integer(left) == to_integer(right);
  return to_real(left) == to_real(right);
}

// A list equals a list and a tuple a tuple; the views and generators of Python have no such
// equality.
bool lists_comparable(const List& left, const List& right) {
  return left.kind == right.kind && (left.kind == ListKind::list || left.kind == ListKind::tuple ||
                                     left.kind == ListKind::range);
}

}  // namespace

void require_defined(const Value& value) {
  if (value.is(Kind::undefined)) fail_render(value.undefined_message());
}

double to_real(const Value& number) {
  return number.is(Kind::real) ? number.real() : static_cast<double>(to_integer(number));
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
      return value.boolean();
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0.0;
    case Kind::string:
      return !value.string().empty();
    case Kind::list:  // a generator is true whatever it will give
      return value.list().kind == ListKind::generator || !value.list().items.empty();
    case Kind::dict:
      return !value.dict().items.empty();
    default:
      return true;
  }
}

bool same_key(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return numbers_equal(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::string:
      return left.string() == right.string();
    case Kind::none:
    case Kind::undefined:
      return true;
    case Kind::list: {
      const List& a = left.list();
      const List& b = right.list();
      if (a.items.size() != b.items.size()) return false;
      for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (!same_key(a.items[i], b.items[i])) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

void check_hashable(const Value& key) {
  if (key.is(Kind::list) && key.list().kind == ListKind::tuple) {
    for (const Value& item : key.list().items) check_hashable(item);
    return;
  }
  if (key.is(Kind::list) || key.is(Kind::dict)) {
    fail_render(std::string("a ") + key.type_name() + " cannot be a dict key");
  }
}

bool equal(Runtime& runtime, const Value& left, const Value& right) {
  runtime.step();
  if (left.is_number() && right.is_number()) return numbers_equal(left, right);
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      runtime.charge_text(left.string().size());
      return left.string() == right.string();
    case Kind::list: {
      const List& a = left.list();
      const List& b = right.list();
      if (&a == &b) return true;
      if (!lists_comparable(a, b) || a.items.size() != b.items.size()) return false;
      for (std::size_t i = 0; i < a.items.size(); ++i) {
        if (!equal(runtime, a.items[i], b.items[i])) return false;
      }
      return true;
    }
    case Kind::dict: {
      const Dict& a = left.dict();
      const Dict& b = right.dict();
      if (a.items.size() != b.items.size()) return false;
      for (const auto& [key, value] : a.items) {
        const Value* other = b.find(key);
        if (other == nullptr || !equal(runtime, value, *other)) return false;
      }
      return true;
    }
    case Kind::name_space:
      return &left.name_space() == &right.name_space();
    case Kind::callable:
      return &left.callable() == &right.callable();
    case Kind::loop:
      return &left.loop() == &right.loop();
    default:
      return false;
  }
}

int compare(Runtime& runtime, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  runtime.step();
  if (is_integral(left) && is_integral(right)) {
    return three_way(to_integer(left), to_integer(right));
  }
  if (left.is_number() && right.is_number()) return three_way(to_real(left), to_real(right));
  if (left.is(Kind::string) && right.is(Kind::string)) {
    runtime.charge_text(std::min(left.string().size(), right.string().size()));
    // The order of UTF-8 bytes is the order of code points.
    return three_way(left.string(), right.string());
  }
  if (left.is(Kind::list) && right.is(Kind::list) && lists_comparable(left.list(), right.list()) &&
      left.list().kind != ListKind::range) {
    const std::vector<Value>& a = left.list().items;
    const std::vector<Value>& b = right.list().items;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
      if (!equal(runtime, a[i], b[i])) return compare(runtime, a[i], b[i]);
    }
    return three_way(a.size(), b.size());
  }
  fail_render(std::string("no order between ") + left.type_name() + " and " + right.type_name());
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is(Kind::undefined)) return false;
  if (container.is(Kind::string)) {
    require_defined(item);
    if (!item.is(Kind::string)) {
      fail_render(std::string("'in <str>' needs a str on the left, not ") + item.type_name());
    }
    runtime.charge_text(container.string().size());
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is(Kind::dict)) {
    check_hashable(item);
    return container.dict().find(item) != nullptr;
  }
  if (container.is(Kind::list)) {
    const List& list = container.list();
    const bool once = list.kind == ListKind::generator;
    for (std::size_t i = once ? list.consumed : 0; i < list.items.size(); ++i) {
      if (once) list.consumed = i + 1;
      if (equal(runtime, list.items[i], item)) return true;
    }
    return false;
  }
  fail_render(std::string("a ") + container.type_name() + " cannot be searched with 'in'");
}

bool apply_comparison(Runtime& runtime, Operator op, const Value& left, const Value& right) {
  const bool ordered = !(left.is_number() && std::isnan(to_real(left))) &&
                       !(right.is_number() && std::isnan(to_real(right)));
  switch (op) {
    case Operator::equal:
      return equal(runtime, left, right);
    case Operator::not_equal:
      return !equal(runtime, left, right);
    case Operator::in:
      return contains(runtime, right, left);
    case Operator::not_in:
      return !contains(runtime, right, left);
    case Operator::less:
      return compare(runtime, left, right) < 0;
    case Operator::less_equal:
      return compare(runtime, left, right) <= 0 && ordered;
    case Operator::greater:
      return compare(runtime, left, right) > 0;
    case Operator::greater_equal:
      return compare(runtime, left, right) >= 0 && ordered;
    default:
      throw std::logic_error("not a comparison");
  }
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  std::vector<Value> out;
  switch (value.kind()) {
    case Kind::undefined:
      return out;
    case Kind::string:
      runtime.charge_items(value.string().size());
      for (const std::string_view character : characters(value.string())) {
        out.emplace_back(std::string(character));
      }
      return out;
    case Kind::list: {
      const List& list = value.list();
      runtime.charge_items(list.items.size());
      if (list.kind != ListKind::generator) return list.items;
      out.assign(list.items.begin() + static_cast<std::ptrdiff_t>(list.consumed), list.items.end());
      list.consumed = list.items.size();
      return out;
    }
    case Kind::dict:
      runtime.charge_items(value.dict().items.size());
      for (const auto& item : value.dict().items) out.push_back(item.first);
      return out;
    default:
      fail_render(std::string("'") + value.type_name() + "' object is not iterable");
  }
}

std::int64_t length(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      runtime.charge_text(value.string().size());
      return static_cast<std::int64_t>(count_characters(value.string()));
    case Kind::list:
      if (value.list().kind == ListKind::generator) break;
      return static_cast<std::int64_t>(value.list().items.size());
    case Kind::dict:
      return static_cast<std::int64_t>(value.dict().items.size());
    default:
      break;
  }
  fail_render(std::string("object of type '") + value.type_name() + "' has no length");
}

}  // namespace fixpoint::engine::jinja
