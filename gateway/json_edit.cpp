#include "gateway/json_edit.hpp"

#include <cstdint>

namespace fixpoint {
namespace {

constexpr std::size_t kMaxDepth = 128;

struct Member {
  std::size_t name_begin, name_end;  // with quotes
  std::size_t value_begin, value_end;
};

// What a pass over the object found out.
struct Layout {
  std::optional<Member> found;
  std::size_t members = 0;
  std::size_t last_value_end = 0;  // where another member can be added; after '{' if there is none
};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// A strict scanner of RFC 8259 that keeps positions and no values. Every function returns false at
// the first byte that does not fit; at_ stands there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }

  bool one_value() {
    skip_space();
    if (!value(0)) return false;
    skip_space();
    return at_ == text_.size();
  }

  // Errors leave at() at the place; `duplicate` tells a doubled name from bad JSON.
  bool object(std::string_view wanted, Layout& layout, bool& duplicate) {
    skip_space();
    if (!take('{')) return false;
    layout.last_value_end = at_;
    skip_space();
    if (!take('}')) {
      do {
        Member member{};
        if (!top_member(member)) return false;
        ++layout.members;
        layout.last_value_end = member.value_end;
        if (decoded(member) == wanted) {
          if (layout.found) {
            duplicate = true;
            return false;
          }
          layout.found = member;
        }
        skip_space();
      } while (take(','));
      if (!take('}')) return false;
    }
    skip_space();
    return at_ == text_.size();
  }

 private:
  bool more() const { return at_ < text_.size(); }
  bool take(char c) {
    if (!more() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (more() && is_space(text_[at_])) ++at_;
  }

  bool top_member(Member& member) {
    skip_space();
    member.name_begin = at_;
    if (!string()) return false;
    member.name_end = at_;
    skip_space();
    if (!take(':')) return false;
    skip_space();
    member.value_begin = at_;
    if (!value(1)) return false;
    member.value_end = at_;
    return true;
  }

  bool value(std::size_t depth) {
    if (depth > kMaxDepth || !more()) return false;
    switch (text_[at_]) {
      case '{':
        return inner_object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        return literal("true");
      case 'f':
        return literal("false");
      case 'n':
        return literal("null");
      default:
        return number();
    }
  }

  bool inner_object(std::size_t depth) {
    ++at_;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      if (!string()) return false;
      skip_space();
      if (!take(':')) return false;
      skip_space();
      if (!value(depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take('}');
  }

  bool array(std::size_t depth) {
    ++at_;
    skip_space();
    if (take(']')) return true;
    do {
      skip_space();
      if (!value(depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take(']');
  }

  bool literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool digits() {
    const std::size_t first = at_;
    while (more() && is_digit(text_[at_])) ++at_;
    return at_ > first;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool string() {
    if (!take('"')) return false;
    while (more()) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return false;
      ++at_;
      if (c == '"') return true;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  bool escape() {
    if (!more()) return false;
    const char c = text_[at_];
    if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
      ++at_;
      return true;
    }
    if (c != 'u' || text_.size() - at_ < 5) return false;
    for (std::size_t i = 1; i <= 4; ++i) {
      if (hex_value(text_[at_ + i]) < 0) return false;
    }
    at_ += 5;
    return true;
  }

  std::uint32_t code_unit(std::size_t digits_at) const {
    std::uint32_t unit = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      unit = unit * 16 + static_cast<std::uint32_t>(hex_value(text_[digits_at + i]));
    }
    return unit;
  }

  // The text of a scanned string. A lone surrogate becomes its three-byte form, which no valid
  // UTF-8 name equals.
  std::string decoded(const Member& member) const {
    std::string out;
    for (std::size_t i = member.name_begin + 1; i + 1 < member.name_end; ++i) {
      if (text_[i] != '\\') {
        out += text_[i];
        continue;
      }
      switch (text_[++i]) {
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'u': {
          std::uint32_t code = code_unit(i + 1);
          i += 4;
          const bool high = code >= 0xd800 && code < 0xdc00;
          if (high && text_.substr(i + 1, 2) == "\\u") {
            const std::uint32_t low = code_unit(i + 3);
            if (low >= 0xdc00 && low < 0xe000) {
              code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
              i += 6;
            }
          }
          append_utf8(out, code);
          break;
        }
        default:
          out += text_[i];
      }
    }
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<Layout> scan(std::string_view object, std::string_view name) {
  Layout layout;
  bool duplicate = false;
  Scanner scanner(object);
  if (scanner.object(name, layout, duplicate)) return layout;
  if (duplicate) {
    return fail(ErrorCode::invalid, "the member " + json_string(name) + " is given twice");
  }
  return fail(ErrorCode::invalid, "not one JSON object of at most " + std::to_string(kMaxDepth) +
                                      " levels, at byte " + std::to_string(scanner.at()));
}

std::string spliced(std::string_view text, std::size_t begin, std::size_t end,
                    std::string_view with) {
  std::string out;
  out.reserve(text.size() - (end - begin) + with.size());
  out.append(text.substr(0, begin)).append(with).append(text.substr(end));
  return out;
}

}  // namespace

Result<std::optional<std::string_view>> find_member(std::string_view object,
                                                    std::string_view name) {
  const auto layout = scan(object, name);
  if (!layout) return tl::make_unexpected(layout.error());
  if (!layout->found) return std::nullopt;
  const Member& member = *layout->found;
  return object.substr(member.value_begin, member.value_end - member.value_begin);
}

Result<std::string> set_member(std::string_view object, std::string_view name,
                               std::string_view value_json) {
  Scanner value(value_json);
  if (!value.one_value()) {
    return fail(ErrorCode::invalid, "the value of " + json_string(name) + " is not one JSON value");
  }
  const auto layout = scan(object, name);
  if (!layout) return tl::make_unexpected(layout.error());
  if (layout->found) {
    return spliced(object, layout->found->value_begin, layout->found->value_end, value_json);
  }
  std::string added = layout->members == 0 ? "" : ",";
  added.append(json_string(name)).append(":").append(value_json);
  return spliced(object, layout->last_value_end, layout->last_value_end, added);
}

Result<std::string> remove_member(std::string_view object, std::string_view name) {
  const auto layout = scan(object, name);
  if (!layout) return tl::make_unexpected(layout.error());
  if (!layout->found) return std::string(object);
  std::size_t begin = layout->found->name_begin, end = layout->found->value_end;
  // One comma goes with the member: the one behind it, or for the last member the one before it.
  std::size_t next = end;
  while (is_space(object[next])) ++next;  // stops at ',' or '}': the object was scanned
  if (object[next] == ',') {
    end = next + 1;
    while (is_space(object[end])) ++end;
  } else if (layout->members > 1) {
    while (object[begin] != ',') --begin;  // only white space stands between
  }
  return spliced(object, begin, end, "");
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (const auto byte = static_cast<unsigned char>(c); byte < 0x20) {
          out.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

}  // namespace fixpoint
