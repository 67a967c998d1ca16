// The response cache in one SQLite file.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/sqlite/reader_pool.hpp"
#include "cache/sqlite/writer.hpp"
#include "cache/sqlite_store_file.hpp"
#include "cache/store.hpp"
#include "cache/use_log.hpp"

namespace fixpoint {
namespace {

using sqlite_store::key_bytes;
using sqlite_store::Reader;
using sqlite_store::WriteSide;
using Clock = std::chrono::steady_clock;

// Rows that one transaction removes: small enough that the puts behind it wait for milliseconds,
// and more than one group of puts adds.
constexpr std::size_t kRemoveRows = 1000;
constexpr std::int64_t kVacuumPages = 1000;
constexpr std::chrono::seconds kRecordEvery{1};
constexpr std::chrono::minutes kSweepEvery{1};

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class SqliteStore final : public Store {
 public:
  // `write_side` is null for a read-only store.
  SqliteStore(const SqliteStoreOptions& options, std::unique_ptr<WriteSide> write_side)
      : limits_(options.limits),
        max_bytes_(static_cast<std::int64_t>(
            std::min<std::uint64_t>(limits_.max_bytes, std::numeric_limits<std::int64_t>::max()))),
        write_side_(std::move(write_side)),
        readers_([path = options.path] { return Reader::open(path); }),
        uses_(max_bytes_) {
    if (!write_side_) return;
    writer_ = std::make_unique<sqlite::Writer>(
        write_side_->database(), options.max_queue_bytes, options.on_write_error,
        sqlite::Writer::Upkeep{[this] { return upkeep_due(); }, [this] { return upkeep(); },
                               [this](const Result<void>& outcome) { upkeep_done(outcome); }});
  }

  ~SqliteStore() override {
    if (writer_) (void)writer_->run([this] { return record_uses(); });
  }

  void get(const CacheKey& key, GetDone done) override { done(find(key)); }
  void note_use(const CacheKey& key) override {
    if (writer_) uses_.note(key);
  }
  void put(EntryPtr entry) override;
  Result<std::uint64_t> purge(const EntryFilter& filter) override;
  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit) override;
  Result<StoreStats> stats() override;

  void flush() override {
    if (writer_) writer_->flush();
  }

  std::uint64_t failed_writes() const override {
    const std::lock_guard lock(pending_mutex_);
    return refused_ + (writer_ ? writer_->failed() : 0);
  }

  Result<void> check_readable() {
    Result<Readers::Lease> reader = readers_.acquire();
    if (!reader) return tl::make_unexpected(std::move(reader.error()));
    return {};
  }

 private:
  using Readers = sqlite::ReaderPool<Reader>;
  // A put that is queued but not yet committed.
  struct Pending {
    std::uint64_t number;  // of the put; the newest one of a key stays until its own commit
    EntryPtr entry;
  };

  Found find(const CacheKey& key);
  void forget_pending(const std::string& key, std::uint64_t number);
  Result<std::vector<std::int64_t>> find_ids(const EntryFilter& filter);  // on disk
  Result<void> give_space_back();
  void note_growth(std::int64_t bytes) {
    if (upkeep_.content_bytes) *upkeep_.content_bytes += bytes;
    uses_.note_growth(bytes);
  }
  Result<void> record_uses();
  bool upkeep_due();
  Result<void> upkeep();
  void upkeep_done(const Result<void>& outcome);

  const StoreLimits limits_;
  const std::int64_t max_bytes_;
  std::unique_ptr<WriteSide>
      write_side_;  // closed after the readers: the last to leave removes the log
  Readers readers_;
  UseLog uses_;

  // On the writer's thread alone, but for evicted_. Changes count when they are committed.
  struct Upkeep {
    std::optional<std::int64_t> content_bytes;  // what max_bytes bounds; nothing: not summed up yet
    Clock::time_point next_uses{}, next_sweep{};
    std::int64_t unused_pages = 0;  // to give back, after a sweep
    // Of the step that is being done:
    std::int64_t growth = 0;
    std::uint64_t evicted = 0;
    std::optional<std::int64_t> summed;
  };
  Upkeep upkeep_;
  std::atomic<std::uint64_t> evicted_ = 0;

  mutable std::mutex pending_mutex_;
  std::unordered_map<std::string, Pending> pending_;  // by key_bytes()
  std::uint64_t puts_ = 0;
  std::uint64_t refused_ = 0;  // puts into a read-only store

  std::unique_ptr<sqlite::Writer> writer_;  // last: its thread uses all of the above
};

Store::Found SqliteStore::find(const CacheKey& key) {
  const Result<std::string> bytes = key_bytes(key);
  if (!bytes) return tl::make_unexpected(bytes.error());
  {
    // Before the database: a put leaves this map only when the database shows it.
    const std::lock_guard lock(pending_mutex_);
    const auto found = pending_.find(*bytes);
    if (found != pending_.end()) {
      if (same_material(key, found->second.entry->key.material)) {
        return found->second.entry;
      }
      return fail(ErrorCode::corrupt,
                  key.name() + ": the stored key material is not the request's");
    }
  }
  Result<Readers::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  Result<std::optional<Reader::Row>> row = (*reader)->find(key, *bytes);
  if (!row) return tl::make_unexpected(std::move(row.error()));
  if (!*row) return EntryPtr();
  note_use(key);
  return std::move((*row)->entry);
}

void SqliteStore::put(EntryPtr entry) {
  if (entry == nullptr || entry->body == nullptr) {
    throw std::invalid_argument("Store::put: entry without a body");
  }
  const Result<std::string> checked = key_bytes(entry->key);
  if (!checked) throw std::invalid_argument("Store::put: " + checked.error().message);
  const std::string& key = *checked;

  // Held over submit(): of two puts of one key, the one that pending_ keeps is the one written
  // last.
  const std::lock_guard lock(pending_mutex_);
  const std::uint64_t number = ++puts_;
  if (!writer_) {
    ++refused_;
    return;
  }
  // The growth is of the last try: a group that failed is tried again one by one.
  const auto growth = std::make_shared<std::int64_t>(0);
  const bool queued = writer_->submit(
      size_in_queue(*entry),
      [this, entry, key, growth]() -> Result<void> {
        Result<std::int64_t> grown = write_side_->put(*entry, key, limits_.compress_above);
        if (!grown) return tl::make_unexpected(std::move(grown.error()));
        *growth = *grown;
        return {};
      },
      [this, key, number, growth](const Result<void>& outcome) {
        if (outcome) note_growth(*growth);
        forget_pending(key, number);
      });
  if (queued) pending_.insert_or_assign(key, Pending{number, std::move(entry)});
}

void SqliteStore::forget_pending(const std::string& key, std::uint64_t number) {
  const std::lock_guard lock(pending_mutex_);
  const auto found = pending_.find(key);
  if (found != pending_.end() && found->second.number == number) pending_.erase(found);
}

Result<std::vector<std::int64_t>> SqliteStore::find_ids(const EntryFilter& filter) {
  flush();
  Result<Readers::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  return (*reader)->find_ids(filter);
}

Result<std::uint64_t> SqliteStore::purge(const EntryFilter& filter) {
  if (!writer_) return fail(ErrorCode::invalid, "purge: the store is open for reading only");
  const Result<std::vector<std::int64_t>> ids = find_ids(filter);
  if (!ids) return tl::make_unexpected(ids.error());
  std::uint64_t removed = 0;
  for (std::size_t begin = 0; begin < ids->size(); begin += kRemoveRows) {
    const auto some = std::span(*ids).subspan(begin, std::min(kRemoveRows, ids->size() - begin));
    WriteSide::Removed step;
    const Result<void> done = writer_->run(
        [&]() -> Result<void> {
          Result<WriteSide::Removed> result = write_side_->remove(some);
          if (!result) return tl::make_unexpected(std::move(result.error()));
          step = *result;
          return {};
        },
        [&](const Result<void>& outcome) {
          if (outcome) note_growth(-step.bytes);
        });
    if (!done) return tl::make_unexpected(done.error());
    removed += step.entries;
  }
  if (removed > 0) {
    const Result<void> done = give_space_back();
    if (!done) return tl::make_unexpected(done.error());
    writer_->empty_log();
  }
  return removed;
}

// Freed pages would keep the removed answers' bytes until they are used again.
Result<void> SqliteStore::give_space_back() {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  while (left > 0) {
    const std::int64_t before = left;
    Result<void> done = writer_->run([&]() -> Result<void> {
      const Result<std::int64_t> pages = write_side_->vacuum(kVacuumPages);
      if (!pages) return tl::make_unexpected(pages.error());
      left = *pages;
      return {};
    });
    if (!done) return done;
    if (left >= before) break;  // other purges may add as fast as this one takes
  }
  return {};
}

// Row by row, so that a slow visitor holds no transaction and the log can be checkpointed.
Result<std::uint64_t> SqliteStore::for_each(const EntryFilter& filter,
                                            const std::function<bool(const Entry&)>& visit) {
  const Result<std::vector<std::int64_t>> ids = find_ids(filter);
  if (!ids) return tl::make_unexpected(ids.error());
  Result<Readers::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  std::uint64_t corrupt = 0;
  for (const std::int64_t id : *ids) {
    const Result<std::optional<Reader::Row>> row = (*reader)->find(id);
    if (!row && row.error().code != ErrorCode::corrupt) return tl::make_unexpected(row.error());
    if (!row) {
      ++corrupt;
    } else if (*row && !visit(*(*row)->entry)) {
      break;
    }
  }
  return corrupt;
}

Result<StoreStats> SqliteStore::stats() {
  flush();
  Result<Readers::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  Result<StoreStats> stats = (*reader)->stats();
  if (stats) stats->evicted = evicted_;
  return stats;
}

Result<void> SqliteStore::record_uses() {
  std::vector<std::string> keys;
  for (const CacheKey& key : uses_.take()) {
    if (Result<std::string> bytes = key_bytes(key)) keys.push_back(std::move(*bytes));
  }
  return write_side_->record_uses(keys);
}

bool SqliteStore::upkeep_due() {
  const Clock::time_point now = Clock::now();
  uses_.note_time(now);
  if (!upkeep_.content_bytes || *upkeep_.content_bytes > max_bytes_) return true;
  if (upkeep_.unused_pages > 0) return true;
  return (limits_.ttl.count() > 0 && now >= upkeep_.next_sweep) ||
         (now >= upkeep_.next_uses && !uses_.empty());
}

// One step: all uses that were noted, and some of what is to be removed.
Result<void> SqliteStore::upkeep() {
  Upkeep& state = upkeep_;
  state.growth = 0;
  state.evicted = 0;
  state.summed.reset();
  const Clock::time_point now = Clock::now();
  const auto remove = [&](const Result<std::vector<std::int64_t>>& ids) -> Result<std::uint64_t> {
    if (!ids) return tl::make_unexpected(ids.error());
    const Result<WriteSide::Removed> removed = write_side_->remove(*ids);
    if (!removed) return tl::make_unexpected(removed.error());
    state.growth -= removed->bytes;
    return removed->entries;
  };

  if (Result<void> recorded = record_uses(); !recorded) return recorded;
  state.next_uses = now + kRecordEvery;
  if (!state.content_bytes) {
    const Result<std::int64_t> sum = write_side_->content_bytes();
    if (!sum) return tl::make_unexpected(sum.error());
    state.summed = *sum;
  }
  const std::int64_t content = state.summed ? *state.summed : *state.content_bytes;
  if (content > max_bytes_) {
    const Result<std::uint64_t> evicted =
        remove(write_side_->least_recently_used(content - max_bytes_, kRemoveRows));
    if (!evicted) return tl::make_unexpected(evicted.error());
    state.evicted = *evicted;
  }
  if (limits_.ttl.count() > 0 && now >= state.next_sweep) {
    const Result<std::uint64_t> swept =
        remove(write_side_->created_before(unix_ms() - limits_.ttl.count(), kRemoveRows));
    if (!swept) return tl::make_unexpected(swept.error());
    if (*swept < kRemoveRows) state.next_sweep = now + kSweepEvery;
    if (*swept > 0) state.unused_pages = std::numeric_limits<std::int64_t>::max();
  } else if (state.unused_pages > 0) {
    const Result<std::int64_t> left = write_side_->vacuum(kVacuumPages);
    if (!left) return tl::make_unexpected(left.error());
    state.unused_pages = *left < state.unused_pages ? *left : 0;
  }
  return {};
}

void SqliteStore::upkeep_done(const Result<void>& outcome) {
  if (!outcome) return;
  if (upkeep_.summed) upkeep_.content_bytes = upkeep_.summed;
  note_growth(upkeep_.growth);
  evicted_ += upkeep_.evicted;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteStoreOptions& options) {
  std::unique_ptr<WriteSide> write_side;
  if (!options.read_only) {
    Result<std::unique_ptr<WriteSide>> opened = WriteSide::open(options.path);
    if (!opened) return tl::make_unexpected(std::move(opened.error()));
    write_side = std::move(*opened);
  }
  auto store = std::make_unique<SqliteStore>(options, std::move(write_side));
  if (Result<void> readable = store->check_readable(); !readable) {
    return tl::make_unexpected(std::move(readable.error()));
  }
  return store;
}

}  // namespace fixpoint
