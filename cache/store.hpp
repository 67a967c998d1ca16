// Where answers are kept. One interface for every backend; tests/unit/cache/store_conformance.hpp
// is its suite.
#pragma once

#include <chrono>
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
  std::uint64_t entries = 0, bytes = 0;  // of bodies, uncompressed
  std::uint64_t stored_bytes = 0;        // of bodies as they are kept
  std::uint64_t prompt_entries = 0, body_entries = 0;
  std::int64_t oldest_ms = 0, newest_ms = 0;  // 0: empty
  std::uint64_t evicted = 0;                  // since this process opened it
};

struct EntryFilter {               // all set conditions must hold; none set: everything
  std::optional<std::string> key;  // CacheKey::name()
  std::optional<std::string> model;
  std::optional<std::string> tenant;
  std::optional<std::int64_t> older_than_ms;  // created before this Unix time
};

// Thread-safe. A store that fails makes the gateway slower, never wrong: get() errors are treated
// as a miss and marked, put() errors are counted.
class Store {
 public:
  // An entry, null for a miss, or an error: corrupt (a different material under the same digest, or
  // a failed checksum), invalid (the key's hex), io, unreachable, timeout, protocol.
  using Found = Result<EntryPtr>;
  using GetDone = std::function<void(Found)>;

  virtual ~Store() = default;

  // Looks an entry up and compares the stored material with the key's. A key without material
  // (parse_key_name) is looked up by its digest; the answer's key has the material. `done` is
  // called exactly once: before get() returns by stores on this machine, later and on a thread of
  // the store's own by remote ones. Sees every put() of this process that returned before.
  virtual void get(const CacheKey& key, GetDone done) = 0;
  // Queues the write and returns at once. Replaces an entry with the same key, but for what
  // Entry::keeps_first says. Dropped (and
  // counted) when the queue is full or the store refuses. The entry's key has its material, and
  // body is not null.
  virtual void put(EntryPtr entry) = 0;
  // The entry was used though get() was not asked, by a store in front of this one: what is evicted
  // first is judged as if it had been. Cheap: for every hit. A store whose server evicts on its own
  // has nothing to do.
  virtual void note_use(const CacheKey& /*key*/) {}
  // Returns the number of entries removed, among them every matching put() that returned before.
  // Waits for the store: not for an I/O thread. Errors: invalid (a key's name, a read-only store),
  // io and those of a remote store.
  virtual Result<std::uint64_t> purge(const EntryFilter& filter) = 0;
  // Calls visit with every matching entry, in no particular order; false from it ends the walk.
  // Entries that come or go meanwhile may be seen or not. Corrupt ones are skipped and counted in
  // the result. Waits for the store. Errors: as purge().
  virtual Result<std::uint64_t> for_each(const EntryFilter& filter,
                                         const std::function<bool(const Entry&)>& visit) = 0;
  // For tools and slow metrics: may walk an index. Waits for the store.
  virtual Result<StoreStats> stats() = 0;
  // Waits until everything queued is kept (or failed). For shutdown, tools and tests.
  virtual void flush() = 0;
  virtual std::uint64_t failed_writes() const = 0;
  // Whether other processes write to it, too.
  virtual bool shared() const { return false; }
};

// get() for tools and tests: waits for the answer.
Store::Found get_and_wait(Store& store, const CacheKey& key);

// Limits that every store keeps in its own way; the caller judges an entry's age by created_ms, so
// that a store may be late in removing it.
struct StoreLimits {
  std::chrono::milliseconds ttl{0};      // older entries are removed; 0: never
  std::uint64_t max_bytes = 8ull << 30;  // of stored bodies and materials; beyond, those that were
                                         // not used for longest go first
  std::size_t compress_above = 4096;     // bytes of a body; longer ones go through zstd
};

struct SqliteStoreOptions {
  std::string path;        // its directory exists; `<path>.lock` appears beside it
  bool read_only = false;  // tools; no writer thread, put() drops and counts
  std::size_t max_queue_bytes = 64u << 20;
  StoreLimits limits;
  // Hears of every write and checkpoint that failed, on the writer's thread. May be empty.
  std::function<void(const Error&)> on_write_error;
};
// One process at a time may have a file open for writing; any number may read it beside that one.
// A file of an older version is migrated when it is opened for writing.
// Errors: io (directory, permissions, another writer), corrupt (no SQLite file), invalid (another
// kind of SQLite file, a version that a newer program wrote, or an older one opened read-only).
Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteStoreOptions& options);

// The most recently used entries, in memory: everything that an entry holds counts, and the forms
// that readers derive from it. It is split into one part for each 4 MiB of max_bytes, 16 at most,
// by key; each part has its own share and its own order of use, and an entry that is larger than a
// share is refused. Entries that were put longer than `max_age` ago are misses; 0: they are not.
std::unique_ptr<Store> make_memory_store(std::uint64_t max_bytes,
                                         std::chrono::milliseconds max_age = {});

// `memory` in front of `below`: look-ups that memory cannot answer go below and fill it; writes and
// purges go to both. Errors of `below` are the result, and everything but look-ups tells of it
// alone. `below` hears of every use (note_use), but a server behind it only when memory does not
// have the entry, and another process's purge of a shared `below` does not reach memory: make it
// with a max_age.
std::unique_ptr<Store> make_tiered_store(std::unique_ptr<Store> memory,
                                         std::unique_ptr<Store> below);

struct RedisStoreOptions {
  std::string url;       // redis://[user:password@]host[:port][/db]; rediss:// for TLS
  bool cluster = false;  // the host is any node of a Redis Cluster
  std::string ca_file;   // empty: the system's
  std::string prefix = "fixpoint:";
  std::chrono::milliseconds timeout{100};         // of a look-up, connecting included
  std::chrono::milliseconds tool_timeout{10000};  // of each step of a purge, a walk or stats
  std::size_t max_queue_bytes = 64u << 20;        // of writes that wait
  StoreLimits limits;  // max_bytes is the server's business (maxmemory) and not looked at
  // Hears of lost connections and refused writes, on the store's thread. May be empty.
  std::function<void(const Error&)> on_error;
};
// Connects in the background: a server that is away is no error here, but of each get(), at once
// while it is known to be away. Errors: invalid (the URL, the CA file).
Result<std::unique_ptr<Store>> open_redis_store(const RedisStoreOptions& options);

// One readable JSON file per answer, to be kept beside a test suite: `fixpoint serve --record` and
// `--replay`. The directory is made if it is not there; its *.json files are read once. put()
// writes the file before it returns, and leaves one alone that has the same answer already. Files
// may be edited: the answer is taken as it stands. Errors: io; invalid, with the file's name (no
// recording, a request that no longer gives its key, a key that two files have).
// `on_write_error` hears of every recording that could not be written, on put()'s thread.
class RecordingStore : public Store {
 public:
  // For the message of a miss: which members of the request differ from those of the recording that
  // is nearest to it; empty when there is none to compare with.
  virtual std::string explain_miss(const CacheKey& key) = 0;
};
Result<std::unique_ptr<RecordingStore>> open_recording(
    const std::string& directory, std::function<void(const Error&)> on_write_error = {});

}  // namespace fixpoint
