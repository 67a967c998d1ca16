#include "cache/base/canonical_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "cache/base/canonical_number.hpp"
#include "cache/base/json_scanner.hpp"
#include "cache/base/release.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kMaxNameInMessage = 64;  // bytes
// Bytes that putting members in order may copy: so many times the text, and a megabyte for short
// ones. Real requests copy theirs two to five times.
constexpr std::size_t kMaxCopies = 16, kFreeCopies = std::size_t{1} << 20;
// Any integer of so many digits is below 2^53 and stays as it is spelled.
constexpr std::size_t kSafeDigits = 15;

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
std::string shortened(std::string_view name) {
  if (name.size() <= kMaxNameInMessage) return std::string(name);
  std::size_t end = kMaxNameInMessage;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return std::string(name.substr(0, end)) + "...";
}

// The nearest double; infinite beyond the range, zero or subnormal below it.
double to_double(std::string_view literal) {
  double value = 0;
  const auto read = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  // from_chars does not say in which direction a number left the range.
  return read.ec == std::errc{} ? value : std::strtod(std::string(literal).c_str(), nullptr);
}

bool fits_64_bits(std::string_view literal) {
  const char* const end = literal.data() + literal.size();
  if (literal.starts_with('-')) {
    std::int64_t value = 0;
    return std::from_chars(literal.data(), end, value).ec == std::errc{};
  }
  std::uint64_t value = 0;
  return std::from_chars(literal.data(), end, value).ec == std::errc{};
}

struct Slice {
  std::size_t begin, size;
};
struct Member {
  std::size_t begin = 0, end = 0;  // of `"name":value` in the text that is written
  Slice name{0, 0};                // there, too, as it is spelled
  std::size_t decoded = 0;  // one-based index in Scratch::decoded; 0: the spelling is the name
};
struct Frame {
  bool is_object = false;
  std::size_t begin = 0;         // in the text that is written
  std::size_t values = 0;        // of an array
  std::size_t first_member = 0;  // of an object, in Scratch::members
};

// What a canonicalisation writes into. Each thread keeps one: every request needs all of it, and
// growing it anew costs more than the rest of the work on a short request.
struct Scratch {
  std::string out;
  std::string sorted;           // of end_object
  std::vector<Frame> frames;    // of which Canonicalizer::depth_ are in use
  std::vector<Member> members;  // of all open objects, the innermost's last
  std::vector<std::string> decoded;
};
Scratch& this_threads_scratch() {
  thread_local Scratch scratch;
  return scratch;
}
// Texts beyond it take their memory with them.
constexpr std::size_t kMaxKept = 64 * 1024;
constexpr std::size_t kMaxKeptMembers = 1024;
// Top-level members of most requests.
constexpr std::size_t kUsualMembers = 16;

// Receives the scanner's tokens and writes canonical text into one buffer. A member is written
// where it comes; when its object ends, the slices of the buffer that hold the members are put into
// order.
class Canonicalizer {
 public:
  Canonicalizer(std::string_view text, const CanonicalOptions& options,
                std::vector<JsonMember>* members)
      : text_(text), options_(options), top_members_(members), scanner_(text, *this) {
    out_.clear();
    members_.clear();
    out_.reserve(text.size());
    if (members) members->reserve(kUsualMembers);
  }
  ~Canonicalizer() {
    decoded_.clear();
    if (out_.capacity() > kMaxKept) release(out_);
    if (sorted_.capacity() > kMaxKept) release(sorted_);
    if (members_.capacity() > kMaxKeptMembers) release(members_);
    if (decoded_.capacity() > kMaxKeptMembers) release(decoded_);
  }
  Canonicalizer(const Canonicalizer&) = delete;
  Canonicalizer& operator=(const Canonicalizer&) = delete;

  Result<std::string> run() {
    if (scanner_.scan()) {
      if (out_.capacity() > kMaxKept) return std::move(out_);
      return std::string(out_);
    }
    return fail(ErrorCode::invalid,
                "invalid JSON: " + (error_.empty() ? scanner_.error() : error_));
  }

  bool null() { return literal("null"); }
  bool boolean(bool value) { return literal(value ? "true" : "false"); }

  bool number(std::string_view digits, bool is_integer) {
    if (is_integer) {
      if (digits == "-0") return literal("0");
      // Below 1e21 ECMAScript writes an integer with all its digits, and 64 bits end below that.
      if (digits.size() <= kSafeDigits || fits_64_bits(digits)) return literal(digits);
    }
    const double value = to_double(digits);
    if (!std::isfinite(value)) {
      return stop("number beyond the range of a double at byte " +
                  std::to_string(scanner_.value_begin()));
    }
    const std::optional<std::string> number = canonical_number(digits, value);
    if (!number) return stop("number with an exponent beyond 32 bits");
    return literal(*number);
  }

  bool string(const JsonString& value) {
    if (!begin_value()) return false;
    append_string(value);
    return value_ended();
  }

  bool key(const JsonString& name) {
    if (++member_count_ > options_.max_members) {
      return stop("more than " + std::to_string(options_.max_members) + " members in all");
    }
    Member member;
    member.begin = out_.size();
    append_string(name);
    member.name = {member.begin + 1, out_.size() - member.begin - 2};
    if (!name.plain) {  // escapes do not sort as what they stand for
      member.decoded = decoded_.size() + 1;
      decoded_.push_back(decode_json_string(name));
    }
    out_ += ':';
    if (depth_ == 1 && top_members_) top_members_->push_back({std::string(name_of(member)), {}});
    members_.push_back(member);
    return true;
  }

  bool start_object() { return open('{'); }
  bool start_array() { return open('['); }

  bool end_array() {
    out_ += ']';
    --depth_;
    return value_ended();
  }

  bool end_object() {
    const Frame& frame = frames_[depth_ - 1];
    const auto first = members_.begin() + static_cast<std::ptrdiff_t>(frame.first_member);
    for (auto member = first; member != members_.end(); ++member) {
      const auto next = std::next(member);
      member->end = next != members_.end() ? next->begin : out_.size();
    }
    std::sort(first, members_.end(), [this](const Member& a, const Member& b) {
      return utf16_less(name_of(a), name_of(b));
    });
    const auto duplicate = std::adjacent_find(
        first, members_.end(),
        [this](const Member& a, const Member& b) { return name_of(a) == name_of(b); });
    if (duplicate != members_.end()) {
      return stop("duplicate member \"" + shortened(name_of(*duplicate)) + "\"");
    }
    sorted_.assign(1, '{');
    for (auto member = first; member != members_.end(); ++member) {
      if (depth_ == 1 && excluded(name_of(*member))) continue;
      if (sorted_.size() > 1) sorted_ += ',';
      sorted_.append(out_, member->begin, member->end - member->begin);
    }
    sorted_ += '}';
    // Each level copies what is below it: deep nesting of long text would take for ever.
    copied_ += sorted_.size();
    if (copied_ > kMaxCopies * text_.size() + kFreeCopies) {
      return stop("long text nested too deeply");
    }
    out_.replace(frame.begin, out_.size() - frame.begin, sorted_);
    members_.erase(first, members_.end());
    --depth_;
    return value_ended();
  }

 private:
  bool stop(std::string message) {
    error_ = std::move(message);
    return false;
  }

  std::string_view name_of(const Member& member) const {
    return member.decoded > 0 ? std::string_view(decoded_[member.decoded - 1])
                              : std::string_view(out_).substr(member.name.begin, member.name.size);
  }

  bool open(char bracket) {
    if (depth_ == options_.max_depth) {
      return stop("nested deeper than " + std::to_string(options_.max_depth) + " levels");
    }
    if (!begin_value()) return false;
    if (depth_ == frames_.size()) frames_.emplace_back();  // frames keep their memory
    Frame& frame = frames_[depth_++];
    frame.is_object = bracket == '{';
    frame.begin = out_.size();
    frame.values = 0;
    frame.first_member = members_.size();
    if (bracket == '[') out_ += bracket;  // an object's is written when it is put into order
    return true;
  }

  bool begin_value() {
    if (++value_count_ > options_.max_values) {
      return stop("more than " + std::to_string(options_.max_values) + " values");
    }
    if (depth_ == 0) return true;
    Frame& frame = frames_[depth_ - 1];
    if (!frame.is_object && frame.values++ > 0) out_ += ',';
    if (depth_ == 1) value_begin_ = scanner_.value_begin();
    return true;
  }

  // Notes the spelling of a top-level member's value.
  bool value_ended() {
    if (depth_ == 1 && top_members_ && frames_[0].is_object) {
      top_members_->back().value = text_.substr(value_begin_, scanner_.position() - value_begin_);
    }
    return true;
  }

  bool literal(std::string_view text) {
    if (!begin_value()) return false;
    out_ += text;
    return value_ended();
  }

  // RFC 8785 3.2.2.2: the two-character escapes, \u00xx in lower case for other control characters,
  // and everything else as it is.
  void append_string(const JsonString& string) {
    out_ += '"';
    const std::string_view raw = string.raw;
    if (string.plain) {
      out_ += raw;
    } else {
      for (std::size_t at = 0; at < raw.size();) {
        const std::size_t slash = std::min(raw.find('\\', at), raw.size());
        out_.append(raw, at, slash - at);
        at = slash;
        if (at < raw.size()) at += append_escape(raw.substr(at));
      }
    }
    out_ += '"';
  }

  // The canonical spelling of the escape that `text` begins with. Returns the escape's length.
  std::size_t append_escape(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    if (text[1] == '/') {
      out_ += '/';
      return 2;
    }
    if (text[1] != 'u') {  // shorter ones are canonical already
      out_.append(text, 0, 2);
      return 2;
    }
    const std::size_t length = json_escape_length(text);
    const std::string character = decode_json_string({text.substr(0, length), false});
    const auto byte = static_cast<unsigned char>(character[0]);
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    if (const auto found = kShort.find(character); found != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[found];
    } else if (byte < 0x20) {
      out_ += "\\u00";
      out_ += kHex[byte >> 4];
      out_ += kHex[byte & 15];
    } else {
      out_ += character;
    }
    return length;
  }

  bool excluded(std::string_view name) const {
    return std::find(options_.exclude.begin(), options_.exclude.end(), name) !=
           options_.exclude.end();
  }

  const std::string_view text_;
  const CanonicalOptions& options_;
  std::vector<JsonMember>* const top_members_;
  JsonScanner<Canonicalizer> scanner_;
  Scratch& scratch_ = this_threads_scratch();
  std::string& out_ = scratch_.out;
  std::string& sorted_ = scratch_.sorted;
  std::vector<Frame>& frames_ = scratch_.frames;
  std::vector<Member>& members_ = scratch_.members;
  std::vector<std::string>& decoded_ = scratch_.decoded;
  std::size_t depth_ = 0;        // frames in use
  std::size_t value_begin_ = 0;  // in text_, of the value of the current top-level member
  std::size_t member_count_ = 0, value_count_ = 0, copied_ = 0;
  std::string error_;
};

}  // namespace

Result<std::string> canonical_json(std::string_view text, const CanonicalOptions& options,
                                   std::vector<JsonMember>* members) {
  return Canonicalizer(text, options, members).run();
}

}  // namespace fixpoint
