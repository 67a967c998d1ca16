// + - * / // % ** and the signs.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "local_engine/text/jinja/operations.hpp"

namespace fixpoint::engine::jinja {

namespace {

[[noreturn]] void fail_overflow() {
  fail_render("the result is an integer outside 64 bits");
}

[[noreturn]] void fail_operands(const char* op, const Value& left, const Value& right) {
  fail_render(std::string("operator ") + op + " is not defined for " + left.type_name() + " and " +
              right.type_name());
}

const char* spelling(Operator op) {
  switch (op) {
    case Operator::add:
      return "+";
    case Operator::subtract:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::floor_divide:
      return "//";
    case Operator::modulo:
      return "%";
    default:
      return "**";
  }
}

std::int64_t floor_quotient(std::int64_t left, std::int64_t right) {
  if (left == std::numeric_limits<std::int64_t>::min() && right == -1) fail_overflow();
  const std::int64_t quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return result;
}

Value integer_arithmetic(Operator op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(left, right, &result)) fail_overflow();
      return Value(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(left, right, &result)) fail_overflow();
      return Value(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(left, right, &result)) fail_overflow();
      return Value(result);
    case Operator::divide:
      if (right == 0) fail_render("division by zero");
      return Value(static_cast<double>(left) / static_cast<double>(right));
    case Operator::floor_divide:
      if (right == 0) fail_render("division by zero");
      return Value(floor_quotient(left, right));
    case Operator::modulo:
      if (right == 0) fail_render("division by zero");
      if (right == -1) return Value(std::int64_t{0});
      return Value(left - floor_quotient(left, right) * right);
    default:
      if (right < 0) {
        if (left == 0) fail_render("division by zero");
        return Value(std::pow(static_cast<double>(left), static_cast<double>(right)));
      }
      return Value(integer_power(left, right));
  }
}

// Python's float modulo: the result has the divisor's sign.
double floor_modulo(double left, double right) {
  double rest = std::fmod(left, right);
  if (rest != 0.0) {
    if ((right < 0) != (rest < 0)) rest += right;
  } else {
    rest = std::copysign(0.0, right);
  }
  return rest;
}

Value real_arithmetic(Operator op, double left, double right) {
  const bool divides =
      op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && right == 0.0) fail_render("division by zero");
  switch (op) {
    case Operator::add:
      return Value(left + right);
    case Operator::subtract:
      return Value(left - right);
    case Operator::multiply:
      return Value(left * right);
    case Operator::divide:
      return Value(left / right);
    case Operator::floor_divide: {
      const double exact = (left - floor_modulo(left, right)) / right;
      const double floored = std::floor(exact);
      return Value(exact - floored > 0.5 ? floored + 1.0 : floored);
    }
    case Operator::modulo:
      return Value(floor_modulo(left, right));
    default: {
      if (left == 0.0 && right < 0.0) fail_render("division by zero");
      const double result = std::pow(left, right);
      if (std::isnan(result) && !std::isnan(left) && !std::isnan(right)) {
        fail_render("a negative number to a fractional power is not supported");
      }
      if (std::isinf(result) && !std::isinf(left) && !std::isinf(right)) {
        fail_render("the result is too large");
      }
      return Value(result);
    }
  }
}

Value repeat(Runtime& runtime, const Value& sequence, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (sequence.is(Kind::string)) {
    const std::string& text = sequence.string();
    if (text.empty()) return Value(std::string());
    runtime.check_text_size(count > kMaxText ? count : count * text.size());
    std::string out;
    out.reserve(count * text.size());
    for (std::size_t i = 0; i < count; ++i) out += text;
    return runtime.make_string(std::move(out));
  }
  const List& list = sequence.list();
  std::vector<Value> out;
  for (std::size_t i = 0; i < count && !list.items.empty(); ++i) {
    runtime.charge_items(list.items.size());
    out.insert(out.end(), list.items.begin(), list.items.end());
  }
  return make_list(std::move(out), list.kind);
}

bool is_repeatable(const Value& value) {
  return value.is(Kind::string) || (value.is(Kind::list) && (value.list().kind == ListKind::list ||
                                                             value.list().kind == ListKind::tuple));
}

std::int64_t as_integer(const Value& value) {
  return value.is(Kind::boolean) ? static_cast<std::int64_t>(value.boolean()) : value.integer();
}

}  // namespace

Value apply_arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right) {
  require_defined(left);
  require_defined(right);
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::real) || right.is(Kind::real)) {
      return real_arithmetic(op, to_real(left), to_real(right));
    }
    return integer_arithmetic(op, as_integer(left), as_integer(right));
  }
  if (op == Operator::add && left.is(Kind::string) && right.is(Kind::string)) {
    runtime.check_text_size(left.string().size() + right.string().size());
    return runtime.make_string(left.string() + right.string());
  }
  if (op == Operator::add && left.is(Kind::list) && right.is(Kind::list) && is_repeatable(left) &&
      left.list().kind == right.list().kind) {
    runtime.charge_items(left.list().items.size() + right.list().items.size());
    std::vector<Value> items = left.list().items;
    items.insert(items.end(), right.list().items.begin(), right.list().items.end());
    return make_list(std::move(items), left.list().kind);
  }
  if (op == Operator::multiply) {
    const auto counts = [](const Value& value) {
      return value.is(Kind::integer) || value.is(Kind::boolean);
    };
    if (is_repeatable(left) && counts(right)) return repeat(runtime, left, as_integer(right));
    if (counts(left) && is_repeatable(right)) return repeat(runtime, right, as_integer(left));
  }
  if (op == Operator::modulo && left.is(Kind::string)) {
    throw TemplateError(ErrorCode::unsupported, "formatting a string with % is not implemented");
  }
  fail_operands(spelling(op), left, right);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Kind::real)) return Value(-value.real());
  if (value.is_number()) return integer_arithmetic(Operator::subtract, 0, as_integer(value));
  fail_render(std::string("operator - is not defined for ") + value.type_name());
}

Value plus(const Value& value) {
  require_defined(value);
  if (value.is(Kind::real)) return value;
  if (value.is_number()) return Value(as_integer(value));
  fail_render(std::string("operator + is not defined for ") + value.type_name());
}

}  // namespace fixpoint::engine::jinja
