// An entry as the value of a Redis key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/entry.hpp"
#include "cache/store.hpp"

namespace fixpoint::redis {

// Before the entry stands a tag with all that purge() and stats() ask for, so that they read some
// hundred bytes of each value (GETRANGE) and not the answers. A hash with fields would do that too,
// but takes two commands to write with an expiry, which can part, and more memory per key.
//
//   "FPR" 0x01 | the tag's length u32, all of it | created_ms i64 | body's length u64
//   | body's length as it is kept u64 | entry's length u64 | model's length u32, model | tenant's
//   length u32, tenant | the bytes of encode_entry()
//
// Integers are little-endian.
struct Tag {
  std::int64_t created_ms = 0;
  std::uint64_t body_bytes = 0;    // uncompressed
  std::uint64_t stored_bytes = 0;  // of the body as it is kept
  std::uint64_t entry_bytes = 0;   // of all that encode_entry() made
  std::string model, tenant;
};

// So much of a value has the tag, unless names are long.
inline constexpr std::size_t kUsualTagBytes = 256;
// Where a tag's length is known.
inline constexpr std::size_t kTagHeadBytes = 8;

std::string encode_record(const Entry& entry, std::size_t compress_above);
// The length of the tag that these bytes begin with. Errors: corrupt.
Result<std::size_t> tag_bytes(std::string_view value);
// `value` may end anywhere after the tag. Errors: corrupt.
Result<Tag> decode_tag(std::string_view value);
// Checks that tag and entry agree. Errors: corrupt.
Result<Entry> decode_record(std::string_view value);

// The name of an entry's key in Redis: "<prefix>e:{<CacheKey::name()>}". The braces make the slot
// of a cluster depend on the key's digest alone.
std::string record_key(std::string_view prefix, const CacheKey& key);
// The reverse. Errors: invalid, another kind of key.
Result<CacheKey> parse_record_key(std::string_view prefix, std::string_view name);
// For SCAN: the names of all entries, with what is special in a pattern escaped in the prefix.
std::string record_pattern(std::string_view prefix);

bool matches(const EntryFilter& filter, const Tag& tag);  // its key is not looked at

}  // namespace fixpoint::redis
