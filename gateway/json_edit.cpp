#include "gateway/json_edit.hpp"

#include "cache/base/json_scanner.hpp"

namespace fixpoint {
namespace {

// Finds one top-level member, and where another one could be added.
class MemberFinder {
 public:
  MemberFinder(std::string_view object, std::string_view name)
      : object_(object), name_(name), scanner_(object, *this) {}

  Result<void> run() {
    if (scanner_.scan() && is_object_) return {};
    if (duplicate_) {
      return fail(ErrorCode::invalid, "the member " + json_string(name_) + " is given twice");
    }
    return fail(ErrorCode::invalid,
                "not one JSON object: " +
                    (scanner_.error().empty() ? std::string("no object") : scanner_.error()));
  }

  std::optional<std::string_view> value() const {
    if (!found_) return std::nullopt;
    return object_.substr(begin_, end_ - begin_);
  }
  // The text with the member's value replaced, or the member added at the end.
  std::string with(std::string_view value) const {
    std::string out;
    out.reserve(object_.size() + name_.size() + value.size() + 8);
    if (found_) {
      return out.append(object_.substr(0, begin_)).append(value).append(object_.substr(end_));
    }
    out.append(object_.substr(0, last_end_)).append(any_ ? "," : "").append(json_string(name_));
    return out.append(":").append(value).append(object_.substr(last_end_));
  }

  // For the scanner.
  bool null() { return value_ended(); }
  bool boolean(bool) { return value_ended(); }
  bool number(std::string_view, bool) { return value_ended(); }
  bool string(const JsonString&) { return value_ended(); }
  bool key(const JsonString& name) {
    if (depth_ != 1) return true;
    any_ = true;
    wanted_ = name.plain ? name.raw == name_ : decode_json_string(name) == name_;
    duplicate_ = wanted_ && found_;
    return !duplicate_;
  }
  bool start_object() {
    if (depth_ == 0) {
      is_object_ = true;
      last_end_ = scanner_.position();
    }
    return open();
  }
  bool start_array() { return open(); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

 private:
  bool open() {
    if (depth_++ == 1) container_begin_ = scanner_.value_begin();
    return true;
  }
  bool close() {
    --depth_;
    return depth_ != 1 || ended(container_begin_);
  }
  bool value_ended() { return depth_ != 1 || ended(scanner_.value_begin()); }
  bool ended(std::size_t begin) {
    last_end_ = scanner_.position();
    if (!wanted_) return true;
    found_ = true;
    wanted_ = false;
    begin_ = begin;
    end_ = last_end_;
    return true;
  }

  const std::string_view object_, name_;
  JsonScanner<MemberFinder> scanner_;
  std::size_t depth_ = 0;
  std::size_t container_begin_ = 0;       // of the object or array that a member's value is
  std::size_t begin_ = 0, end_ = 0;       // of the found member's value
  std::size_t last_end_ = 0;              // of the last member's value; behind '{' if there is none
  bool is_object_ = false, any_ = false;  // a member was seen
  bool wanted_ = false, found_ = false, duplicate_ = false;
};

// Accepts anything.
struct Checker {
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number(std::string_view, bool) { return true; }
  bool string(const JsonString&) { return true; }
  bool key(const JsonString&) { return true; }
  bool start_object() { return true; }
  bool end_object() { return true; }
  bool start_array() { return true; }
  bool end_array() { return true; }
};

}  // namespace

Result<std::optional<std::string_view>> find_member(std::string_view object,
                                                    std::string_view name) {
  MemberFinder finder(object, name);
  if (auto done = finder.run(); !done) return tl::make_unexpected(std::move(done.error()));
  return finder.value();
}

Result<std::string> set_member(std::string_view object, std::string_view name,
                               std::string_view value_json) {
  Checker checker;
  if (!JsonScanner<Checker>(value_json, checker).scan()) {
    return fail(ErrorCode::invalid, "the value of " + json_string(name) + " is not one JSON value");
  }
  MemberFinder finder(object, name);
  if (auto done = finder.run(); !done) return tl::make_unexpected(std::move(done.error()));
  return finder.with(value_json);
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
