#include "cache/base/canonical_json.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "cache/base/canonical_number.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kMaxNameInMessage = 64;  // bytes

// UTF-16 code units order like UTF-8 bytes, but for one thing: U+E000..U+FFFF (first byte EE or EF)
// come after the surrogate pairs of U+10000 and up (first byte F0..F4).
bool utf16_less(std::string_view left, std::string_view right) {
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : +byte;
  };
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                      [&](char a, char b) { return rank(a) < rank(b); });
}

// At most kMaxNameInMessage bytes, cut between characters.
std::string shortened(std::string name) {
  if (name.size() <= kMaxNameInMessage) return name;
  std::size_t end = kMaxNameInMessage;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "...";
}

// nlohmann's text without its class name, line and column, and without the "last read" part, which
// repeats the request: messages go into logs, and prompts do not.
std::string reason_of(const nlohmann::json::exception& exception) {
  constexpr int kNumberOverflow = 406;
  if (exception.id == kNumberOverflow) return "number beyond the range of a double";
  std::string_view text = exception.what();
  const std::size_t start = text.find("syntax error");
  if (start == std::string_view::npos) return "syntax error";
  text.remove_prefix(start);
  return std::string(text.substr(0, text.find("; last read")));
}

// Receives nlohmann's SAX events and writes canonical text into one buffer. A member is written
// where it comes; when its object ends, the slices of the buffer that hold the members are put into
// order.
class Canonicalizer {
 public:
  Canonicalizer(const CanonicalOptions& options, std::size_t input_size) : options_(options) {
    out_.reserve(input_size);
  }

  bool null() { return literal("null"); }
  bool boolean(bool value) { return literal(value ? "true" : "false"); }
  // Below 1e21 ECMAScript writes an integer with all its digits, and 64 bits end below that.
  bool number_integer(std::int64_t value) { return literal(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) { return literal(std::to_string(value)); }

  bool number_float(double value, const std::string& text) {
    const std::optional<std::string> number = canonical_number(text, value);
    if (!number) return stop("number with an exponent beyond 32 bits");
    return literal(*number);
  }

  bool string(std::string& value) {
    begin_value();
    append_string(value);
    return true;
  }

  bool binary(std::vector<std::uint8_t>&) { return stop("binary value"); }  // never in JSON text

  bool key(std::string& name) {
    Frame& frame = frames_[depth_ - 1];
    frame.members.push_back({std::move(name), out_.size(), 0});
    append_string(frame.members.back().name);
    out_ += ':';
    return true;
  }

  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false) && (out_ += '[', true); }

  bool end_array() {
    out_ += ']';
    --depth_;
    return true;
  }

  bool end_object() {
    Frame& frame = frames_[depth_ - 1];
    std::vector<Member>& members = frame.members;
    for (std::size_t i = 0; i < members.size(); ++i) {
      members[i].end = i + 1 < members.size() ? members[i + 1].begin : out_.size();
    }
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return utf16_less(a.name, b.name); });
    const auto duplicate =
        std::adjacent_find(members.begin(), members.end(),
                           [](const Member& a, const Member& b) { return a.name == b.name; });
    if (duplicate != members.end()) {
      return stop("duplicate member \"" + shortened(duplicate->name) + "\"");
    }
    sorted_.assign(1, '{');
    for (const Member& member : members) {
      if (depth_ == 1 && excluded(member.name)) continue;
      if (sorted_.size() > 1) sorted_ += ',';
      sorted_.append(out_, member.begin, member.end - member.begin);
    }
    sorted_ += '}';
    out_.replace(frame.begin, out_.size() - frame.begin, sorted_);
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& exception) {
    // The position counts the offending byte as read.
    const std::size_t offset = position > 0 ? position - 1 : 0;
    return stop(reason_of(exception) + " at byte " + std::to_string(offset));
  }

  std::string take_text() { return std::move(out_); }
  const std::string& error() const { return error_; }

 private:
  struct Member {
    std::string name;
    std::size_t begin, end;  // of `"name":value` in out_
  };
  struct Frame {
    bool is_object = false;
    std::size_t begin = 0;  // in out_
    std::size_t values = 0;
    std::vector<Member> members;
  };

  bool stop(std::string message) {
    error_ = std::move(message);
    return false;
  }

  bool open(bool is_object) {
    if (depth_ == options_.max_depth) {
      return stop("nested deeper than " + std::to_string(options_.max_depth) + " levels");
    }
    begin_value();
    if (depth_ == frames_.size()) frames_.emplace_back();  // frames keep their memory
    Frame& frame = frames_[depth_++];
    frame.is_object = is_object;
    frame.begin = out_.size();
    frame.values = 0;
    frame.members.clear();
    return true;
  }

  void begin_value() {
    if (depth_ == 0) return;
    Frame& frame = frames_[depth_ - 1];
    if (!frame.is_object && frame.values++ > 0) out_ += ',';
  }

  bool literal(std::string_view text) {
    begin_value();
    out_ += text;
    return true;
  }

  // RFC 8785 3.2.2.2: the two-character escapes, \u00xx in lower case for other control characters,
  // and everything else as it is.
  void append_string(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_ += '"';
    std::size_t plain = 0;  // start of the run not yet copied
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
      out_.append(text, plain, i - plain);
      plain = i + 1;
      out_ += '\\';
      switch (byte) {
        case '"':
        case '\\':
          out_ += text[i];
          break;
        case '\b':
          out_ += 'b';
          break;
        case '\t':
          out_ += 't';
          break;
        case '\n':
          out_ += 'n';
          break;
        case '\f':
          out_ += 'f';
          break;
        case '\r':
          out_ += 'r';
          break;
        default:
          out_ += "u00";
          out_ += kHex[byte >> 4];
          out_ += kHex[byte & 15];
      }
    }
    out_.append(text, plain);
    out_ += '"';
  }

  bool excluded(std::string_view name) const {
    return std::find(options_.exclude.begin(), options_.exclude.end(), name) !=
           options_.exclude.end();
  }

  const CanonicalOptions& options_;
  std::string out_;
  std::string sorted_;  // scratch of end_object
  std::vector<Frame> frames_;
  std::size_t depth_ = 0;  // frames in use
  std::string error_;
};

}  // namespace

Result<std::string> canonical_json(std::string_view text, const CanonicalOptions& options) {
  // nlohmann takes a NUL byte between tokens for the end of the input and would ignore what
  // follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(ErrorCode::invalid, "invalid JSON: NUL at byte " + std::to_string(nul));
  }
  Canonicalizer canonicalizer(options, text.size());
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &canonicalizer)) {
    return fail(ErrorCode::invalid, "invalid JSON: " + canonicalizer.error());
  }
  return canonicalizer.take_text();
}

}  // namespace fixpoint
