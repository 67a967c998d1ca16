// What one key has spent. Internal to gateway/tenants.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gateway/tenants/rate_bucket.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

// Thread-safe. One small mutex per key: a tenant contends with itself only, for about 50 ns.
class Tenant::Account {
 public:
  enum class Limit { monthly_cost, monthly_tokens, requests_per_minute, tokens_per_minute };
  struct Refusal {
    Limit limit;
    std::int64_t wait_us;   // until it may be admitted
    bool by_holds = false;  // and would be, but for answers being made
  };
  struct Rate {
    std::uint64_t remaining;
    std::int64_t reset_us;
  };

  Account(std::string key, const KeyUsage& usage, Month month)
      : key_(std::move(key)), month_(month), usage_(usage) {}

  // Counts one request, or says why not and counts nothing.
  std::optional<Refusal> admit(const KeyPolicy& policy, Tenants::Time now);
  // Holds so much until release(), or says why not and holds nothing.
  std::optional<Refusal> hold(const KeyPolicy& policy, std::uint64_t tokens, MicroDollars cost,
                              Tenants::Time now);
  void release(std::uint64_t tokens, MicroDollars cost);
  // Of limits that are set.
  Rate requests(const KeyPolicy& policy, Tenants::Time now);
  Rate tokens(const KeyPolicy& policy, Tenants::Time now);

  // Adds an answer to the month. True: nothing was waiting to be saved before.
  bool charge(const KeyPolicy& policy, const TokenCounts& tokens, MicroDollars cost,
              Tenants::Time now);
  KeyUsage usage(Month month) const;
  // Appends the totals that changed since the last time; they count as saved.
  void take_unsaved(std::vector<MonthlyUsage>& totals);
  // Totals that take_unsaved() gave and that could not be saved. True as in charge().
  bool give_back(const MonthlyUsage& total);

 private:
  void turn_to(Month month);
  // Which limit has no room beside what was charged and so much more.
  std::optional<Refusal> spent(const KeyPolicy& policy, std::uint64_t more_tokens,
                               MicroDollars more_cost, std::int64_t now_us);

  const std::string key_;
  mutable std::mutex mutex_;
  RateBucket requests_{1};
  // What one answer took beyond the limit is paid back by waiting, for an hour at most: a
  // provider's wrong count must not close a key for days.
  RateBucket tokens_{60};
  std::uint64_t held_tokens_ = 0;
  MicroDollars held_cost_ = 0;
  Month month_;
  KeyUsage usage_;                     // of month_
  bool unsaved_ = false;               // something here is newer than the disk
  std::vector<MonthlyUsage> earlier_;  // unsaved totals of months that are over
};

}  // namespace fixpoint
