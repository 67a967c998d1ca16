// What may be tried again and how long to wait before: pure functions, by the rules of the official
// OpenAI and Anthropic SDKs (which clients expect, and which providers tell what to do by headers).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gateway/http/types.hpp"

namespace fixpoint {

// An upstream that asks for a longer wait than this is not tried again: its answer goes to the
// client, which can decide better.
inline constexpr std::chrono::milliseconds kMaxRetryWait{60'000};

// What another upstream may answer better: 408, 409, 429 and from 500 on.
bool may_pass(int status);
// Whether the same upstream may be asked once more: the same, unless x-should-retry says "true" or
// "false".
bool may_retry(int status, const Headers& headers);
// A call without an answer: unreachable, timeout, closed. Not protocol, invalid or overloaded (a
// local limit): those would fail in the same way again.
bool may_retry(const Error& error);

// What the upstream asks for: retry-after-ms, then retry-after in seconds or as an HTTP date (any
// of the three forms of RFC 9110, 5.6.7). Unset: nothing, nonsense, or not in the future.
std::optional<std::chrono::milliseconds> retry_after(const Headers& headers,
                                                     std::chrono::system_clock::time_point now);
// The wait before the next attempt when `failed` attempts (at least 1) have failed: what the
// upstream asks for, else 0.5 s * 2^(failed - 1), at most 8 s, of which 0.75 to 1 by chance
// (`random` from 0 to 1: see retry_random()). `headers` null: there was no answer. Unset: the
// upstream asks for more than kMaxRetryWait.
std::optional<std::chrono::milliseconds> retry_wait(std::uint64_t failed, const Headers* headers,
                                                    std::chrono::system_clock::time_point now,
                                                    double random);
double retry_random();  // in [0, 1). Thread-safe.

// Whether an answer or a failed call counts against the upstream's health (CircuitBreaker): from
// 500 on except 501; unreachable, timeout, closed, protocol. Not 4xx, which the request caused, and
// not the limits of this gateway.
bool is_upstream_fault(int status);
bool is_upstream_fault(const Error& error);

// RFC 9110, 5.6.7: IMF-fixdate, RFC 850 or asctime form. Unset: none of them.
std::optional<std::chrono::system_clock::time_point> parse_http_date(std::string_view text);

}  // namespace fixpoint
