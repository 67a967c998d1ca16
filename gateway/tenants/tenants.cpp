#include "gateway/tenants/tenants.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gateway/tenants/account.hpp"

namespace fixpoint {
namespace {

using Account = Tenant::Account;

std::int64_t milliseconds(Tenants::Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

std::size_t Tenants::DigestHash::operator()(const Sha256Bytes& digest) const noexcept {
  std::size_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

Tenants::Tenants(TenantsOptions options, std::unique_ptr<KeyStore> store, PriceTable prices)
    : options_(std::move(options)), store_(std::move(store)), prices_(std::move(prices)) {}

Result<std::unique_ptr<Tenants>> Tenants::open(TenantsOptions options, Time now) {
  auto prices = PriceTable::make(options.prices);
  if (!prices) return tl::make_unexpected(std::move(prices.error()));
  auto store = KeyStore::open(options.path, options.on_error);
  if (!store) return tl::make_unexpected(std::move(store.error()));
  const auto keys = (*store)->keys();
  if (!keys) return tl::make_unexpected(keys.error());
  const Month month = month_of(milliseconds(now));
  const auto totals = (*store)->usage(std::nullopt, month);
  if (!totals) return tl::make_unexpected(totals.error());

  std::unordered_map<std::string_view, KeyUsage> usage;
  for (const MonthlyUsage& total : *totals) usage[total.key] = total.usage;
  std::unique_ptr<Tenants> tenants(
      new Tenants(std::move(options), std::move(*store), std::move(*prices)));
  for (const ApiKey& key : *keys) {
    const auto found = usage.find(key.id);
    tenants->add(key, found == usage.end() ? KeyUsage{} : found->second, month);
  }
  tenants->saver_ = std::thread([saved = tenants.get()] { saved->save_until_stopped(); });
  return tenants;
}

Tenants::~Tenants() {
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_wake_.notify_one();
  if (!saver_.joinable()) return;  // open() ended before
  saver_.join();
  report(save());
}

void Tenants::report(const Result<void>& saved) const {
  if (!saved && options_.on_error) options_.on_error(saved.error());
}

TenantPtr Tenants::authenticate(std::string_view presented) const {
  // The form is no secret: what cannot be one of ours need not be hashed.
  if (!looks_like_secret(presented)) return nullptr;
  const Sha256Bytes digest = sha256(presented);
  const std::shared_lock lock(keys_mutex_);
  const auto found = in_force_.find(digest);
  return found == in_force_.end() ? nullptr : found->second;
}

MicroDollars Tenants::charge(const Tenant& tenant, std::string_view model,
                             const TokenCounts& tokens, Time now) {
  MicroDollars cost = 0;
  {
    const std::shared_lock lock(keys_mutex_);
    cost = prices_.cost(model, tokens);
  }
  if (tenant.account->charge(tenant.key.policy, tokens, cost, now)) {
    const std::lock_guard lock(dirty_mutex_);
    dirty_.push_back(tenant.account);
  }
  return cost;
}

void Tenants::save_until_stopped() {
  std::unique_lock lock(stop_mutex_);
  while (!stopping_) {
    stop_wake_.wait_for(lock, options_.save_every, [&] { return stopping_; });
    lock.unlock();
    report(save());
    lock.lock();
  }
}

Result<void> Tenants::save() {
  // Also keeps an older total from being written after a newer one.
  const std::lock_guard one_at_a_time(admin_mutex_);
  const auto revoked = save_revocations();
  const auto saved = save_totals();
  return revoked ? saved : revoked;
}

Result<void> Tenants::save_revocations() {
  while (!unsaved_revocations_.empty()) {
    const Revocation& one = unsaved_revocations_.back();
    if (const auto saved = store_->revoke(one.id, one.time_ms); !saved) {
      return tl::make_unexpected(saved.error());
    }
    unsaved_revocations_.pop_back();
  }
  return {};
}

Result<void> Tenants::save_totals() {
  std::vector<std::shared_ptr<Account>> accounts;
  {
    const std::lock_guard lock(dirty_mutex_);
    accounts.swap(dirty_);
  }
  if (accounts.empty()) return {};
  std::vector<MonthlyUsage> totals;
  std::vector<std::size_t> ends;  // of each account's totals
  for (const auto& account : accounts) {
    account->take_unsaved(totals);
    ends.push_back(totals.size());
  }
  auto saved = store_->save_usage(totals);
  if (saved) return saved;
  // The next save tries again.
  std::size_t next = 0;
  for (std::size_t i = 0; i < accounts.size(); ++i) {
    bool was_saved = false;
    for (; next < ends[i]; ++next) was_saved = accounts[i]->give_back(totals[next]) || was_saved;
    if (!was_saved) continue;
    const std::lock_guard lock(dirty_mutex_);
    dirty_.push_back(accounts[i]);
  }
  return saved;
}

void Tenants::add(ApiKey key, const KeyUsage& usage, Month month) {
  auto account = std::make_shared<Account>(key.id, usage, month);
  const auto tenant = std::make_shared<const Tenant>(Tenant{std::move(key), std::move(account)});
  const std::unique_lock lock(keys_mutex_);
  keys_.push_back(tenant);
  if (tenant->key.revoked_ms == 0) in_force_.emplace(tenant->key.digest, tenant);
  any_.store(true, std::memory_order_release);
}

void Tenants::replace(ApiKey key) {
  const std::unique_lock lock(keys_mutex_);
  const auto old = std::find_if(keys_.begin(), keys_.end(),
                                [&](const TenantPtr& one) { return one->key.id == key.id; });
  if (old == keys_.end()) return;
  // The disk may not know of it yet.
  if (key.revoked_ms == 0) key.revoked_ms = (*old)->key.revoked_ms;
  *old = std::make_shared<const Tenant>(Tenant{std::move(key), (*old)->account});
  const ApiKey& now = (*old)->key;
  if (now.revoked_ms == 0) {
    in_force_[now.digest] = *old;
  } else {
    in_force_.erase(now.digest);
  }
}

Result<CreatedKey> Tenants::create(const NewKey& wanted) {
  const std::lock_guard lock(admin_mutex_);
  const std::int64_t now_ms = milliseconds(Clock::now());
  auto created = store_->create(wanted, now_ms);
  if (created) add(created->key, {}, month_of(now_ms));
  return created;
}

Result<ApiKey> Tenants::revoke(const std::string& id) {
  auto key = find(id);
  if (!key) return key;
  // Here first: a leaked key must not work for as long as the disk is slow, locked or full.
  if (key->revoked_ms == 0) key->revoked_ms = milliseconds(Clock::now());
  replace(*key);
  const std::lock_guard lock(admin_mutex_);
  auto saved = store_->revoke(id, key->revoked_ms);
  if (saved) {
    replace(*saved);
    return saved;
  }
  const bool waits = std::any_of(unsaved_revocations_.begin(), unsaved_revocations_.end(),
                                 [&](const Revocation& one) { return one.id == id; });
  if (!waits) unsaved_revocations_.push_back({id, key->revoked_ms});
  return fail(saved.error().code,
              id + " is revoked in this process, but not on disk: " + saved.error().message +
                  ". It is tried again for as long as the process runs; after a restart before "
                  "that succeeds the key works again");
}

Result<ApiKey> Tenants::update(const std::string& id, const KeyPolicy& policy) {
  const std::lock_guard lock(admin_mutex_);
  auto key = store_->update(id, policy);
  if (!key) return key;
  replace(std::move(*key));
  return find(id);
}

Result<ApiKey> Tenants::find(const std::string& id) const {
  const std::shared_lock lock(keys_mutex_);
  for (const TenantPtr& tenant : keys_) {
    if (tenant->key.id == id) return tenant->key;
  }
  return fail(ErrorCode::not_found, "there is no key " + id);
}

std::vector<KeyStatus> Tenants::list(Time now) const {
  const Month month = month_of(milliseconds(now));
  std::vector<KeyStatus> all;
  const std::shared_lock lock(keys_mutex_);
  for (const TenantPtr& tenant : keys_) {
    all.push_back({tenant->key, month, tenant->account->usage(month)});
  }
  return all;
}

Result<std::vector<MonthlyUsage>> Tenants::usage(const std::string& id) {
  if (const auto key = find(id); !key) return tl::make_unexpected(key.error());
  if (const auto saved = save(); !saved) return tl::make_unexpected(saved.error());
  return store_->usage(id, std::nullopt);
}

Result<void> Tenants::set_prices(const std::vector<PriceConfig>& prices) {
  auto table = PriceTable::make(prices);
  if (!table) return tl::make_unexpected(std::move(table.error()));
  const std::unique_lock lock(keys_mutex_);
  prices_ = std::move(*table);
  return {};
}

}  // namespace fixpoint
