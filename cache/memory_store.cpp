// The most recently used entries, in memory.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/entry_matcher.hpp"
#include "cache/store.hpp"

namespace fixpoint {
namespace {

using Clock = std::chrono::steady_clock;

// A part's share must hold the largest answers; more parts than threads gain nothing.
constexpr std::uint64_t kBytesPerPart = 4u << 20;
constexpr std::uint64_t kMaxParts = 16;

bool is_hex(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A key without its material. Looks into the entry that it is the key of.
struct Name {
  KeyKind kind;
  std::string_view hex;
  bool operator==(const Name&) const = default;
};
// Of the digest, which is spread evenly, the first 64 bits.
std::size_t hash_of(std::string_view hex) {
  std::size_t hash = 0;
  for (const char c : hex.substr(0, 16)) {
    hash = hash << 4 | static_cast<std::size_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return hash;
}
struct HashName {
  std::size_t operator()(const Name& name) const { return hash_of(name.hex); }
};

struct Node {
  EntryPtr entry;
  std::uint64_t bytes;
  Clock::time_point put_at;
};
using Nodes = std::list<Node>;
using Index = std::unordered_map<Name, Nodes::iterator, HashName>;

// Everything that comes and goes with an entry but its forms. An allocation is taken to cost two
// pointers more than it holds.
std::uint64_t bytes_of(const Entry& entry) {
  std::uint64_t bytes = sizeof(Entry) + sizeof(Node) + sizeof(Index::value_type) +
                        sizeof(std::string) + 10 * 2 * sizeof(void*);
  for (const std::string* text :
       {&entry.key.hex, &entry.key.material, &entry.tenant, &entry.endpoint, &entry.model,
        &entry.provider, &entry.generation, &entry.pace, entry.body.get()}) {
    bytes += text->capacity();
  }
  return bytes;
}

// Entries by key and by last use. Thread-safe.
class Part {
 public:
  void set_limit(std::uint64_t max_bytes) { max_bytes_ = max_bytes; }

  // Null: not here, or here for longer than max_age.
  EntryPtr find(const Name& name, std::chrono::milliseconds max_age) {
    std::vector<EntryPtr> removed;  // destroyed after the lock is given back
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(name);
    if (found == index_.end()) return nullptr;
    const Nodes::iterator node = found->second;
    if (max_age.count() > 0 && Clock::now() - node->put_at > max_age) {
      removed.push_back(take(node));
      return nullptr;
    }
    nodes_.splice(nodes_.begin(), nodes_, node);
    EntryPtr entry = node->entry;
    make_room(removed);
    return entry;
  }

  // false: larger than all of the part.
  bool put(EntryPtr entry) {
    const std::uint64_t bytes = bytes_of(*entry);
    std::vector<EntryPtr> removed;
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(Name{entry->key.kind, entry->key.hex});
    if (found != index_.end()) removed.push_back(take(found->second));
    if (bytes > max_bytes_) return false;
    entry->forms.count_in(form_bytes_);
    bytes_ += bytes;
    nodes_.push_front({std::move(entry), bytes, Clock::now()});
    const Entry& kept = *nodes_.front().entry;
    index_.emplace(Name{kept.key.kind, kept.key.hex}, nodes_.begin());
    make_room(removed);
    return true;
  }

  std::uint64_t purge(const EntryMatcher& matches) {
    std::vector<EntryPtr> removed;
    const std::lock_guard lock(mutex_);
    for (auto node = nodes_.begin(); node != nodes_.end();) {
      const auto next = std::next(node);
      if (matches(*node->entry)) removed.push_back(take(node));
      node = next;
    }
    return removed.size();
  }

  void collect(const EntryMatcher& matches, std::vector<EntryPtr>& entries) const {
    const std::lock_guard lock(mutex_);
    for (const Node& node : nodes_) {
      if (matches(*node.entry)) entries.push_back(node.entry);
    }
  }

  void add_to(StoreStats& stats) const {
    const std::lock_guard lock(mutex_);
    for (const Node& node : nodes_) {
      const Entry& entry = *node.entry;
      const bool first = stats.entries++ == 0;
      stats.bytes += entry.body->size();
      ++(entry.key.kind == KeyKind::prompt ? stats.prompt_entries : stats.body_entries);
      stats.oldest_ms = first ? entry.created_ms : std::min(stats.oldest_ms, entry.created_ms);
      stats.newest_ms = first ? entry.created_ms : std::max(stats.newest_ms, entry.created_ms);
    }
    stats.evicted += evicted_;
  }

 private:
  // The newest one goes, too, when it has too many forms of its own.
  void make_room(std::vector<EntryPtr>& removed) {
    while (!nodes_.empty() && bytes_ + *form_bytes_ > max_bytes_) {
      removed.push_back(take(std::prev(nodes_.end())));
      ++evicted_;
    }
  }

  EntryPtr take(Nodes::iterator node) {
    EntryPtr entry = std::move(node->entry);
    index_.erase(Name{entry->key.kind, entry->key.hex});
    bytes_ -= node->bytes;
    nodes_.erase(node);
    entry->forms.count_in(nullptr);  // those who still read it may keep forms; not at our expense
    return entry;
  }

  mutable std::mutex mutex_;
  Nodes nodes_;  // the most recently used first
  Index index_;
  std::uint64_t max_bytes_ = 0, bytes_ = 0, evicted_ = 0;
  // Grows when readers keep forms, without the mutex; the next find() or put() makes room for them.
  const std::shared_ptr<std::atomic<std::uint64_t>> form_bytes_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

class MemoryStore final : public Store {
 public:
  MemoryStore(std::uint64_t max_bytes, std::chrono::milliseconds max_age)
      : max_age_(max_age),
        parts_(std::clamp<std::uint64_t>(max_bytes / kBytesPerPart, 1, kMaxParts)) {
    for (Part& part : parts_) part.set_limit(max_bytes / parts_.size());
  }

  void get(const CacheKey& key, GetDone done) override { done(find(key)); }

  void put(EntryPtr entry) override {
    if (entry == nullptr || entry->body == nullptr) {
      throw std::invalid_argument("Store::put: entry without a body");
    }
    if (!is_hex(entry->key.hex)) throw std::invalid_argument("Store::put: not a key");
    Part& part = part_of(entry->key.hex);
    if (!part.put(std::move(entry))) ++refused_;
  }

  void note_use(const CacheKey& key) override { (void)find(key); }

  Result<std::uint64_t> purge(const EntryFilter& filter) override {
    const Result<EntryMatcher> matches = EntryMatcher::of(filter);
    if (!matches) return tl::make_unexpected(matches.error());
    std::uint64_t removed = 0;
    for (Part& part : parts_) removed += part.purge(*matches);
    return removed;
  }

  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit) override {
    const Result<EntryMatcher> matches = EntryMatcher::of(filter);
    if (!matches) return tl::make_unexpected(matches.error());
    std::vector<EntryPtr> entries;  // visited outside of the locks
    for (const Part& part : parts_) part.collect(*matches, entries);
    for (const EntryPtr& entry : entries) {
      if (!visit(*entry)) break;
    }
    return 0;
  }

  Result<StoreStats> stats() override {
    StoreStats stats;
    for (const Part& part : parts_) part.add_to(stats);
    stats.stored_bytes = stats.bytes;
    return stats;
  }

  void flush() override {}
  std::uint64_t failed_writes() const override { return refused_; }

 private:
  Part& part_of(std::string_view hex) {
    // The index uses the low bits.
    return parts_[(hash_of(hex) >> 40) % parts_.size()];
  }

  Found find(const CacheKey& key) {
    if (key.hex.size() != 64) return fail(ErrorCode::invalid, "a key has 64 digits");
    EntryPtr entry = part_of(key.hex).find(Name{key.kind, key.hex}, max_age_);
    if (entry == nullptr) {
      if (!is_hex(key.hex)) return fail(ErrorCode::invalid, "a key has digits of 0-9 and a-f");
      return entry;
    }
    // Without material it is known by its digest, which put() got with the entry's own.
    if (!key.material.empty() && key.material != entry->key.material) {
      return fail(ErrorCode::corrupt,
                  key.name() + ": the stored key material is not the request's");
    }
    return entry;
  }

  const std::chrono::milliseconds max_age_;
  std::vector<Part> parts_;
  std::atomic<std::uint64_t> refused_ = 0;
};

}  // namespace

std::unique_ptr<Store> make_memory_store(std::uint64_t max_bytes,
                                         std::chrono::milliseconds max_age) {
  return std::make_unique<MemoryStore>(max_bytes, max_age);
}

}  // namespace fixpoint
