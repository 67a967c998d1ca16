// A store in memory in front of another one.
#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "cache/store.hpp"

namespace fixpoint {
namespace {

// What a look-up below found may be old when it comes back: a put or a purge may have come between.
// Each key belongs to one of these; a look-up remembers its count of changes before it looks, and
// fills memory only if the count is still that.
struct Slot {
  std::mutex mutex;  // held over each change of memory under these keys
  std::atomic<std::uint64_t> changes = 0;
};

class TieredStore final : public Store {
 public:
  TieredStore(std::unique_ptr<Store> memory, std::unique_ptr<Store> below)
      : memory_(std::move(memory)), below_(std::move(below)) {}

  void get(const CacheKey& key, GetDone done) override {
    Slot& slot = slot_of(key.hex);
    // First of all: a put that is counted here is visible in both stores.
    const std::uint64_t changes = slot.changes;
    Found found = nullptr;
    memory_->get(key, [&](Found result) { found = std::move(result); });  // answers at once
    if (!found || *found != nullptr) {
      // Else what always hits here would be the first that the store below evicts.
      if (found) below_->note_use(key);
      done(std::move(found));
      return;
    }
    below_->get(key, [this, &slot, changes, done = std::move(done)](Found result) {
      if (result && *result != nullptr) {
        const std::lock_guard lock(slot.mutex);
        if (slot.changes == changes) memory_->put(*result);
      }
      done(std::move(result));
    });
  }

  void put(EntryPtr entry) override {
    if (entry == nullptr) throw std::invalid_argument("Store::put: no entry");
    Slot& slot = slot_of(entry->key.hex);
    const std::lock_guard lock(slot.mutex);
    // In this order nobody who has seen the new entry sees the old one again, even if memory
    // forgets in between: what fills memory waits for the mutex.
    const bool may_lose = entry->keeps_first && below_->shared();
    below_->put(entry);
    if (!may_lose) memory_->put(std::move(entry));  // else the next look-up fills it
    ++slot.changes;  // last: who sees the count finds the entry in both
  }

  Result<std::uint64_t> purge(const EntryFilter& filter) override {
    Result<std::uint64_t> removed = below_->purge(filter);
    // Also when that failed half-way: memory must not answer for what is gone.
    for (Slot& slot : slots_) {
      const std::lock_guard lock(slot.mutex);
      ++slot.changes;
    }
    // Look-ups that began before fill no more; those that fill now found what is left below.
    const Result<std::uint64_t> purged = memory_->purge(filter);
    if (removed && !purged) return purged;
    return removed;
  }

  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit) override {
    return below_->for_each(filter, visit);
  }
  Result<StoreStats> stats() override { return below_->stats(); }
  void flush() override { below_->flush(); }
  std::uint64_t failed_writes() const override { return below_->failed_writes(); }

 private:
  Slot& slot_of(std::string_view hex) {
    return slots_[std::hash<std::string_view>()(hex) % slots_.size()];
  }

  std::array<Slot, 64> slots_;
  std::unique_ptr<Store> memory_;
  std::unique_ptr<Store> below_;  // last: its threads may still fill memory
};

}  // namespace

std::unique_ptr<Store> make_tiered_store(std::unique_ptr<Store> memory,
                                         std::unique_ptr<Store> below) {
  return std::make_unique<TieredStore>(std::move(memory), std::move(below));
}

}  // namespace fixpoint
