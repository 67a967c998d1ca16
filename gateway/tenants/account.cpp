#include "gateway/tenants/account.hpp"

#include <algorithm>
#include <limits>

namespace fixpoint {
namespace {

std::int64_t microseconds(Tenants::Time time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

Month month_at(Tenants::Time time) {
  return month_of(microseconds(time) / 1000);
}

std::uint64_t tokens_of(const KeyUsage& usage) {
  return usage.prompt_tokens + usage.completion_tokens;
}

}  // namespace

// A clock that was set back does not bring an old month back: its totals are no longer here.
void Tenant::Account::turn_to(Month month) {
  if (month <= month_) return;
  if (unsaved_) earlier_.push_back({key_, month_, usage_});
  month_ = month;
  usage_ = {};
}

std::optional<Tenant::Account::Refusal> Tenant::Account::spent(const KeyPolicy& policy,
                                                               std::uint64_t more_tokens,
                                                               MicroDollars more_cost,
                                                               std::int64_t now_us) {
  if (policy.monthly_cost > 0 || policy.monthly_tokens > 0) {
    turn_to(month_of(now_us / 1000));
    const auto refuse_budget = [&](Limit limit) {
      const std::int64_t end_us = 1000 * month_end_ms(month_);
      return Refusal{limit, std::max<std::int64_t>(end_us - now_us, 0)};
    };
    if (policy.monthly_cost > 0 && usage_.cost >= policy.monthly_cost - more_cost) {
      return refuse_budget(Limit::monthly_cost);
    }
    if (policy.monthly_tokens > 0 && tokens_of(usage_) + more_tokens >= policy.monthly_tokens) {
      return refuse_budget(Limit::monthly_tokens);
    }
  }
  if (const auto limit = policy.tokens_per_minute; limit > 0) {
    tokens_.drain(limit, now_us);
    if (tokens_.remaining(limit) <= more_tokens) {
      return Refusal{Limit::tokens_per_minute, tokens_.wait_us(limit)};
    }
  }
  return std::nullopt;
}

std::optional<Tenant::Account::Refusal> Tenant::Account::admit(const KeyPolicy& policy,
                                                               Tenants::Time now) {
  const std::int64_t now_us = microseconds(now);
  const std::lock_guard lock(mutex_);
  if (const auto refusal = spent(policy, 0, 0, now_us)) return refusal;
  if (const auto limit = policy.requests_per_minute; limit > 0) {
    requests_.drain(limit, now_us);
    if (!requests_.has_room(limit)) {
      return Refusal{Limit::requests_per_minute, requests_.wait_us(limit)};
    }
    requests_.add(limit, 1);
  }
  return std::nullopt;
}

std::optional<Tenant::Account::Refusal> Tenant::Account::hold(const KeyPolicy& policy,
                                                              std::uint64_t tokens,
                                                              MicroDollars cost,
                                                              Tenants::Time now) {
  const std::int64_t now_us = microseconds(now);
  const std::lock_guard lock(mutex_);
  // Others may have been charged since this request was admitted.
  auto refusal = spent(policy, 0, 0, now_us);
  if (refusal) return refusal;
  refusal = spent(policy, held_tokens_, held_cost_, now_us);
  if (refusal) {
    refusal->by_holds = true;
    return refusal;
  }
  held_tokens_ += tokens;
  held_cost_ += cost;
  return std::nullopt;
}

void Tenant::Account::release(std::uint64_t tokens, MicroDollars cost) {
  const std::lock_guard lock(mutex_);
  held_tokens_ -= tokens;
  held_cost_ -= cost;
}

Tenant::Account::Rate Tenant::Account::requests(const KeyPolicy& policy, Tenants::Time now) {
  const std::lock_guard lock(mutex_);
  requests_.drain(policy.requests_per_minute, microseconds(now));
  return {requests_.remaining(policy.requests_per_minute),
          requests_.reset_us(policy.requests_per_minute)};
}

Tenant::Account::Rate Tenant::Account::tokens(const KeyPolicy& policy, Tenants::Time now) {
  const std::lock_guard lock(mutex_);
  tokens_.drain(policy.tokens_per_minute, microseconds(now));
  return {tokens_.remaining(policy.tokens_per_minute), tokens_.reset_us(policy.tokens_per_minute)};
}

bool Tenant::Account::charge(const KeyPolicy& policy, const TokenCounts& tokens, MicroDollars cost,
                             Tenants::Time now) {
  const std::uint64_t prompt = std::min(tokens.prompt, kMaxTokensPerAnswer);
  const std::uint64_t completion = std::min(tokens.completion, kMaxTokensPerAnswer);
  const std::lock_guard lock(mutex_);
  turn_to(month_at(now));
  usage_.requests += 1;
  usage_.prompt_tokens += prompt;
  usage_.completion_tokens += completion;
  usage_.cost += std::min(cost, std::numeric_limits<MicroDollars>::max() - usage_.cost);
  if (const auto limit = policy.tokens_per_minute; limit > 0) {
    tokens_.drain(limit, microseconds(now));
    tokens_.add(limit, prompt + completion);
  }
  return !std::exchange(unsaved_, true);
}

KeyUsage Tenant::Account::usage(Month month) const {
  const std::lock_guard lock(mutex_);
  return month == month_ ? usage_ : KeyUsage{};
}

void Tenant::Account::take_unsaved(std::vector<MonthlyUsage>& totals) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(unsaved_, false)) return;
  totals.insert(totals.end(), earlier_.begin(), earlier_.end());
  earlier_.clear();
  totals.push_back({key_, month_, usage_});
}

bool Tenant::Account::give_back(const MonthlyUsage& total) {
  const std::lock_guard lock(mutex_);
  const bool newer_here = total.month == month_ || std::any_of(earlier_.begin(), earlier_.end(),
                                                               [&](const MonthlyUsage& one) {
                                                                 return one.month == total.month;
                                                               });
  if (!newer_here) earlier_.push_back(total);
  return !std::exchange(unsaved_, true);
}

TokenHold::TokenHold(std::shared_ptr<Tenant::Account> account, std::uint64_t tokens,
                     MicroDollars cost)
    : account_(std::move(account)), tokens_(tokens), cost_(cost) {}

TokenHold::~TokenHold() {
  account_->release(tokens_, cost_);
}

}  // namespace fixpoint
