#include "cache/redis/record.hpp"

#include <limits>
#include <stdexcept>
#include <type_traits>

#include "cache/entry_codec.hpp"

namespace fixpoint::redis {
namespace {

constexpr std::string_view kMagic("FPR\x01", 4);
constexpr std::size_t kMaxTag = 1 << 20;  // names longer than that are nobody's

template <class Integer>
void put_integer(std::string& bytes, Integer value) {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    bytes += static_cast<char>(bits >> 8 * i & 0xff);
  }
}

void put_text(std::string& bytes, std::string_view text) {
  put_integer(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

template <class Integer>
Integer integer_at(std::string_view bytes, std::size_t at) {
  std::make_unsigned_t<Integer> bits = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    bits |= static_cast<std::make_unsigned_t<Integer>>(static_cast<unsigned char>(bytes[at + i]))
            << 8 * i;
  }
  return static_cast<Integer>(bits);
}

constexpr std::size_t kFixed = kTagHeadBytes + 4 * 8;

// What encode_entry() puts around the fields: its head, the lengths of seven texts, and the body's
// length and checksum. A pace, where there is one, has a length, too.
constexpr std::size_t kAroundFields = 30 + 7 * 4 + 8 + 32;

std::size_t kept_body_bytes(const Entry& entry, std::size_t encoded) {
  return encoded - kAroundFields - entry.key.hex.size() - entry.key.material.size() -
         entry.tenant.size() - entry.endpoint.size() - entry.model.size() - entry.provider.size() -
         entry.generation.size() - (entry.pace.empty() ? 0 : 4 + entry.pace.size());
}

tl::unexpected<Error> corrupt(std::string_view why) {
  return fail(ErrorCode::corrupt, "an entry in Redis " + std::string(why));
}

}  // namespace

std::string encode_record(const Entry& entry, std::size_t compress_above) {
  const std::string encoded = encode_entry(entry, compress_above);
  const std::size_t tag = kFixed + 4 + entry.model.size() + 4 + entry.tenant.size();
  if (tag > kMaxTag) throw std::length_error("Store::put: model and tenant of more than 1 MiB");
  std::string value;
  value.reserve(tag + encoded.size());
  value += kMagic;
  put_integer(value, static_cast<std::uint32_t>(tag));
  put_integer(value, entry.created_ms);
  put_integer(value, std::uint64_t{entry.body->size()});
  put_integer(value, std::uint64_t{kept_body_bytes(entry, encoded.size())});
  put_integer(value, std::uint64_t{encoded.size()});
  put_text(value, entry.model);
  put_text(value, entry.tenant);
  value += encoded;
  return value;
}

Result<std::size_t> tag_bytes(std::string_view value) {
  if (value.size() < kTagHeadBytes || value.substr(0, 3) != kMagic.substr(0, 3)) {
    return corrupt("is not Fixpoint's");
  }
  if (value[3] != kMagic[3]) return corrupt("has a format that this version does not know");
  const std::size_t bytes = integer_at<std::uint32_t>(value, 4);
  if (bytes < kFixed + 8 || bytes > kMaxTag) return corrupt("has a tag of impossible length");
  return bytes;
}

Result<Tag> decode_tag(std::string_view value) {
  const Result<std::size_t> bytes = tag_bytes(value);
  if (!bytes) return tl::make_unexpected(bytes.error());
  if (value.size() < *bytes) return corrupt("is cut off");
  const std::string_view whole = value.substr(0, *bytes);
  Tag tag;
  tag.created_ms = integer_at<std::int64_t>(whole, kTagHeadBytes);
  tag.body_bytes = integer_at<std::uint64_t>(whole, kTagHeadBytes + 8);
  tag.stored_bytes = integer_at<std::uint64_t>(whole, kTagHeadBytes + 16);
  tag.entry_bytes = integer_at<std::uint64_t>(whole, kTagHeadBytes + 24);
  const std::size_t model = integer_at<std::uint32_t>(whole, kFixed);
  if (model > whole.size() - kFixed - 8) return corrupt("has a tag that does not fit");
  tag.model = whole.substr(kFixed + 4, model);
  const std::size_t tenant = integer_at<std::uint32_t>(whole, kFixed + 4 + model);
  if (tenant != whole.size() - kFixed - 8 - model) return corrupt("has a tag that does not fit");
  tag.tenant = whole.substr(kFixed + 8 + model);
  return tag;
}

Result<Entry> decode_record(std::string_view value) {
  const Result<Tag> tag = decode_tag(value);
  if (!tag) return tl::make_unexpected(tag.error());
  const std::string_view encoded = value.substr(*tag_bytes(value));
  if (encoded.size() != tag->entry_bytes) return corrupt("is cut off");
  Result<Entry> entry = decode_entry(encoded);
  if (!entry) return entry;
  if (entry->created_ms != tag->created_ms || entry->model != tag->model ||
      entry->tenant != tag->tenant || entry->body->size() != tag->body_bytes) {
    return corrupt("has another entry's tag");
  }
  return entry;
}

std::string record_key(std::string_view prefix, const CacheKey& key) {
  std::string name(prefix);
  name += "e:{";
  name += key.name();
  name += '}';
  return name;
}

Result<CacheKey> parse_record_key(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix) || !name.substr(prefix.size()).starts_with("e:{") ||
      !name.ends_with('}')) {
    return fail(ErrorCode::invalid, "a Redis key that is not an entry's");
  }
  name.remove_prefix(prefix.size() + 3);
  name.remove_suffix(1);
  return parse_key_name(name);
}

std::string record_pattern(std::string_view prefix) {
  std::string pattern;
  for (const char c : prefix) {
    if (std::string_view("*?[]^-\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "e:{*}";
}

bool matches(const EntryFilter& filter, const Tag& tag) {
  return (!filter.model || *filter.model == tag.model) &&
         (!filter.tenant || *filter.tenant == tag.tenant) &&
         (!filter.older_than_ms || tag.created_ms < *filter.older_than_ms);
}

}  // namespace fixpoint::redis
