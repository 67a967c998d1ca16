// What a gateway key is: whom it stands for and what it may do. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/digest.hpp"
#include "cache/base/result.hpp"

namespace fixpoint {

// Money is counted in micro-dollars: a price of one US dollar per million tokens is one of them per
// token.
using MicroDollars = std::int64_t;
constexpr MicroDollars kDollar = 1'000'000;

// What may be changed while the key is in use. 0: no limit.
struct KeyPolicy {
  std::vector<std::string> models;  // globs over the requested model; empty: every model
  std::uint64_t requests_per_minute = 0;
  std::uint64_t tokens_per_minute = 0;  // prompt and completion
  std::uint64_t monthly_tokens = 0;     // prompt and completion, per calendar month in UTC
  MicroDollars monthly_cost = 0;

  bool allows(std::string_view model) const;
  bool limits_tokens() const {
    return tokens_per_minute > 0 || monthly_tokens > 0 || monthly_cost > 0;
  }
  bool operator==(const KeyPolicy&) const = default;
};

struct ApiKey {
  std::string id;               // "key_" and 12 hex digits; public
  std::string name;             // for people; need not be unique
  std::string cache_namespace;  // keys with the same one share cached answers; never empty
  Sha256Bytes digest{};         // of the secret
  KeyPolicy policy;
  std::int64_t created_ms = 0;  // Unix milliseconds
  std::int64_t revoked_ms = 0;  // 0: in force
};

struct NewKey {
  std::string name;
  std::string cache_namespace;  // empty: the key's id, which nobody else has
  KeyPolicy policy;
};

// The secret leaves the program here, once; only its digest is kept.
struct CreatedKey {
  ApiKey key;
  std::string secret;
};

// A calendar month in UTC: 100 * year + month, 202611.
using Month = std::int32_t;
Month month_of(std::int64_t unix_ms);
std::int64_t month_end_ms(Month month);  // the first Unix millisecond of the next one
std::string format_month(Month month);   // "2026-11"

struct KeyUsage {
  std::uint64_t requests = 0;  // answered ones, those from the cache too
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  MicroDollars cost = 0;

  bool operator==(const KeyUsage&) const = default;
};

struct MonthlyUsage {
  std::string key;  // its id
  Month month = 0;
  KeyUsage usage;
};

// Limits of what the admin API may make grow.
constexpr std::size_t kMaxKeys = 100'000;  // revoked ones count
constexpr std::size_t kMaxKeyNameBytes = 128;
constexpr std::size_t kMaxKeyModels = 64;
constexpr std::size_t kMaxKeyModelBytes = 256;
constexpr std::uint64_t kMaxPerMinute = 1'000'000'000;
constexpr std::uint64_t kMaxMonthlyTokens = 1'000'000'000'000'000;  // exact in a JSON number
constexpr MicroDollars kMaxMonthlyCost = 1'000'000'000 * kDollar;

// Errors: invalid, naming the field as the admin API does and its limit.
Result<void> check_policy(const KeyPolicy& policy);
Result<void> check_new_key(const NewKey& key);

// A key with a new id, and its secret: "fp-" and 43 base64url characters, 256 random bits. Throws
// std::runtime_error when the system has no randomness. Precondition: check_new_key().
CreatedKey generate_key(const NewKey& wanted, std::int64_t now_ms);
// Whether the text has the form of a secret or of an id.
bool looks_like_secret(std::string_view text);
bool looks_like_key_id(std::string_view text);

// "12.5", "0.000123": US dollars without trailing zeros.
std::string format_dollars(MicroDollars amount);

}  // namespace fixpoint
