// Tenants::admit(), and what limits and refusals look like to a client.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "gateway/tenants/account.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {
namespace {

using Account = Tenant::Account;

constexpr std::int64_t kUsPerSecond = 1'000'000;

std::int64_t divide_up(std::int64_t amount, std::int64_t by) {
  return (amount + by - 1) / by;
}

// "20ms", "1.5s", "6m0s", "2h0m0s": the durations of OpenAI's x-ratelimit-reset-* headers.
std::string duration_text(std::int64_t duration_us) {
  const std::int64_t ms = divide_up(duration_us, 1000);
  if (ms < 1000) return ms == 0 ? "0s" : std::to_string(ms) + "ms";
  std::int64_t seconds = ms / 1000;
  std::string text;
  if (seconds >= 3600) text += std::to_string(seconds / 3600) + "h";
  if (seconds >= 60) text += std::to_string(seconds / 60 % 60) + "m";
  text += std::to_string(seconds % 60);
  if (ms % 1000 != 0) {
    std::array<char, 8> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%03d", static_cast<int>(ms % 1000));
    std::string digits = fraction.data();
    text += digits.erase(digits.find_last_not_of('0') + 1);
  }
  return text + "s";
}

void add_rate(Headers& headers, const std::string& what, std::uint64_t limit,
              const Account::Rate& rate) {
  headers.add("x-ratelimit-limit-" + what, std::to_string(limit));
  headers.add("x-ratelimit-remaining-" + what, std::to_string(rate.remaining));
  headers.add("x-ratelimit-reset-" + what, duration_text(rate.reset_us));
}

// "0.1 US dollars a month".
std::string limit_text(const KeyPolicy& policy, Account::Limit limit) {
  switch (limit) {
    case Account::Limit::monthly_cost:
      return format_dollars(policy.monthly_cost) + " US dollars a month";
    case Account::Limit::monthly_tokens:
      return std::to_string(policy.monthly_tokens) + " tokens a month";
    default:
      return std::to_string(policy.tokens_per_minute) + " tokens per minute";
  }
}

ApiError budget_error(const std::string& key, const std::string& budget, std::int64_t wait_us) {
  ApiError error =
      api_error(429, "insufficient_quota", "insufficient_quota",
                key + " has used its budget of " + budget +
                    " for this month; the next one begins in " + duration_text(wait_us) + " (UTC)");
  // Both SDKs would try a 429 again, twice; this header tells them that it is of no use.
  error.headers.add("x-should-retry", "false");
  return error;
}

ApiError rate_error(const std::string& key, const std::string& what, std::uint64_t limit,
                    std::int64_t wait_us) {
  ApiError error = api_error(429, what, "rate_limit_exceeded",
                             key + " has reached its limit of " + std::to_string(limit) + " " +
                                 what + " per minute; try again in " + duration_text(wait_us));
  // Both SDKs look at this one first.
  error.headers.add("retry-after-ms", std::to_string(divide_up(wait_us, 1000)));
  return error;
}

ApiError held_error(const std::string& key, const std::string& limit) {
  ApiError error = api_error(429, "tokens", "rate_limit_exceeded",
                             key + " has requests in flight that hold the rest of its limit of " +
                                 limit + "; try again when one of them has ended");
  // They may end at any time.
  error.headers.add("Retry-After", "1");
  return error;
}

ApiError error_of(const ApiKey& key, const Account::Refusal& refusal) {
  const std::string name = "Key '" + key.name + "' (" + key.id + ")";
  const KeyPolicy& policy = key.policy;
  if (refusal.by_holds) return held_error(name, limit_text(policy, refusal.limit));
  ApiError error;
  switch (refusal.limit) {
    case Account::Limit::monthly_cost:
      error =
          budget_error(name, format_dollars(policy.monthly_cost) + " US dollars", refusal.wait_us);
      break;
    case Account::Limit::monthly_tokens:
      error =
          budget_error(name, std::to_string(policy.monthly_tokens) + " tokens", refusal.wait_us);
      break;
    case Account::Limit::requests_per_minute:
      error = rate_error(name, "requests", policy.requests_per_minute, refusal.wait_us);
      break;
    case Account::Limit::tokens_per_minute:
      error = rate_error(name, "tokens", policy.tokens_per_minute, refusal.wait_us);
      break;
  }
  error.headers.add("Retry-After", std::to_string(divide_up(refusal.wait_us, kUsPerSecond)));
  return error;
}

}  // namespace

ApiResult<void> Tenants::admit(const Tenant& tenant, std::string_view model, Time now) {
  if (!tenant.key.policy.allows(model)) {
    ApiError error = api_error(403, "invalid_request_error", "permission_denied",
                               "Key '" + tenant.key.name + "' (" + tenant.key.id +
                                   ") may not use model '" + std::string(model) + "'");
    error.param = "model";
    return refuse(std::move(error));
  }
  const auto refusal = tenant.account->admit(tenant.key.policy, now);
  if (!refusal) return {};
  ApiError error = error_of(tenant.key, *refusal);
  for (const Header& header : rate_limit_headers(tenant, now)) {
    error.headers.add(header.name, header.value);
  }
  return refuse(std::move(error));
}

ApiResult<TokenHoldPtr> Tenants::hold(const Tenant& tenant,
                                      const std::vector<std::string_view>& models,
                                      const TokenCounts& expected, Time now) {
  const KeyPolicy& policy = tenant.key.policy;
  MicroDollars cost = 0;
  {
    const std::shared_lock lock(keys_mutex_);
    for (const auto& model : models) cost = std::max(cost, prices_.cost(model, expected));
  }
  // More than the limit need not be held, and could overflow in a sum.
  cost = std::min(cost, policy.monthly_cost);
  const std::uint64_t tokens = std::min(expected.prompt, kMaxTokensPerAnswer) +
                               std::min(expected.completion, kMaxTokensPerAnswer);
  if (const auto refusal = tenant.account->hold(policy, tokens, cost, now)) {
    return refuse(error_of(tenant.key, *refusal));
  }
  return std::make_unique<const TokenHold>(tenant.account, tokens, cost);
}

Headers Tenants::rate_limit_headers(const Tenant& tenant, Time now) const {
  Headers headers;
  const KeyPolicy& policy = tenant.key.policy;
  if (policy.requests_per_minute > 0) {
    add_rate(headers, "requests", policy.requests_per_minute,
             tenant.account->requests(policy, now));
  }
  if (policy.tokens_per_minute > 0) {
    add_rate(headers, "tokens", policy.tokens_per_minute, tenant.account->tokens(policy, now));
  }
  return headers;
}

std::string_view presented_key(const Headers& headers) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view bearer;
  if (const std::string* given = headers.find("authorization")) {
    const std::string_view value = *given;
    if (equal_ignoring_case(value.substr(0, kScheme.size()), kScheme)) {
      bearer = value.substr(std::min(value.find_first_not_of(' ', kScheme.size()), value.size()));
    }
  }
  // A client that has both (Anthropic's SDK with a key and an auth token) may mean either one.
  if (looks_like_secret(bearer)) return bearer;
  const std::string* given = headers.find("x-api-key");
  return given != nullptr ? std::string_view(*given) : bearer;
}

ApiError unknown_key(bool presented) {
  return api_error(401, "invalid_request_error", "invalid_api_key",
                   presented ? "The API key is not one of this gateway's, or was revoked"
                             : "This gateway needs an API key: Authorization: Bearer <key>, or "
                               "x-api-key: <key>");
}

}  // namespace fixpoint
