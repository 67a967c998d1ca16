#include "cache/entry_codec.hpp"

#include <array>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cache/base/digest.hpp"
#include "cache/compression.hpp"

namespace fixpoint {
namespace {

constexpr std::string_view kMagic("FPE", 3);
constexpr char kVersion1 = 1, kVersion2 = 2;
constexpr std::size_t kDigestBytes = 32;

std::string_view view(const Sha256Bytes& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

template <class Integer>
void put_integer(std::string& bytes, Integer value) {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
  for (std::size_t i = 0; i < sizeof(Integer); ++i) bytes += static_cast<char>(bits >> 8 * i & 255);
}

void put_text(std::string& bytes, std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("encode_entry: a field of 4 GiB or more");
  }
  put_integer(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

// Takes values off the front; once something does not fit, everything is empty and ok() is false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <class Integer>
  Integer integer() {
    const std::string_view bytes = take(sizeof(Integer));
    std::make_unsigned_t<Integer> bits = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bits |= static_cast<std::make_unsigned_t<Integer>>(
          static_cast<std::make_unsigned_t<Integer>>(static_cast<unsigned char>(bytes[i]))
          << 8 * i);
    }
    return static_cast<Integer>(bits);
  }
  std::string_view text() { return take(integer<std::uint32_t>()); }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

tl::unexpected<Error> corrupt(const char* what) {
  return fail(ErrorCode::corrupt, std::string("a stored entry ") + what);
}

}  // namespace

std::string encode_entry(const Entry& entry, std::size_t compress_above) {
  const std::string& body = *entry.body;
  std::optional<std::string> compressed;
  if (body.size() > compress_above) compressed = compress(body);
  const std::string& kept = compressed ? *compressed : body;

  std::string bytes;
  bytes.reserve(256 + entry.key.material.size() + entry.tenant.size() + entry.endpoint.size() +
                entry.model.size() + entry.provider.size() + entry.generation.size() + kept.size());
  bytes += kMagic;
  bytes += entry.pace.empty() ? kVersion1 : kVersion2;
  bytes += static_cast<char>(entry.key.kind == KeyKind::body);
  bytes += static_cast<char>(compressed.has_value());
  put_integer(bytes, entry.created_ms);
  put_integer(bytes, entry.first_token_ms);
  put_integer(bytes, entry.total_ms);
  put_integer(bytes, std::uint64_t{body.size()});
  for (const std::string* text :
       {&entry.key.hex, &entry.key.material, &entry.tenant, &entry.endpoint, &entry.model,
        &entry.provider, &entry.generation}) {
    put_text(bytes, *text);
  }
  if (!entry.pace.empty()) put_text(bytes, entry.pace);
  put_integer(bytes, std::uint64_t{kept.size()});
  bytes += kept;
  bytes += view(sha256(bytes));
  return bytes;
}

Result<Entry> decode_entry(std::string_view bytes, std::size_t max_body) {
  if (bytes.size() <= kMagic.size() + kDigestBytes || !bytes.starts_with(kMagic)) {
    return corrupt("is none");
  }
  const char version = bytes[kMagic.size()];
  if (version != kVersion1 && version != kVersion2) {
    return corrupt("has a form that this version does not know");
  }
  const std::string_view checked = bytes.substr(0, bytes.size() - kDigestBytes);
  if (view(sha256(checked)) != bytes.substr(checked.size())) return corrupt("fails its checksum");

  // Below, only a writer's mistake is left to find.
  Cursor cursor(checked.substr(kMagic.size() + 1));
  Entry entry;
  const auto kind = cursor.integer<std::uint8_t>();
  const auto compression = cursor.integer<std::uint8_t>();
  if (kind > 1 || compression > 1) return corrupt("has an unknown kind or compression");
  entry.key.kind = kind == 0 ? KeyKind::prompt : KeyKind::body;
  entry.created_ms = cursor.integer<std::int64_t>();
  entry.first_token_ms = cursor.integer<std::uint32_t>();
  entry.total_ms = cursor.integer<std::uint32_t>();
  const auto body_size = cursor.integer<std::uint64_t>();
  for (std::string* text : {&entry.key.hex, &entry.key.material, &entry.tenant, &entry.endpoint,
                            &entry.model, &entry.provider, &entry.generation}) {
    *text = cursor.text();
  }
  if (version == kVersion2) entry.pace = cursor.text();
  const std::string_view kept = cursor.take(cursor.integer<std::uint64_t>());
  if (!cursor.at_end()) return corrupt("has lengths that do not fit");
  if (body_size > max_body) return corrupt("has a body beyond the limit");
  if (compression == 0) {
    if (kept.size() != body_size) return corrupt("has another length than it says");
    entry.body = std::make_shared<const std::string>(kept);
    return entry;
  }
  Result<std::string> body = decompress(kept, static_cast<std::size_t>(body_size));
  if (!body) return tl::make_unexpected(std::move(body.error()));
  entry.body = std::make_shared<const std::string>(std::move(*body));
  return entry;
}

}  // namespace fixpoint
