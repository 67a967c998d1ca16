#include "gateway/tenants/api_key.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <stdexcept>

#include "gateway/config.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint {
namespace {

constexpr std::string_view kIdPrefix = "key_";
constexpr std::size_t kIdDigits = 12;
constexpr std::string_view kSecretPrefix = "fp-";
constexpr std::size_t kSecretDigits = 43;  // 32 bytes in base64url without padding
constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kHex = "0123456789abcdef";

void fill_randomly(std::span<unsigned char> bytes) {
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw std::runtime_error("the system has no randomness for a key");
  }
}

std::string base64url(std::span<const unsigned char> bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const unsigned char byte : bytes) {
    bits = bits << 8 | byte;
    for (count += 8; count >= 6; count -= 6) text += kBase64Url[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kBase64Url[bits << (6 - count) & 63];
  return text;
}

Result<void> check_range(const char* field, std::uint64_t value, std::uint64_t most) {
  if (value <= most) return {};
  return fail(ErrorCode::invalid,
              std::string(field) + ": at most " + std::to_string(most) + " can be set");
}

// Names go to terminals, logs and admin pages.
bool is_plain(std::string_view text) {
  return safe_text(text) == text;
}

// Namespaces also go into cache keys and the names of exported entries.
bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == ':';
  });
}

}  // namespace

bool KeyPolicy::allows(std::string_view model) const {
  return models.empty() || std::any_of(models.begin(), models.end(), [&](const std::string& glob) {
           return glob_matches(glob, model);
         });
}

Result<void> check_policy(const KeyPolicy& policy) {
  if (policy.models.size() > kMaxKeyModels) {
    return fail(ErrorCode::invalid,
                "models: a key has at most " + std::to_string(kMaxKeyModels) + " patterns");
  }
  for (const std::string& model : policy.models) {
    if (model.empty() || model.size() > kMaxKeyModelBytes || !is_plain(model)) {
      return fail(ErrorCode::invalid, "models: a pattern has 1 to " +
                                          std::to_string(kMaxKeyModelBytes) +
                                          " bytes of printable text without backslashes");
    }
  }
  for (const auto& checked :
       {check_range("requests_per_minute", policy.requests_per_minute, kMaxPerMinute),
        check_range("tokens_per_minute", policy.tokens_per_minute, kMaxPerMinute),
        check_range("monthly_tokens", policy.monthly_tokens, kMaxMonthlyTokens)}) {
    if (!checked) return checked;
  }
  if (policy.monthly_cost < 0 || policy.monthly_cost > kMaxMonthlyCost) {
    return fail(ErrorCode::invalid,
                "monthly_usd: at most " + format_dollars(kMaxMonthlyCost) + " can be set");
  }
  return {};
}

Result<void> check_new_key(const NewKey& key) {
  if (key.name.empty() || key.name.size() > kMaxKeyNameBytes || !is_plain(key.name)) {
    return fail(ErrorCode::invalid, "name: 1 to " + std::to_string(kMaxKeyNameBytes) +
                                        " bytes of printable text without backslashes");
  }
  if (key.cache_namespace.size() > kMaxKeyNameBytes || !is_name(key.cache_namespace)) {
    return fail(ErrorCode::invalid, "namespace: at most " + std::to_string(kMaxKeyNameBytes) +
                                        " letters, digits and any of . _ - :");
  }
  return check_policy(key.policy);
}

CreatedKey generate_key(const NewKey& wanted, std::int64_t now_ms) {
  std::array<unsigned char, kIdDigits / 2> id{};
  std::array<unsigned char, 32> secret{};
  fill_randomly(id);
  fill_randomly(secret);
  CreatedKey created;
  created.secret = std::string(kSecretPrefix) + base64url(secret);
  ApiKey& key = created.key;
  key.id = kIdPrefix;
  for (const unsigned char byte : id) {
    key.id += kHex[byte >> 4];
    key.id += kHex[byte & 15];
  }
  key.name = wanted.name;
  key.cache_namespace = wanted.cache_namespace.empty() ? key.id : wanted.cache_namespace;
  key.digest = sha256(created.secret);
  key.policy = wanted.policy;
  key.created_ms = now_ms;
  return created;
}

bool looks_like_secret(std::string_view text) {
  return text.size() == kSecretPrefix.size() + kSecretDigits && text.starts_with(kSecretPrefix);
}

bool looks_like_key_id(std::string_view text) {
  return text.size() == kIdPrefix.size() + kIdDigits && text.starts_with(kIdPrefix) &&
         text.find_first_not_of(kHex, kIdPrefix.size()) == std::string_view::npos;
}

Month month_of(std::int64_t unix_ms) {
  const std::chrono::sys_time<std::chrono::milliseconds> time{std::chrono::milliseconds(unix_ms)};
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(time));
  return 100 * static_cast<int>(date.year()) +
         static_cast<Month>(static_cast<unsigned>(date.month()));
}

std::int64_t month_end_ms(Month month) {
  const auto next =
      std::chrono::year(month / 100) / std::chrono::month(static_cast<unsigned>(month % 100)) +
      std::chrono::months(1);
  const std::chrono::sys_days first(next / 1);
  return std::chrono::duration_cast<std::chrono::milliseconds>(first.time_since_epoch()).count();
}

std::string format_month(Month month) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d", month / 100, month % 100);
  return text.data();
}

std::string format_dollars(MicroDollars amount) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%lld.%06lld", static_cast<long long>(amount / kDollar),
                static_cast<long long>(amount % kDollar));
  std::string dollars = text.data();
  dollars.erase(dollars.find_last_not_of('0') + 1);
  if (dollars.back() == '.') dollars.pop_back();
  return dollars;
}

}  // namespace fixpoint
