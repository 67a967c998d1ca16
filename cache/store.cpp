#include "cache/store.hpp"

#include <future>
#include <utility>

namespace fixpoint {

Store::Found get_and_wait(Store& store, const CacheKey& key) {
  // Shared with the callback: set_value() may still be at work when the waiter is gone.
  const auto promise = std::make_shared<std::promise<Store::Found>>();
  std::future<Store::Found> found = promise->get_future();
  store.get(key, [promise](Store::Found result) { promise->set_value(std::move(result)); });
  return found.get();
}

}  // namespace fixpoint
