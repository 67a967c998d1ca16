#include "gateway/cli/times.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>

namespace fixpoint::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kMaxAgeMs = std::int64_t{100} * 366 * 24 * 3'600'000;  // a century

tl::unexpected<Error> not_one(std::string_view text, std::string_view what) {
  std::string message;
  message += '"';
  message += text;
  message += "\" ";
  message += what;
  return fail(ErrorCode::invalid, std::move(message));
}

// Takes exactly `digits` digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> take_date(std::string_view& text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return milliseconds(std::chrono::sys_days(date).time_since_epoch()).count();
}

// Minutes east of UTC, in milliseconds.
std::optional<std::int64_t> take_offset(std::string_view& text) {
  if (take(text, "Zz")) return 0;
  if (text.empty()) return std::nullopt;
  const std::int64_t sign = text[0] == '-' ? -1 : 1;
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || *hours > 23 || !take(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (*hours * 60 + *minutes) * kMinuteMs;
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  const auto date = take_date(text);
  if (!date || text.empty()) return date;
  if (!take(text, "Tt ")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || *hours > 23 || !take(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *minutes > 59 || !take(text, ":")) return std::nullopt;
  const auto seconds = take_number(text, 2);
  if (!seconds || *seconds > 60) return std::nullopt;  // 60: a leap second
  std::int64_t ms = 0;
  if (take(text, ".")) {
    std::size_t digits = 0;
    for (std::int64_t scale = 100; const auto digit = take_number(text, 1); scale /= 10, ++digits) {
      ms += *digit * scale;  // beyond milliseconds: scale is 0
    }
    if (digits == 0) return std::nullopt;
  }
  const auto offset = take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;
  return *date + (*hours * 60 + *minutes) * kMinuteMs + *seconds * 1000 + ms - *offset;
}

}  // namespace

std::int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now).count();
}

std::string format_time(std::int64_t unix_ms) {
  const std::chrono::sys_time<milliseconds> time{milliseconds(unix_ms)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

Result<std::int64_t> parse_age(std::string_view text) {
  std::int64_t count = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, count);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const std::int64_t scale = unit == "s"   ? 1000
                             : unit == "m" ? kMinuteMs
                             : unit == "h" ? 60 * kMinuteMs
                             : unit == "d" ? 24 * 60 * kMinuteMs
                             : unit == "w" ? 7 * 24 * 60 * kMinuteMs
                                           : 0;
  if (code != std::errc() || scale == 0 || count < 0 || count > kMaxAgeMs / scale) {
    return not_one(text, "is no duration such as 90s, 15m, 1h, 30d or 2w");
  }
  return count * scale;
}

Result<std::int64_t> parse_moment(std::string_view text, std::int64_t now) {
  if (const auto age = parse_age(text)) return now - *age;
  if (const auto time = parse_rfc3339(text)) return *time;
  return not_one(text,
                 "is neither a duration such as 1h nor an RFC 3339 time such as "
                 "2026-11-29T21:00:00Z");
}

}  // namespace fixpoint::cli
