// What the response cache's one writer does with its SQLite file.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "cache/compression.hpp"
#include "cache/sqlite_store_file.hpp"

namespace fixpoint::sqlite_store {
namespace {

constexpr const char* kUpsert =
    "INSERT INTO entries(key, kind, created_ms, endpoint, model, provider, generation, body_bytes,"
    " checksum, material, body, tenant, first_token_ms, total_ms, saved_bytes, pace)"
    " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16) "
    "ON CONFLICT(key) DO UPDATE SET created_ms = excluded.created_ms, endpoint = excluded.endpoint,"
    " model = excluded.model, provider = excluded.provider, generation = excluded.generation,"
    " body_bytes = excluded.body_bytes, checksum = excluded.checksum, material = excluded.material,"
    " body = excluded.body, tenant = excluded.tenant, first_token_ms = excluded.first_token_ms,"
    " total_ms = excluded.total_ms, saved_bytes = excluded.saved_bytes,"
    " pace = excluded.pace RETURNING id";

// Of a statement with one row or none.
Result<std::int64_t> integer_or_0(sqlite::Statement& statement) {
  const Result<std::vector<std::int64_t>> values = statement.run_integers();
  if (!values) return tl::make_unexpected(values.error());
  return values->empty() ? 0 : values->front();
}

}  // namespace

Result<std::unique_ptr<WriteSide>> WriteSide::open(const std::string& path) {
  // max_bytes bounds the content; the file has no limit but the disk's.
  Result<sqlite::Database> database = sqlite::Database::open_writer(
      path, schema(), static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!database) return tl::make_unexpected(std::move(database.error()));
  auto side = std::make_unique<WriteSide>();
  side->database_ = std::move(*database);
  for (const auto& [statement, sql] :
       {std::pair{&side->upsert_, kUpsert},
        {&side->bytes_of_, "SELECT bytes FROM uses WHERE entry = ?1"},
        {&side->set_use_,
         "INSERT INTO uses(entry, used, bytes) VALUES(?1, ?2, ?3)"
         " ON CONFLICT(entry) DO UPDATE SET used = excluded.used, bytes = excluded.bytes"},
        {&side->use_,
         "UPDATE uses SET used = ?2 WHERE entry = (SELECT id FROM entries WHERE key = ?1)"},
        {&side->remove_, "DELETE FROM entries WHERE id = ?1"},
        {&side->remove_use_, "DELETE FROM uses WHERE entry = ?1 RETURNING bytes"},
        {&side->by_use_, "SELECT entry, bytes FROM uses ORDER BY used LIMIT ?1"},
        {&side->by_time_,
         "SELECT id FROM entries WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2"}}) {
    Result<void> prepared = side->database_.prepare(*statement, sql);
    if (!prepared) return tl::make_unexpected(std::move(prepared.error()));
  }
  const Result<std::int64_t> last =
      side->database_.query_integer("SELECT ifnull(max(used), 0) FROM uses");
  if (!last) return tl::make_unexpected(last.error());
  side->last_use_ = *last;
  return side;
}

std::int64_t WriteSide::next_use() {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  last_use_ = std::max(now, last_use_ + 1);
  return last_use_;
}

Result<std::int64_t> WriteSide::content_bytes() {
  return database_.query_integer("SELECT ifnull(sum(bytes), 0) FROM uses");
}

Result<std::int64_t> WriteSide::put(const Entry& entry, const std::string& key,
                                    std::size_t compress_above) {
  std::optional<std::string> compressed;
  if (entry.body->size() > compress_above) compressed = compress(*entry.body);
  const std::string& body = compressed ? *compressed : *entry.body;
  const std::string checksum = checksum_of(entry);
  upsert_.bind_blob(1, key);
  upsert_.bind(2, std::int64_t{entry.key.kind == KeyKind::body});
  upsert_.bind(3, entry.created_ms);
  upsert_.bind_text(4, entry.endpoint);
  upsert_.bind_text(5, entry.model);
  upsert_.bind_text(6, entry.provider);
  upsert_.bind_text(7, entry.generation);
  upsert_.bind(8, static_cast<std::int64_t>(entry.body->size()));
  upsert_.bind_blob(9, checksum);
  upsert_.bind_blob(10, entry.key.material);
  upsert_.bind_blob(11, body);
  upsert_.bind_text(12, entry.tenant);
  upsert_.bind(13, std::int64_t{entry.first_token_ms});
  upsert_.bind(14, std::int64_t{entry.total_ms});
  upsert_.bind(15, static_cast<std::int64_t>(entry.body->size() - body.size()));
  upsert_.bind_text(16, entry.pace);
  const Result<std::int64_t> id = integer_or_0(upsert_);
  if (!id) return id;

  bytes_of_.bind(1, *id);
  const Result<std::int64_t> before = integer_or_0(bytes_of_);
  if (!before) return before;
  const auto bytes = static_cast<std::int64_t>(body.size() + entry.key.material.size());
  set_use_.bind(1, *id);
  set_use_.bind(2, next_use());
  set_use_.bind(3, bytes);
  if (Result<void> set = set_use_.run(); !set) return tl::make_unexpected(std::move(set.error()));
  return bytes - *before;
}

Result<WriteSide::Removed> WriteSide::remove(std::span<const std::int64_t> ids) {
  Removed removed;
  for (const std::int64_t id : ids) {
    remove_.bind(1, id);
    if (Result<void> done = remove_.run(); !done) return tl::make_unexpected(done.error());
    removed.entries += static_cast<std::uint64_t>(sqlite3_changes64(database_.handle()));
    remove_use_.bind(1, id);
    const Result<std::int64_t> bytes = integer_or_0(remove_use_);
    if (!bytes) return tl::make_unexpected(bytes.error());
    removed.bytes += *bytes;
  }
  return removed;
}

Result<void> WriteSide::record_uses(std::span<const std::string> keys) {
  for (const std::string& key : keys) {
    use_.bind_blob(1, key);
    use_.bind(2, next_use());
    if (Result<void> set = use_.run(); !set) return set;
  }
  return {};
}

Result<std::vector<std::int64_t>> WriteSide::least_recently_used(std::int64_t bytes,
                                                                 std::size_t limit) {
  const sqlite::ResetAtEnd at_end(by_use_);
  by_use_.bind(1, static_cast<std::int64_t>(limit));
  std::vector<std::int64_t> ids;
  while (bytes > 0) {
    const Result<bool> row = by_use_.step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) break;
    ids.push_back(by_use_.integer(0));
    bytes -= by_use_.integer(1);
  }
  return ids;
}

Result<std::vector<std::int64_t>> WriteSide::created_before(std::int64_t unix_ms,
                                                            std::size_t limit) {
  by_time_.bind(1, unix_ms);
  by_time_.bind(2, static_cast<std::int64_t>(limit));
  return by_time_.run_integers();
}

Result<std::int64_t> WriteSide::vacuum(std::int64_t pages) {
  const std::string step = "PRAGMA incremental_vacuum(" + std::to_string(pages) + ")";
  if (Result<void> done = database_.execute(step.c_str()); !done) {
    return tl::make_unexpected(std::move(done.error()));
  }
  return database_.query_integer("PRAGMA freelist_count");
}

}  // namespace fixpoint::sqlite_store
