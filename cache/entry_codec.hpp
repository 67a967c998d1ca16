// One entry as bytes, for stores that keep values and know nothing of columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"
#include "cache/entry.hpp"

namespace fixpoint {

// Larger bodies are not taken out of a compressed form, whatever that claims.
inline constexpr std::size_t kMaxDecodedBody = std::size_t{256} << 20;

// Version 1, integers little-endian:
//   "FPE" 0x01 | kind u8 (0 prompt, 1 body) | compression u8 (0 none, 1 zstd)
//   | created_ms i64 | first_token_ms u32 | total_ms u32 | body's length u64, uncompressed
//   | length u32 and bytes of: key's hex, material, tenant, endpoint, model, provider, generation
//   | the body's bytes as they are kept: length u64 and bytes | SHA-256 of all before it
// Version 2 ("FPE" 0x02) has the pace, as those, after the generation; it is written for entries
// that have one, so that the bytes of all others stay what they were. A body longer than
// compress_above goes through zstd if that makes it smaller. The body is not null. The forms are
// left out.
std::string encode_entry(const Entry& entry, std::size_t compress_above);

// Errors: corrupt, for whatever encode_entry() would not have written: a failed checksum, another
// version, lengths that do not fit, a body that does not decompress to its length or is larger than
// max_body. Does not compare the key's digest with its material.
Result<Entry> decode_entry(std::string_view bytes, std::size_t max_body = kMaxDecodedBody);

}  // namespace fixpoint
