#include "cache/token_log_tokens.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fixpoint {
namespace {

enum Flags : unsigned char { kHasId = 1, kHasMargin = 2, kRedacted = 4, kFollows = 8 };
constexpr unsigned char kAllFlags = kHasId | kHasMargin | kRedacted | kFollows;

// Writes into a buffer that is large enough for the worst case.
class Packer {
 public:
  explicit Packer(char* at) : at_(at) {}

  void byte(unsigned char value) { *at_++ = static_cast<char>(value); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<unsigned char>(value | 0x80));
    byte(static_cast<unsigned char>(value));
  }
  void id(std::int32_t value) {
    varint(static_cast<std::uint32_t>(value) << 1 ^ static_cast<std::uint32_t>(value >> 31));
  }
  void real(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) byte(static_cast<unsigned char>(bits >> shift));
  }
  void text(std::string_view value) {
    varint(value.size());
    if (!value.empty()) std::memcpy(at_, value.data(), value.size());
    at_ += value.size();
  }
  const char* end() const { return at_; }

 private:
  char* at_;
};

// Every read checks the length; after a failed one `failed` stays set and zeros come.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return bytes_.empty() || failed_; }
  bool failed() const { return failed_; }
  std::size_t left() const { return bytes_.size(); }
  void fail() { failed_ = true; }

  unsigned char byte() {
    const std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<unsigned char>(one[0]);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !failed_; shift += 7) {
      const unsigned char part = byte();
      value |= std::uint64_t{part & 0x7Fu} << shift;
      if (part < 0x80) return value;
    }
    failed_ = true;
    return 0;
  }
  std::uint32_t word() {
    const std::uint64_t value = varint();
    if (value > UINT32_MAX) failed_ = true;
    return static_cast<std::uint32_t>(value);
  }
  std::int32_t id() {
    const std::uint32_t value = word();
    return static_cast<std::int32_t>(value >> 1 ^ (0u - (value & 1)));
  }
  float real() {
    std::uint32_t bits = 0;
    const std::string_view four = take(4);
    for (std::size_t i = four.size(); i-- > 0;) {
      bits = bits << 8 | static_cast<unsigned char>(four[i]);
    }
    return std::bit_cast<float>(bits);
  }
  std::string_view text() { return take(varint()); }

 private:
  std::string_view take(std::uint64_t count) {
    if (failed_ || count > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

// Ten bytes hold any varint.
constexpr std::size_t kMaxTokenBytes = 1 + 5 + 5 + 5 + 4 + 4 + 10 + 10;
constexpr std::size_t kMaxAlternativeBytes = 1 + 5 + 4 + 10;

std::size_t worst_case(const std::vector<LoggedToken>& tokens) {
  std::size_t bytes = tokens.size() * kMaxTokenBytes;
  for (const LoggedToken& token : tokens) {
    bytes += token.bytes.size() + token.top.size() * kMaxAlternativeBytes;
    for (const LoggedAlternative& alternative : token.top) bytes += alternative.bytes.size();
  }
  return bytes;
}

bool has_margin(const LoggedToken& token) {
  return token.margin && !std::isnan(*token.margin);
}

}  // namespace

std::string pack_tokens(const std::vector<LoggedToken>& tokens) {
  std::string bytes(worst_case(tokens), '\0');
  Packer out(bytes.data());
  std::uint32_t choice = 0, next = 0;
  for (const LoggedToken& token : tokens) {
    const bool follows = token.choice == choice && token.position == next;
    out.byte(
        static_cast<unsigned char>((token.id ? kHasId : 0) | (has_margin(token) ? kHasMargin : 0) |
                                   (token.redacted ? kRedacted : 0) | (follows ? kFollows : 0)));
    if (!follows) {
      out.varint(token.choice);
      out.varint(token.position);
    }
    choice = token.choice;
    next = token.position + 1;
    if (token.id) out.id(*token.id);
    out.real(token.logprob);
    if (has_margin(token)) out.real(*token.margin);
    out.text(token.bytes);
    out.varint(token.top.size());
    for (const LoggedAlternative& alternative : token.top) {
      out.byte(alternative.id ? kHasId : 0);
      if (alternative.id) out.id(*alternative.id);
      out.real(alternative.logprob);
      out.text(alternative.bytes);
    }
  }
  bytes.resize(static_cast<std::size_t>(out.end() - bytes.data()));
  return bytes;
}

Result<std::vector<LoggedToken>> unpack_tokens(std::string_view bytes) {
  std::vector<LoggedToken> tokens;
  Unpacker in(bytes);
  std::uint32_t choice = 0, next = 0;
  while (!in.done()) {
    LoggedToken& token = tokens.emplace_back();
    const unsigned char flags = in.byte();
    if ((flags & ~kAllFlags) != 0) in.fail();
    token.redacted = (flags & kRedacted) != 0;
    token.choice = (flags & kFollows) != 0 ? choice : in.word();
    token.position = (flags & kFollows) != 0 ? next : in.word();
    choice = token.choice;
    next = token.position + 1;
    if ((flags & kHasId) != 0) token.id = in.id();
    token.logprob = in.real();
    if ((flags & kHasMargin) != 0) token.margin = in.real();
    token.bytes = in.text();
    const std::uint64_t alternatives = in.varint();
    // Each has six bytes or more: a damaged count reserves no memory that the bytes do not back.
    if (alternatives > in.left() / 6) in.fail();
    if (!in.failed()) token.top.reserve(alternatives);
    for (std::uint64_t i = 0; i < alternatives && !in.failed(); ++i) {
      LoggedAlternative& alternative = token.top.emplace_back();
      const unsigned char has_id = in.byte();
      if (has_id > kHasId) in.fail();
      if (has_id == kHasId) alternative.id = in.id();
      alternative.logprob = in.real();
      alternative.bytes = in.text();
    }
  }
  if (in.failed()) return fail(ErrorCode::corrupt, "tokens.packed: not a list of tokens");
  return tokens;
}

MarginCounts count_margins(const std::vector<LoggedToken>& tokens) {
  MarginCounts counts;
  counts.tokens = static_cast<std::int64_t>(tokens.size());
  for (const LoggedToken& token : tokens) {
    if (!has_margin(token)) continue;
    ++counts.with_margin;
    counts.least = counts.least ? std::min(*counts.least, *token.margin) : *token.margin;
    for (std::size_t i = 0; i < std::size(kMarginSteps); ++i) {
      counts.below[i] += *token.margin < kMarginSteps[i] ? 1 : 0;
    }
  }
  return counts;
}

}  // namespace fixpoint
