#include "cache/token_log_file.hpp"

#include <algorithm>
#include <limits>

#include "cache/token_log_migration.hpp"

namespace fixpoint {
namespace {

// Generations get their indexes at once: one row each, and show() and retention would read the
// whole table without them. Tokens lie in a table of their own, so that what reads generations
// reads no tokens; their key follows the order of insertion, so that writing appends. The counts
// and min_margin are the tokens', made once when they are written: the margin report and the
// thinnest margins of a range read no other tokens than those they show.
constexpr const char* kMigrations[] = {kToVersion3};
constexpr sqlite::Schema kSchema{.what = "token log",
                                 .application_id = 0x4650544C,  // "FPTL"
                                 .version = 3,
                                 .sql = R"sql(
CREATE TABLE generations(
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL,
  key TEXT NOT NULL,
  prompt_hash TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  requested_model TEXT NOT NULL,
  provider TEXT NOT NULL,
  route TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  tenant TEXT NOT NULL,
  finish_reason TEXT NOT NULL,
  sample INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  cost_microdollars INTEGER,   -- NULL: not known
  attempts INTEGER NOT NULL,
  queue_ms REAL,
  first_token_ms REAL,
  total_ms REAL,
  logprobs_status TEXT NOT NULL,
  tokens INTEGER NOT NULL,     -- logged ones
  with_margin INTEGER NOT NULL,
  below_001 INTEGER NOT NULL,  -- margins below 0.01 nats
  below_01 INTEGER NOT NULL,
  below_1 INTEGER NOT NULL,
  min_margin REAL) STRICT;     -- NULL: no token has a margin
CREATE INDEX generations_by_time ON generations(created_ms);
CREATE INDEX generations_by_key ON generations(key) WHERE key <> '';
CREATE TABLE tokens(
  generation INTEGER PRIMARY KEY,  -- generations.row
  packed BLOB NOT NULL) STRICT;    -- pack_tokens()
CREATE TABLE fingerprints(
  provider TEXT NOT NULL,
  model TEXT NOT NULL,             -- as it was asked for
  fingerprint TEXT NOT NULL,
  first_seen_ms INTEGER NOT NULL,
  last_seen_ms INTEGER NOT NULL,
  generations INTEGER NOT NULL,
  PRIMARY KEY(provider, model, fingerprint)) STRICT, WITHOUT ROWID;
)sql",
                                 .migrations = kMigrations};

// For recognising such a file; nothing creates one.
constexpr sqlite::Schema kVersion1{
    .what = kSchema.what, .application_id = kSchema.application_id, .version = 1, .sql = ""};

Result<void> bound_file(sqlite::Database& database, std::uint64_t max_bytes) {
  const Result<std::int64_t> page_size = database.query_integer("PRAGMA page_size");
  if (!page_size) return tl::make_unexpected(page_size.error());
  const std::uint64_t pages = max_bytes / static_cast<std::uint64_t>(*page_size);
  const std::string limit =
      "PRAGMA max_page_count=" + std::to_string(std::clamp<std::uint64_t>(pages, 1, 0x3FFFFFFE));
  return database.execute(limit.c_str());
}

}  // namespace

Result<sqlite::Database> open_token_log_writer(const std::string& path, std::uint64_t max_bytes) {
  if (!sqlite::Database::open_reader(path, kVersion1)) {
    return sqlite::Database::open_writer(path, kSchema, max_bytes);
  }
  // While two versions lie in it the file may be larger than it may be later.
  Result<sqlite::Database> database =
      sqlite::Database::open_writer(path, kVersion1, std::numeric_limits<std::uint64_t>::max());
  if (!database) return database;
  if (Result<void> migrated = migrate_version_1(*database, kSchema.sql); !migrated) {
    return fail(migrated.error().code,
                "migrating the token log from version 1 to 3: " + migrated.error().message);
  }
  if (Result<void> bounded = bound_file(*database, max_bytes); !bounded) {
    return tl::make_unexpected(std::move(bounded.error()));
  }
  return database;
}

Result<sqlite::Database> open_token_log_reader(const std::string& path) {
  return sqlite::Database::open_reader(path, kSchema);
}

}  // namespace fixpoint
