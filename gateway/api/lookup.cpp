#include "gateway/api/lookup.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

// What a store answers, on its way to the coroutine that asked.
struct Pending {
  std::optional<Store::Found> found;
  SleeperPtr sleeper;  // whoever asked, once it sleeps
};

// A local store answers before get() returns, a remote one from a thread of its own; both are told
// apart by the thread.
std::shared_ptr<Pending> ask(Store& store, const CacheKey& key, const Executor& executor) {
  auto pending = std::make_shared<Pending>();
  store.get(key, [pending, executor, asker = std::this_thread::get_id()](auto found) {
    if (std::this_thread::get_id() == asker) {
      pending->found = std::move(found);
      return;
    }
    net::post(executor, [pending, found = std::move(found)]() mutable {
      pending->found = std::move(found);
      if (pending->sleeper) pending->sleeper->wake();
    });
  });
  return pending;
}

Lookup judge(const Freshness& freshness, bool ages, const Store::Found& found) {
  Lookup result;
  if (!found) {
    result.forward = "miss; detail=store-error";
    result.failed = true;
    result.unwanted = found.error().code == ErrorCode::corrupt;
    return result;
  }
  if (!*found) return result;
  const auto age_ms = now_ms() - (*found)->created_ms;
  const auto ttl = freshness.ttl.count();
  const auto& max_age = freshness.max_age_s;
  if (!ages) {
    result.entry = *found;
    return result;
  }
  if ((ttl > 0 && age_ms > ttl) || (max_age && age_ms / 1000 > *max_age)) {
    result.forward = "stale";
    result.unwanted = true;
    return result;
  }
  result.entry = *found;
  return result;
}

}  // namespace

std::string age_of(const Entry& entry) {
  return std::to_string(std::max<std::int64_t>(0, (now_ms() - entry.created_ms) / 1000));
}

Task<Lookup> look_up(Gateway& gateway, const CacheKey& key, Freshness freshness) {
  const auto executor = co_await net::this_coro::executor;
  const auto pending = ask(*gateway.store, key, executor);
  const bool at_once = pending->found.has_value();
  if (!at_once) {
    Waiter waiter(executor);
    pending->sleeper = waiter.sleeper();
    while (!pending->found) {
      co_await waiter.sleep();
    }
  }
  if (!*pending->found) gateway.look_up_failed("cache: " + pending->found->error().message);
  const bool ages = gateway.recording == Recording::off;  // a recording does not
  Lookup lookup = judge(freshness, ages, *pending->found);
  lookup.at_once = at_once;
  co_return lookup;
}

}  // namespace fixpoint
