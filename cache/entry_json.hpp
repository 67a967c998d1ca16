// One entry as JSON that people can read: a line of an export, a file of a recording.
#pragma once

#include <string>
#include <string_view>

#include "cache/base/result.hpp"
#include "cache/entry.hpp"

namespace fixpoint {

// One line without a newline. The parts of the key's material are the members of "material": JSON
// in its canonical form, as the request is, stands there as it is, all else as strings (base64
// where it is no text). The answer is JSON, its own text where the layout would be lost, or
// base64 where it is no text. "asked" is CacheKey::asked, where there is any; "sha256" is over the
// rest of the entry, not over this text.
std::string entry_to_json(const Entry& entry);

// Gives the entry back byte for byte. Errors: invalid (no such JSON, another format version, a
// member that is missing or wrong, a key that is not the material's digest), corrupt (the checksum
// does not fit).
Result<Entry> entry_from_json(std::string_view line);

// The same for a file that people edit: indented, without a checksum. An answer that was changed
// by hand is taken as it is.
std::string entry_to_recording(const Entry& entry);
Result<Entry> entry_from_recording(std::string_view text);

// The material's parts as the members of an object, or a string (or base64) when it has no parts.
// entry_from_json() takes it back.
std::string material_to_json(std::string_view material);

}  // namespace fixpoint
