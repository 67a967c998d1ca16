// Where answers are kept. One interface for every backend; tests/unit/cache/store_conformance.hpp
// is its suite.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/entry.hpp"

namespace fixpoint {

struct StoreStats {
  std::uint64_t entries = 0, bytes = 0;  // of stored bodies
  std::uint64_t prompt_entries = 0, body_entries = 0;
  std::int64_t oldest_ms = 0, newest_ms = 0;  // 0: empty
};

struct PurgeFilter {               // all set conditions must hold; none set: everything
  std::optional<std::string> key;  // CacheKey::name()
  std::optional<std::string> model;
  std::optional<std::int64_t> older_than_ms;  // created before this Unix time
};

// Thread-safe. A store that fails makes the gateway slower, never wrong: get() errors are treated
// as a miss and marked, put() errors are counted.
class Store {
 public:
  virtual ~Store() = default;

  // Compares the stored material with the key's: a different material under the same digest is an
  // Error corrupt, as is an entry that fails its checksum. A key without material (parse_key_name)
  // is looked up by its digest; the answer's key has the material. Sees every put() that returned
  // before. Other errors: invalid (the key's hex), io.
  virtual Result<std::optional<Entry>> get(const CacheKey& key) = 0;
  // Queues the write and returns at once. Replaces an entry with the same key. Dropped (and
  // counted) when the queue is full or the disk refuses. The entry's key has its material, and body
  // is not null.
  virtual void put(Entry entry) = 0;
  // Returns the number of entries removed, among them every matching put() that returned before.
  // Waits for the disk: not for an I/O thread. Errors: invalid (a key's name, a read-only store),
  // io.
  virtual Result<std::uint64_t> purge(const PurgeFilter& filter) = 0;
  // Reads one index row per entry (about 0.1 s for a million): for tools and slow metrics.
  virtual Result<StoreStats> stats() = 0;
  // Waits until everything queued is on disk (or failed). For shutdown, tools and tests.
  virtual void flush() = 0;
  virtual std::uint64_t failed_writes() const = 0;
};

struct SqliteStoreOptions {
  std::string path;        // its directory exists; `<path>.lock` appears beside it
  bool read_only = false;  // tools; no writer thread, put() drops and counts
  std::size_t max_queue_bytes = 64u << 20;
  // At this size new answers are not stored any more (and counted), while the old ones keep
  // answering.
  std::uint64_t max_file_bytes = 64ull << 30;
  // Hears of every write and checkpoint that failed, on the writer's thread. May be empty.
  std::function<void(const Error&)> on_write_error;
};
// One process at a time may have a file open for writing; any number may read it beside that one.
// Errors: io (directory, permissions, another writer), corrupt (no SQLite file), invalid (another
// kind of SQLite file, or a version that a newer program wrote).
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteStoreOptions& options);

}  // namespace fixpoint
