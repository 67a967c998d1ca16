// json.dumps.
#include <algorithm>
#include <cmath>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"
#include "local_engine/text/utf8.hpp"

namespace fixpoint::engine::jinja {

namespace {

void append_escape(std::string& out, std::uint32_t unit) {
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 15];
}

void append_json_string(std::string& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  while (!text.empty()) {
    const CodePoint point = decode_code_point(text);
    const std::string_view character = text.substr(0, point.size);
    text.remove_prefix(point.size);
    switch (point.value) {
      case U'"':
        out += "\\\"";
        continue;
      case U'\\':
        out += "\\\\";
        continue;
      case U'\n':
        out += "\\n";
        continue;
      case U'\r':
        out += "\\r";
        continue;
      case U'\t':
        out += "\\t";
        continue;
      case U'\b':
        out += "\\b";
        continue;
      case U'\f':
        out += "\\f";
        continue;
      default:
        break;
    }
    if (point.value >= kInvalidByte) {
      fail_render("text that is not UTF-8 cannot be written as JSON");
    } else if (point.value < 0x20 ||
               (ensure_ascii && point.value > 0x7E && point.value < 0x10000)) {
      append_escape(out, point.value);
    } else if (ensure_ascii && point.value >= 0x10000) {
      append_escape(out, 0xD800 + ((point.value - 0x10000) >> 10));
      append_escape(out, 0xDC00 + ((point.value - 0x10000) & 0x3FF));
    } else {
      out += character;
    }
  }
  out += '"';
}

std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return real_repr(value);
}

// Keys that are not strings are written as the string that JSON would have for them.
std::string json_key(const Value& key) {
  switch (key.kind()) {
    case Kind::string:
      return key.string();
    case Kind::boolean:
      return key.boolean() ? "true" : "false";
    case Kind::none:
      return "null";
    case Kind::integer:
      return std::to_string(key.integer());
    case Kind::real:
      return json_number(key.real());
    default:
      fail_render(std::string("a ") + key.type_name() + " cannot be a JSON key");
  }
}

class Writer {
 public:
  Writer(Runtime& runtime, std::string& out, const JsonStyle& style)
      : runtime_(runtime), out_(out), style_(style) {}

  void write(const Value& value, int level) {
    runtime_.step();
    runtime_.check_text_size(out_.size());
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        return;
      case Kind::boolean:
        out_ += value.boolean() ? "true" : "false";
        return;
      case Kind::integer:
        out_ += std::to_string(value.integer());
        return;
      case Kind::real:
        out_ += json_number(value.real());
        return;
      case Kind::string:
        runtime_.charge_text(value.string().size());
        append_json_string(out_, value.string(), style_.ensure_ascii);
        return;
      case Kind::list:
        write_list(value, level);
        return;
      case Kind::dict:
        write_dict(value.dict(), level);
        return;
      default:
        fail_render(std::string("a value of type ") + value.type_name() +
                    " cannot be written as JSON");
    }
  }

 private:
  void write_list(const Value& value, int level) {
    const List& list = value.list();
    if (list.kind != ListKind::list && list.kind != ListKind::tuple) {
      fail_render(std::string("a value of type ") + value.type_name() +
                  " cannot be written as JSON");
    }
    if (list.items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      begin_item(i == 0, level);
      write(list.items[i], level + 1);
    }
    end_items(level);
    out_ += ']';
  }

  void write_dict(const Dict& dict, int level) {
    if (dict.items.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(), [&](const auto* a, const auto* b) {
        return compare(runtime_, a->first, b->first) < 0;
      });
    }
    out_ += '{';
    bool first = true;
    for (const auto* item : items) {
      begin_item(first, level);
      first = false;
      append_json_string(out_, json_key(item->first), style_.ensure_ascii);
      out_ += style_.key_separator;
      write(item->second, level + 1);
    }
    end_items(level);
    out_ += '}';
  }

  void begin_item(bool first, int level) {
    if (!first) out_ += style_.item_separator;
    new_line(level + 1);
  }
  void end_items(int level) { new_line(level); }
  void new_line(int level) {
    if (!style_.indent) return;
    runtime_.check_text_size(out_.size() + static_cast<std::size_t>(level) * style_.indent->size());
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  Runtime& runtime_;
  std::string& out_;
  const JsonStyle& style_;
};

}  // namespace

void append_json(Runtime& runtime, std::string& out, const Value& value, const JsonStyle& style) {
  const std::size_t before = out.size();
  Writer(runtime, out, style).write(value, 0);
  runtime.charge_text(out.size() - before);
  runtime.check_text_size(out.size());
}

}  // namespace fixpoint::engine::jinja
