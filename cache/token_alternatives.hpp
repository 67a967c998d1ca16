// The alternatives of one logged token as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/token_log.hpp"

namespace fixpoint {

// Binary and not JSON: token bytes need not be UTF-8, log-probabilities keep their bits (infinities
// and NaN too), it is a quarter of the size, and no query looks inside. Each alternative: u8 1 if
// it has an id; i32 id (0 without); the f32 log-probability's bits; u32 length; the bytes. All
// little-endian.
std::string encode_alternatives(const std::vector<LoggedAlternative>& alternatives);

// Errors: corrupt.
Result<std::vector<LoggedAlternative>> decode_alternatives(std::string_view bytes);

}  // namespace fixpoint
