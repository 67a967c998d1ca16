// Filters on text and single values, and the table of all filters.
#include "local_engine/text/jinja/filters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"
#include "local_engine/text/jinja/unicode.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

Value trim(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("trim", {"chars"});
  const std::string text = to_str(runtime, value);
  if (!bound[0] || bound[0]->is(Kind::none)) {
    return runtime.make_string(std::string(strip(text, Side::both)));
  }
  const std::string chars = to_str(runtime, *bound[0]);
  runtime.charge_text(text.size() * (1 + chars.size() / 16));
  const std::string_view set = chars;
  return runtime.make_string(std::string(strip(text, Side::both, &set)));
}

Value upper(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("upper", {});
  return runtime.make_string(to_upper(to_str(runtime, value)));
}

Value lower(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("lower", {});
  return runtime.make_string(to_lower(to_str(runtime, value)));
}

Value capitalize_filter(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("capitalize", {});
  return runtime.make_string(capitalize(to_str(runtime, value)));
}

// Unlike str.title: words are cut at white space and at - ( { [ < only.
Value title(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("title", {});
  const std::string text = to_str(runtime, value);
  std::string out;
  std::size_t begin = 0;
  const auto add_word = [&](std::size_t end) {
    if (begin == end) return;
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    const std::size_t first = decode_code_point(word).size;
    out += to_upper(word.substr(0, first));
    out += to_lower(word.substr(first));
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_code_point(std::string_view(text).substr(at));
    if (is_space(point.value) ||
        std::u32string_view(U"-({[<").find(point.value) != std::u32string_view::npos) {
      add_word(at);
      out.append(text, at, point.size);
      begin = at + point.size;
    }
    at += point.size;
  }
  add_word(text.size());
  return runtime.make_string(std::move(out));
}

Value replace(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("replace", {"old", "new", "count"});
  if (!bound[0] || !bound[1]) fail_render("replace needs an old and a new text");
  const bool all = !bound[2] || bound[2]->is(Kind::none);
  if (!all && !bound[2]->is(Kind::integer)) fail_render("replace: count must be an integer");
  return replace_text(runtime, to_str(runtime, value), to_str(runtime, *bound[0]),
                      to_str(runtime, *bound[1]), all ? -1 : bound[2]->integer());
}

std::string indent_unit(Runtime& runtime, const Value& width) {
  if (width.is(Kind::string)) return width.string();
  if (!width.is_number() || width.is(Kind::real))
    fail_render("indent: width must be an integer or a str");
  const std::int64_t count =
      width.is(Kind::boolean) ? static_cast<std::int64_t>(width.boolean()) : width.integer();
  const auto spaces = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  runtime.check_text_size(spaces);
  return std::string(spaces, ' ');
}

Value indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("indent", {"width", "first", "blank"});
  const std::string unit = indent_unit(runtime, bound[0].value_or(Value(std::int64_t{4})));
  const bool first = bound[1] && truth(*bound[1]);
  const bool blank = bound[2] && truth(*bound[2]);
  const std::string text = to_str(runtime, value) + "\n";  // so that a last line end counts as one
  const std::vector<std::string_view> lines = split_lines(text);
  std::string out = first ? unit : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += unit;
    }
    out += lines[i];
    runtime.check_text_size(out.size());
  }
  return runtime.make_string(std::move(out));
}

Value string(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.bind("string", {});
  return value.is(Kind::string) ? value : runtime.make_string(to_str(runtime, value));
}

Value default_filter(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("default", {"default_value", "boolean"});
  const bool also_false = bound[1] && truth(*bound[1]);
  if (value.is(Kind::undefined) || (also_false && !truth(value))) {
    return bound[0].value_or(Value(std::string()));
  }
  return value;
}

// Python's float(): surrounding white space, a sign, digits with single underscores, inf and nan.
std::optional<double> parse_real(std::string_view text) {
  std::string plain;
  text = strip(text, Side::both);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] == '_') {
      if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
    } else {
      plain += text[i];
    }
  }
  const bool negative = plain.starts_with('-');
  if (negative || plain.starts_with('+')) plain.erase(0, 1);
  if (plain.empty() || plain[0] == '-' || plain[0] == '+' || plain.find('(') != std::string::npos) {
    return std::nullopt;
  }
  double result = 0;
  const auto end = std::from_chars(plain.data(), plain.data() + plain.size(), result);
  if (end.ptr != plain.data() + plain.size()) return std::nullopt;
  if (end.ec == std::errc::result_out_of_range) {  // to zero or to infinity, as in Python
    result = plain.find("e-") != std::string::npos || plain.find("E-") != std::string::npos
                 ? 0.0
                 : HUGE_VAL;
  } else if (end.ec != std::errc()) {
    return std::nullopt;
  }
  return negative ? -result : result;
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  std::string plain;
  text = strip(text, Side::both);
  bool negative = false;
  if (text.starts_with('-') || text.starts_with('+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto prefix = [&](char lower_letter, int of_base) {
    return base == of_base && text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == lower_letter;
  };
  if (prefix('x', 16) || prefix('o', 8) || prefix('b', 2)) text.remove_prefix(2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      if (i == 0 || i + 1 == text.size() || text[i + 1] == '_') return std::nullopt;
    } else {
      plain += text[i];
    }
  }
  if (negative) plain.insert(plain.begin(), '-');
  std::int64_t result = 0;
  const auto end = std::from_chars(plain.data(), plain.data() + plain.size(), result, base);
  if (end.ec == std::errc::result_out_of_range && end.ptr == plain.data() + plain.size()) {
    fail_render("the integer " + plain + " is outside 64 bits");
  }
  if (end.ec != std::errc() || end.ptr != plain.data() + plain.size()) return std::nullopt;
  return result;
}

std::optional<std::int64_t> truncate(double value) {
  if (std::isnan(value) || std::isinf(value)) return std::nullopt;
  if (std::abs(value) >= 9223372036854775808.0) fail_render("the integer is outside 64 bits");
  return static_cast<std::int64_t>(value);
}

Value int_filter(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("int", {"default", "base"});
  const Value otherwise = bound[0].value_or(Value(std::int64_t{0}));
  std::int64_t base = 10;
  if (bound[1]) {
    if (!bound[1]->is(Kind::integer) || bound[1]->integer() < 2 || bound[1]->integer() > 36) {
      fail_render("int: base must be an integer from 2 to 36");
    }
    base = bound[1]->integer();
  }
  std::optional<std::int64_t> result;
  if (value.is(Kind::string)) {
    result = parse_integer(value.string(), static_cast<int>(base));
    if (!result) {
      const std::optional<double> real = parse_real(value.string());
      if (real) result = truncate(*real);
    }
  } else if (value.is(Kind::real)) {
    result = truncate(value.real());
  } else if (value.is_number()) {
    return plus(value);
  } else {
    require_defined(value);
  }
  return result ? Value(*result) : otherwise;
}

Value float_filter(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("float", {"default"});
  if (value.is_number()) return Value(to_real(value));
  require_defined(value);
  if (value.is(Kind::string)) {
    if (const auto real = parse_real(value.string())) return Value(*real);
  }
  return bound[0].value_or(Value(0.0));
}

Value abs_filter(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.bind("abs", {});
  require_defined(value);
  if (value.is(Kind::real)) return Value(std::abs(value.real()));
  if (!value.is_number()) fail_render(std::string("abs is not defined for ") + value.type_name());
  const Value number = plus(value);
  return number.integer() < 0 ? negate(number) : number;
}

// Exactly as Python: the decimal expansion of the binary value, ties to even, by the C library's
// correctly rounded printing.
double round_to(double value, std::int64_t precision) {
  if (!std::isfinite(value) || precision > 323) return value;
  if (precision < -308) return std::copysign(0.0, value);
  if (precision < 0) {
    const double power = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / power) * power;
  }
  std::array<char, 800> buffer;  // 309 digits, the point, 323 decimals
  const auto printed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::fixed, static_cast<int>(precision));
  double rounded = value;
  std::from_chars(buffer.data(), printed.ptr, rounded);
  return rounded;
}

Value round(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = arguments.bind("round", {"precision", "method"});
  const Value precision = bound[0].value_or(Value(std::int64_t{0}));
  const std::string method = bound[1] && bound[1]->is(Kind::string) ? bound[1]->string()
                             : bound[1]                             ? "?"
                                                                    : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail_render("round: method must be common, ceil or floor");
  }
  require_defined(value);
  if (!value.is_number() || !precision.is(Kind::integer)) {
    fail_render("round needs a number and an integer precision");
  }
  if (method == "common") {
    if (value.is(Kind::real)) return Value(round_to(value.real(), precision.integer()));
    if (precision.integer() >= 0) return plus(value);
    fail_render("round: a negative precision for an integer is not implemented");
  }
  const double power = std::pow(10.0, static_cast<double>(precision.integer()));
  const double scaled = to_real(value) * power;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power);
}

Value tojson(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound =
      arguments.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = bound[0] && truth(*bound[0]);
  style.sort_keys = bound[3] && truth(*bound[3]);
  if (bound[1] && !bound[1]->is(Kind::none)) {
    style.indent = indent_unit(runtime, *bound[1]);
    style.item_separator = ",";
  }
  if (bound[2] && !bound[2]->is(Kind::none)) {
    const std::vector<Value> pair = iterate(runtime, *bound[2]);
    if (pair.size() != 2 || !pair[0].is(Kind::string) || !pair[1].is(Kind::string)) {
      fail_render("tojson: separators must be two strings");
    }
    style.item_separator = pair[0].string();
    style.key_separator = pair[1].string();
  }
  std::string out;
  append_json(runtime, out, value, style);
  return Value(std::move(out));
}

struct Named {
  std::string_view name;
  Filter filter;
};

constexpr Named kTextFilters[] = {
    {"abs", abs_filter},     {"capitalize", capitalize_filter},
    {"d", default_filter},   {"default", default_filter},
    {"float", float_filter}, {"indent", indent},
    {"int", int_filter},     {"lower", lower},
    {"replace", replace},    {"round", round},
    {"string", string},      {"title", title},
    {"tojson", tojson},      {"trim", trim},
    {"upper", upper},
};

}  // namespace

Filter find_filter(std::string_view name) {
  for (const Named& entry : kTextFilters) {
    if (entry.name == name) return entry.filter;
  }
  return find_sequence_filter(name);
}

}  // namespace fixpoint::engine::jinja
