// Who asks, what they may ask for and how much of it: gateway keys on the request path.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gateway/api/errors.hpp"
#include "gateway/config.hpp"
#include "gateway/http/types.hpp"
#include "gateway/tenants/key_store.hpp"
#include "gateway/tenants/price_table.hpp"

namespace fixpoint {

// One key as requests see it; immutable but for `account`. A request keeps the one it
// authenticated with: a key that is revoked or changed meanwhile counts for the next request.
struct Tenant {
  class Account;  // what was spent; shared by all versions of one key

  ApiKey key;
  std::shared_ptr<Account> account;
};
using TenantPtr = std::shared_ptr<const Tenant>;

// What an answer that is being made is expected to take of its key's limits; others find it spent
// for as long as this lives.
class TokenHold {
 public:
  TokenHold(std::shared_ptr<Tenant::Account> account, std::uint64_t tokens, MicroDollars cost);
  ~TokenHold();
  TokenHold(const TokenHold&) = delete;
  TokenHold& operator=(const TokenHold&) = delete;

 private:
  const std::shared_ptr<Tenant::Account> account_;
  const std::uint64_t tokens_;
  const MicroDollars cost_;
};
using TokenHoldPtr = std::unique_ptr<const TokenHold>;

struct KeyStatus {
  ApiKey key;
  Month month = 0;  // the current one
  KeyUsage usage;   // of it
};

struct TenantsOptions {
  std::string path;                 // of the key file
  std::vector<PriceConfig> prices;  // the first match counts; none: the model costs nothing
  // How often usage goes to the disk: what a killed process can lose of it.
  std::chrono::milliseconds save_every{1000};
  // Hears of failed writes, on a thread of its own. May be empty.
  std::function<void(const Error&)> on_error;
};

// Thread-safe. Everything up to charge() works in memory and never waits for a disk; the calls for
// administration below do.
//
// Limits per minute are leaky buckets that drain continuously: after a quiet minute the whole limit
// may be spent at once, then more comes back bit by bit (60 per minute: one each second). A budget
// and tokens per minute are compared with what has been charged and with what the answers being
// made are expected to take, but for the request's own: the last answer can take a key beyond them
// by its size, and the others by what was expected of them too little. A minute's excess is paid
// back by waiting, for an hour at most.
class Tenants {
 public:
  using Clock = std::chrono::system_clock;  // budgets follow the calendar
  using Time = Clock::time_point;

  // Errors: as KeyStore::open(); invalid (a price).
  static Result<std::unique_ptr<Tenants>> open(TenantsOptions options, Time now = Clock::now());
  ~Tenants();  // saves usage
  Tenants(const Tenants&) = delete;
  Tenants& operator=(const Tenants&) = delete;

  // Whether requests must bring a key: one was created. Revoked ones count, so that revoking the
  // last key closes the gateway and does not open it to everybody.
  bool any() const { return any_.load(std::memory_order_acquire); }

  // Null: unknown or revoked. How long it takes says nothing about other secrets: keys are found by
  // the digest of what was presented, whose bits a guesser does not choose.
  TenantPtr authenticate(std::string_view presented) const;

  // Counts one request, or refuses it and counts nothing: 403 permission_denied for the model, 429
  // insufficient_quota for a budget, 429 rate_limit_exceeded for a rate, with Retry-After and the
  // headers below.
  ApiResult<void> admit(const Tenant& tenant, std::string_view model, Time now = Clock::now());
  // x-ratelimit-{limit,remaining,reset}-{requests,tokens}, for the limits that the key has.
  Headers rate_limit_headers(const Tenant& tenant, Time now = Clock::now()) const;

  // For an admitted request whose answer is about to be made: holds what it is expected to take, at
  // the dearest of these models' prices. Refuses as admit() does and, where only the holds of
  // others leave no room, with 429 rate_limit_exceeded and a short Retry-After; the request stays
  // counted. Until charge() was called the hold must live.
  ApiResult<TokenHoldPtr> hold(const Tenant& tenant, const std::vector<std::string_view>& models,
                               const TokenCounts& expected, Time now = Clock::now());

  // Once for every admitted request that was answered: what it cost. An answer from the cache has
  // no tokens. `model` is the one that prices are for: as the upstream knows it.
  MicroDollars charge(const Tenant& tenant, std::string_view model, const TokenCounts& tokens,
                      Time now = Clock::now());

  // Administration. Errors: those of KeyStore.
  Result<CreatedKey> create(const NewKey& wanted);
  // At once in this process, whatever the disk does. After an error other than not_found it is not
  // on the disk yet; save() tries again.
  Result<ApiKey> revoke(const std::string& id);
  Result<ApiKey> update(const std::string& id, const KeyPolicy& policy);
  Result<ApiKey> find(const std::string& id) const;                // Errors: not_found
  std::vector<KeyStatus> list(Time now = Clock::now()) const;      // oldest first, revoked ones too
  Result<std::vector<MonthlyUsage>> usage(const std::string& id);  // newest month first
  // For a reloaded configuration. Errors: invalid; then the old prices stay.
  Result<void> set_prices(const std::vector<PriceConfig>& prices);
  // Brings usage, and revocations that could not be written, to the disk now.
  Result<void> save();

 private:
  struct DigestHash {
    std::size_t operator()(const Sha256Bytes& digest) const noexcept;
  };

  Tenants(TenantsOptions options, std::unique_ptr<KeyStore> store, PriceTable prices);
  void add(ApiKey key, const KeyUsage& usage, Month month);
  void replace(ApiKey key);  // what was revoked stays revoked
  Result<void> save_revocations();
  Result<void> save_totals();
  void save_until_stopped();
  void report(const Result<void>& saved) const;

  const TenantsOptions options_;
  const std::unique_ptr<KeyStore> store_;
  std::atomic<bool> any_{false};

  mutable std::shared_mutex keys_mutex_;  // the three below
  std::vector<TenantPtr> keys_;           // oldest first
  std::unordered_map<Sha256Bytes, TenantPtr, DigestHash> in_force_;
  PriceTable prices_;

  std::mutex admin_mutex_;  // one change at a time on the disk
  struct Revocation {
    std::string id;
    std::int64_t time_ms;
  };
  std::vector<Revocation> unsaved_revocations_;  // under admin_mutex_

  std::mutex dirty_mutex_;
  std::vector<std::shared_ptr<Tenant::Account>> dirty_;  // charged since they were saved

  std::mutex stop_mutex_;
  std::condition_variable stop_wake_;
  bool stopping_ = false;
  std::thread saver_;  // last: it uses all of the above
};

// The key of a request: Authorization: Bearer, or x-api-key. Empty: none.
std::string_view presented_key(const Headers& headers);
// 401 invalid_api_key, without the key's text.
ApiError unknown_key(bool presented);

}  // namespace fixpoint
