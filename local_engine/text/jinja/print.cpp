#include "local_engine/text/jinja/print.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/unicode.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

void append_hex(std::string& out, char32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[value >> shift & 15];
  }
}

void append_string_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    const CodePoint point = decode_code_point(text);
    const std::string_view character = text.substr(0, point.size);
    text.remove_prefix(point.size);
    if (point.value == static_cast<char32_t>(quote) || point.value == U'\\') {
      out += '\\';
      out += character;
    } else if (point.value == U'\n') {
      out += "\\n";
    } else if (point.value == U'\r') {
      out += "\\r";
    } else if (point.value == U'\t') {
      out += "\\t";
    } else if (point.value >= kInvalidByte) {
      out += "\\x";
      append_hex(out, point.value - kInvalidByte, 2);
    } else if (is_printable(point.value)) {
      out += character;
    } else if (point.value < 0x100) {
      out += "\\x";
      append_hex(out, point.value, 2);
    } else if (point.value < 0x10000) {
      out += "\\u";
      append_hex(out, point.value, 4);
    } else {
      out += "\\U";
      append_hex(out, point.value, 8);
    }
  }
  out += quote;
}

void append_items(Runtime& runtime, std::string& out, const std::vector<Value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, out, items[i]);
  }
}

void append_list_repr(Runtime& runtime, std::string& out, const Value& value) {
  const List& list = value.list();
  switch (list.kind) {
    case ListKind::list:
      out += '[';
      append_items(runtime, out, list.items);
      out += ']';
      return;
    case ListKind::tuple:
      out += '(';
      append_items(runtime, out, list.items);
      out += list.items.size() == 1 ? ",)" : ")";
      return;
    case ListKind::keys:
    case ListKind::values:
    case ListKind::items:
      out += value.type_name();
      out += "([";
      append_items(runtime, out, list.items);
      out += "])";
      return;
    case ListKind::range:
    case ListKind::generator:
      fail_render(std::string("a ") + value.type_name() +
                  " has no printable form; use the list filter");
  }
}

}  // namespace

std::string real_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* digits_of_exponent = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end.ptr, exponent);
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {  // where Python changes to scientific notation
    out += digits[0];
    if (digits.size() > 1) out.append(1, '.').append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    if (std::abs(exponent) < 10) out += '0';
    return out + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) {
    out += "0.";
    return out.append(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  out.append(digits, 0, whole).append(1, '.');
  return digits.size() > whole ? out.append(digits, whole) : out.append(1, '0');
}

void append_repr(Runtime& runtime, std::string& out, const Value& value) {
  runtime.step();
  runtime.check_text_size(out.size());
  switch (value.kind()) {
    case Kind::undefined:
      out += "Undefined";
      return;
    case Kind::none:
      out += "None";
      return;
    case Kind::boolean:
      out += value.boolean() ? "True" : "False";
      return;
    case Kind::integer:
      out += std::to_string(value.integer());
      return;
    case Kind::real:
      out += real_repr(value.real());
      return;
    case Kind::string:
      runtime.charge_text(value.string().size());
      append_string_repr(out, value.string());
      return;
    case Kind::list:
      append_list_repr(runtime, out, value);
      return;
    case Kind::dict: {
      out += '{';
      bool first = true;
      for (const auto& [key, item] : value.dict().items) {
        if (!first) out += ", ";
        first = false;
        append_repr(runtime, out, key);
        out += ": ";
        append_repr(runtime, out, item);
      }
      out += '}';
      return;
    }
    default:
      fail_render(std::string("a ") + value.type_name() + " has no printable form");
  }
}

void append_str(Runtime& runtime, std::string& out, const Value& value) {
  if (value.is(Kind::undefined)) return;
  if (value.is(Kind::string)) {
    runtime.charge_text(value.string().size());
    runtime.check_text_size(out.size() + value.string().size());
    out += value.string();
    return;
  }
  append_repr(runtime, out, value);
  runtime.check_text_size(out.size());
}

std::string to_str(Runtime& runtime, const Value& value) {
  std::string out;
  append_str(runtime, out, value);
  return out;
}

}  // namespace fixpoint::engine::jinja
