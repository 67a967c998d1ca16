#include "cache/token_alternatives.hpp"

#include <bit>
#include <cstdint>

namespace fixpoint {
namespace {

constexpr std::size_t kHeaderBytes = 1 + 3 * 4;

void append_u32(std::string& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
}

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  }
  return value;
}

}  // namespace

std::string encode_alternatives(const std::vector<LoggedAlternative>& alternatives) {
  std::string bytes;
  for (const LoggedAlternative& alternative : alternatives) {
    bytes += alternative.id ? '\1' : '\0';
    append_u32(bytes, static_cast<std::uint32_t>(alternative.id.value_or(0)));
    append_u32(bytes, std::bit_cast<std::uint32_t>(alternative.logprob));
    append_u32(bytes, static_cast<std::uint32_t>(alternative.bytes.size()));
    bytes += alternative.bytes;
  }
  return bytes;
}

Result<std::vector<LoggedAlternative>> decode_alternatives(std::string_view bytes) {
  std::vector<LoggedAlternative> alternatives;
  while (!bytes.empty()) {
    if (bytes.size() < kHeaderBytes || static_cast<unsigned char>(bytes[0]) > 1) {
      return fail(ErrorCode::corrupt, "tokens.top: not a list of alternatives");
    }
    LoggedAlternative alternative;
    if (bytes[0] == '\1') alternative.id = static_cast<std::int32_t>(read_u32(bytes.substr(1)));
    alternative.logprob = std::bit_cast<float>(read_u32(bytes.substr(5)));
    const std::size_t length = read_u32(bytes.substr(9));
    bytes.remove_prefix(kHeaderBytes);
    if (length > bytes.size()) {
      return fail(ErrorCode::corrupt, "tokens.top: an alternative is cut");
    }
    alternative.bytes = bytes.substr(0, length);
    bytes.remove_prefix(length);
    alternatives.push_back(std::move(alternative));
  }
  return alternatives;
}

}  // namespace fixpoint
