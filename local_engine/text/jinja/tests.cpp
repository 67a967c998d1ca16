// What may follow `is`.
#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"
#include "local_engine/text/jinja/unicode.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

const Value& operand(const Arguments& arguments, const char* test) {
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    fail_render(std::string("test '") + test + "' takes one argument");
  }
  return arguments.positional[0];
}

template <Kind kind>
bool test_kind(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("test", {});
  return value.is(kind);
}

template <Operator op>
bool test_comparison(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return apply_comparison(runtime, op, value, operand(arguments, "comparison"));
}

bool test_defined(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("defined", {});
  return !value.is(Kind::undefined);
}
bool test_true(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("true", {});
  return value.is(Kind::boolean) && value.boolean();
}
bool test_false(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("false", {});
  return value.is(Kind::boolean) && !value.boolean();
}
bool test_number(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("number", {});
  return value.is_number();
}
bool test_iterable(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("iterable", {});
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::dict:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}
// What has a length and can be subscripted.
bool test_sequence(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("sequence", {});
  if (value.is(Kind::list)) {
    const ListKind kind = value.list().kind;
    return kind == ListKind::list || kind == ListKind::tuple || kind == ListKind::range;
  }
  return value.is(Kind::undefined) || value.is(Kind::string) || value.is(Kind::dict);
}

bool divisible(Runtime& runtime, const Value& value, std::int64_t by, std::int64_t rest) {
  return equal(runtime, apply_arithmetic(runtime, Operator::modulo, value, Value(by)), Value(rest));
}
bool test_even(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("even", {});
  return divisible(runtime, value, 2, 0);
}
bool test_odd(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("odd", {});
  return divisible(runtime, value, 2, 1);
}
bool test_divisible_by(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const Value rest =
      apply_arithmetic(runtime, Operator::modulo, value, operand(arguments, "divisibleby"));
  return equal(runtime, rest, Value(std::int64_t{0}));
}

// At least one cased character, and all of them of this case.
bool all_cased(Runtime& runtime, const Value& value, bool (*wanted)(char32_t),
               bool (*unwanted)(char32_t)) {
  const std::string text = to_str(runtime, value);
  runtime.charge_text(text.size());
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_code_point(std::string_view(text).substr(at));
    if (unwanted(point.value)) return false;
    any = any || wanted(point.value);
    at += point.size;
  }
  return any;
}
bool test_lower(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("lower", {});
  return all_cased(runtime, value, is_cased_lower, is_cased_upper);
}
bool test_upper(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("upper", {});
  return all_cased(runtime, value, is_cased_upper, is_cased_lower);
}

struct Named {
  std::string_view name;
  Test test;
};

constexpr Named kTests[] = {
    {"!=", test_comparison<Operator::not_equal>},
    {"<", test_comparison<Operator::less>},
    {"<=", test_comparison<Operator::less_equal>},
    {"==", test_comparison<Operator::equal>},
    {">", test_comparison<Operator::greater>},
    {">=", test_comparison<Operator::greater_equal>},
    {"boolean", test_kind<Kind::boolean>},
    {"callable", test_kind<Kind::callable>},
    {"defined", test_defined},
    {"divisibleby", test_divisible_by},
    {"eq", test_comparison<Operator::equal>},
    {"equalto", test_comparison<Operator::equal>},
    {"even", test_even},
    {"false", test_false},
    {"float", test_kind<Kind::real>},
    {"ge", test_comparison<Operator::greater_equal>},
    {"greaterthan", test_comparison<Operator::greater>},
    {"gt", test_comparison<Operator::greater>},
    {"in", test_comparison<Operator::in>},
    {"integer", test_kind<Kind::integer>},
    {"iterable", test_iterable},
    {"le", test_comparison<Operator::less_equal>},
    {"lessthan", test_comparison<Operator::less>},
    {"lower", test_lower},
    {"lt", test_comparison<Operator::less>},
    {"mapping", test_kind<Kind::dict>},
    {"ne", test_comparison<Operator::not_equal>},
    {"none", test_kind<Kind::none>},
    {"number", test_number},
    {"odd", test_odd},
    {"sequence", test_sequence},
    {"string", test_kind<Kind::string>},
    {"true", test_true},
    {"undefined", test_kind<Kind::undefined>},
    {"upper", test_upper},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const Named& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace fixpoint::engine::jinja
