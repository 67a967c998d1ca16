// The SQLite file of the response cache: its schema, its rows as entries, and what its one writer
// does with them. Internal to sqlite_store.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/sqlite/database.hpp"
#include "cache/store.hpp"

namespace fixpoint::sqlite_store {

const sqlite::Schema& schema();

// The checksum column.
std::string checksum_of(const Entry& entry);

// The key column: 33 bytes. Errors: invalid (the key's hex).
Result<std::string> key_bytes(const CacheKey& key);

// A connection for reading, with its statements. One thread at a time.
class Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const std::string& path);

  struct Row {
    std::int64_t id;
    EntryPtr entry;
  };
  // Nothing for a miss. Errors: those of Store::get().
  Result<std::optional<Row>> find(const CacheKey& key, const std::string& key_bytes);
  // Nothing when it is gone; takes the key from the row.
  Result<std::optional<Row>> find(std::int64_t id);
  Result<std::vector<std::int64_t>> find_ids(const EntryFilter& filter);
  Result<StoreStats> stats();

 private:
  sqlite::Database database_;
  sqlite::Statement by_key_, by_id_, stats_;
};

// The writer's side: everything but open() is called on the writer's thread, inside its
// transactions. The content is bodies and materials, as stored.
class WriteSide {
 public:
  static Result<std::unique_ptr<WriteSide>> open(const std::string& path);

  sqlite::Database& database() { return database_; }
  Result<std::int64_t> content_bytes();  // walks an index
  // Returns by how much the content grew.
  Result<std::int64_t> put(const Entry& entry, const std::string& key_bytes,
                           std::size_t compress_above);
  struct Removed {
    std::uint64_t entries = 0;
    std::int64_t bytes = 0;  // of content
  };
  Result<Removed> remove(std::span<const std::int64_t> ids);
  Result<void> record_uses(std::span<const std::string> keys);  // key_bytes()
  // Entries that were not used for longest, of `bytes` together or a little more, `limit` at most.
  Result<std::vector<std::int64_t>> least_recently_used(std::int64_t bytes, std::size_t limit);
  Result<std::vector<std::int64_t>> created_before(std::int64_t unix_ms, std::size_t limit);
  // Gives up to `pages` unused pages back to the file system; returns how many there still are.
  Result<std::int64_t> vacuum(std::int64_t pages);

 private:
  std::int64_t next_use();

  sqlite::Database database_;
  sqlite::Statement upsert_, bytes_of_, set_use_, use_, remove_, remove_use_, by_use_, by_time_;
  std::int64_t last_use_ = 0;  // Unix milliseconds, made unique and increasing
};

}  // namespace fixpoint::sqlite_store
