// Times and durations as people write them on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint::cli {

std::int64_t now_ms();  // Unix milliseconds
// "2026-11-29T21:00:00.123Z"
std::string format_time(std::int64_t unix_ms);
// "90s", "15m", "1h", "30d", "2w", in milliseconds. Errors: invalid.
Result<std::int64_t> parse_age(std::string_view text);
// An age before `now`, or an RFC 3339 time ("2026-11-29T21:00:00Z", with fraction or offset), or a
// date (its start in UTC). Errors: invalid.
Result<std::int64_t> parse_moment(std::string_view text, std::int64_t now);

}  // namespace fixpoint::cli
