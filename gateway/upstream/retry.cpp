#include "gateway/upstream/retry.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <random>
#include <string>

namespace fixpoint {
namespace {

using std::chrono::milliseconds;
using SystemTime = std::chrono::system_clock::time_point;

constexpr double kFirstWaitMs = 500;
constexpr double kLongestBackoffMs = 8000;
// Longer waits are refused anyway; the bound keeps the conversion to milliseconds defined.
constexpr double kLongestAskedMs = 1e12;

std::optional<milliseconds> positive_ms(double value) {
  if (!(value > 0)) return std::nullopt;  // also NaN
  return milliseconds(static_cast<std::int64_t>(std::ceil(std::min(value, kLongestAskedMs))));
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool may_pass(int status) {
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

bool may_retry(int status, const Headers& headers) {
  if (const std::string* told = headers.find("x-should-retry")) {
    if (equal_ignoring_case(*told, "true")) return status >= 400;
    if (equal_ignoring_case(*told, "false")) return false;
  }
  return may_pass(status);
}

bool may_retry(const Error& error) {
  return error.code == ErrorCode::unreachable || error.code == ErrorCode::timeout ||
         error.code == ErrorCode::closed;
}

std::optional<milliseconds> retry_after(const Headers& headers, SystemTime now) {
  if (const std::string* text = headers.find("retry-after-ms")) {
    const std::optional<double> value = number(*text);
    if (value) {
      if (const auto wait = positive_ms(*value)) return wait;
    }
  }
  const std::string* text = headers.find("retry-after");
  if (text == nullptr) return std::nullopt;
  if (const std::optional<double> seconds = number(*text)) return positive_ms(*seconds * 1000);
  const std::optional<SystemTime> date = parse_http_date(*text);
  if (!date) return std::nullopt;
  return positive_ms(std::chrono::duration<double, std::milli>(*date - now).count());
}

std::optional<milliseconds> retry_wait(std::uint64_t failed, const Headers* headers, SystemTime now,
                                       double random) {
  if (headers != nullptr) {
    if (const auto asked = retry_after(*headers, now)) {
      if (*asked > kMaxRetryWait) return std::nullopt;
      return asked;
    }
  }
  // 2^4 is beyond the longest wait already.
  const auto doublings = static_cast<int>(std::min<std::uint64_t>(failed > 0 ? failed - 1 : 0, 4));
  const double wait = std::min(std::ldexp(kFirstWaitMs, doublings), kLongestBackoffMs);
  return milliseconds(static_cast<std::int64_t>(wait * (1 - 0.25 * random)));
}

double retry_random() {
  thread_local std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

bool is_upstream_fault(int status) {
  return status >= 500 && status != 501;
}

bool is_upstream_fault(const Error& error) {
  return error.code == ErrorCode::unreachable || error.code == ErrorCode::timeout ||
         error.code == ErrorCode::closed || error.code == ErrorCode::protocol;
}

std::optional<SystemTime> parse_http_date(std::string_view text) {
  // strptime follows the C locale, which the program never changes.
  constexpr std::array<const char*, 3> kForms = {
      "%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"};
  const std::string copy(text);
  for (const char* form : kForms) {
    std::tm parts{};
    const char* end = ::strptime(copy.c_str(), form, &parts);
    if (end != copy.c_str() + copy.size()) continue;
    return std::chrono::system_clock::from_time_t(::timegm(&parts));
  }
  return std::nullopt;
}

}  // namespace fixpoint
