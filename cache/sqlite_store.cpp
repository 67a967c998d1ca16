// The response cache in one SQLite file.
#include <algorithm>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/base/digest.hpp"
#include "cache/sqlite/database.hpp"
#include "cache/sqlite/reader_pool.hpp"
#include "cache/sqlite/writer.hpp"
#include "cache/store.hpp"

namespace fixpoint {
namespace {

// One table: a second one for the bodies cost every hit another B-tree descent (1.5 us of 11,
// measured with 60,000 entries of 2 KiB) and made nothing faster that the time index does not make
// faster still. That index holds all that stats() and purge() read; entries come in order of time,
// so that keeping it appends to its last page.
constexpr sqlite::Schema kSchema{.what = "response cache",
                                 .application_id = 0x46505243,  // "FPRC"
                                 .version = 1,
                                 .sql = R"sql(
CREATE TABLE entries(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL,         -- 'p' or 'b', then 32 bytes of SHA-256
  kind INTEGER NOT NULL,     -- 0 prompt, 1 body
  created_ms INTEGER NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  generation TEXT NOT NULL,
  body_bytes INTEGER NOT NULL,
  checksum BLOB NOT NULL,    -- checksum_of()
  material BLOB NOT NULL,
  body BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX entries_by_key ON entries(key);
CREATE INDEX entries_by_time ON entries(created_ms, kind, model, body_bytes);
)sql"};

constexpr const char* kSelect =
    "SELECT created_ms, endpoint, model, provider, generation, checksum, material, body "
    "FROM entries WHERE key = ?1";
constexpr const char* kUpsert =
    "INSERT INTO entries(key, kind, created_ms, endpoint, model, provider, generation, body_bytes,"
    " checksum, material, body) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11) "
    "ON CONFLICT(key) DO UPDATE SET created_ms = excluded.created_ms, endpoint = excluded.endpoint,"
    " model = excluded.model, provider = excluded.provider, generation = excluded.generation,"
    " body_bytes = excluded.body_bytes, checksum = excluded.checksum, material = excluded.material,"
    " body = excluded.body";
constexpr const char* kStats =
    "SELECT count(*), ifnull(sum(body_bytes), 0), ifnull(sum(kind = 0), 0),"
    " ifnull(min(created_ms), 0), ifnull(max(created_ms), 0) FROM entries";
// NULL parameters are conditions that are not set. The first one reads the time index alone.
constexpr const char* kFind =
    "SELECT id FROM entries WHERE (?1 IS NULL OR model = ?1) AND (?2 IS NULL OR created_ms < ?2)";
constexpr const char* kFindByKey =
    "SELECT id FROM entries WHERE (?1 IS NULL OR model = ?1) AND (?2 IS NULL OR created_ms < ?2)"
    " AND key = ?3";
constexpr const char* kDelete = "DELETE FROM entries WHERE id = ?1";

// Small enough that the puts behind a large purge wait for milliseconds.
constexpr std::size_t kPurgeRows = 1000;
constexpr std::int64_t kVacuumPages = 1000;

// The key column: 33 bytes.
Result<std::string> key_bytes(const CacheKey& key) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes(1, key.kind == KeyKind::prompt ? 'p' : 'b');
  bytes.reserve(33);
  bool valid = key.hex.size() == 64;
  for (std::size_t i = 0; valid && i < key.hex.size(); i += 2) {
    const int high = digit(key.hex[i]), low = digit(key.hex[i + 1]);
    valid = high >= 0 && low >= 0;
    bytes += static_cast<char>(high * 16 + low);
  }
  if (!valid) return fail(ErrorCode::invalid, "a key has 64 digits of 0-9 and a-f");
  return bytes;
}

std::string_view view(const Sha256Bytes& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// SHA-256 over everything that get() hands out and does not compare: the small columns,
// length-prefixed, and the body's own SHA-256, so that the body is not copied.
Sha256Bytes checksum_of(const Entry& entry, std::string_view body) {
  const Sha256Bytes body_digest = sha256(body);
  std::string bytes;
  for (const std::string_view part :
       {std::string_view(entry.endpoint), std::string_view(entry.model),
        std::string_view(entry.provider), std::string_view(entry.generation)}) {
    bytes += std::to_string(part.size());
    bytes += ' ';
    bytes += part;
  }
  bytes += std::to_string(entry.created_ms);
  bytes += view(body_digest);
  return sha256(bytes);
}

std::size_t size_in_queue(const Entry& entry) {
  return sizeof(Entry) + entry.key.material.size() + entry.endpoint.size() + entry.model.size() +
         entry.provider.size() + entry.generation.size() + entry.body->size();
}

struct Reader {
  sqlite::Database database;
  sqlite::Statement select, stats;
};

Result<std::unique_ptr<Reader>> open_reader(const std::string& path) {
  Result<sqlite::Database> database = sqlite::Database::open_reader(path, kSchema);
  if (!database) return tl::make_unexpected(std::move(database.error()));
  Result<sqlite::Statement> select = database->prepare(kSelect);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  Result<sqlite::Statement> stats = database->prepare(kStats);
  if (!stats) return tl::make_unexpected(std::move(stats.error()));
  return std::make_unique<Reader>(
      Reader{std::move(*database), std::move(*select), std::move(*stats)});
}

// The writer's side; its statements are used on the writer's thread alone.
struct WriteSide {
  sqlite::Database database;
  sqlite::Statement upsert, remove;
};

Result<std::unique_ptr<WriteSide>> open_write_side(const SqliteStoreOptions& options) {
  Result<sqlite::Database> database =
      sqlite::Database::open_writer(options.path, kSchema, options.max_file_bytes);
  if (!database) return tl::make_unexpected(std::move(database.error()));
  Result<sqlite::Statement> upsert = database->prepare(kUpsert);
  if (!upsert) return tl::make_unexpected(std::move(upsert.error()));
  Result<sqlite::Statement> remove = database->prepare(kDelete);
  if (!remove) return tl::make_unexpected(std::move(remove.error()));
  return std::make_unique<WriteSide>(
      WriteSide{std::move(*database), std::move(*upsert), std::move(*remove)});
}

class SqliteStore final : public Store {
 public:
  // `write_side` is null for a read-only store.
  SqliteStore(const SqliteStoreOptions& options, std::unique_ptr<WriteSide> write_side)
      : write_side_(std::move(write_side)),
        readers_([path = options.path] { return open_reader(path); }) {
    if (write_side_) {
      writer_ = std::make_unique<sqlite::Writer>(write_side_->database, options.max_queue_bytes,
                                                 options.on_write_error);
    }
  }

  Result<std::optional<Entry>> get(const CacheKey& key) override;
  void put(Entry entry) override;
  Result<std::uint64_t> purge(const PurgeFilter& filter) override;
  Result<StoreStats> stats() override;

  void flush() override {
    if (writer_) writer_->flush();
  }

  std::uint64_t failed_writes() const override {
    const std::lock_guard lock(pending_mutex_);
    return refused_ + (writer_ ? writer_->failed() : 0);
  }

  Result<void> check_readable() {
    Result<sqlite::ReaderPool<Reader>::Lease> reader = readers_.acquire();
    if (!reader) return tl::make_unexpected(std::move(reader.error()));
    return {};
  }

 private:
  // A put that is queued but not yet committed.
  struct Pending {
    std::uint64_t number;  // of the put; the newest one of a key stays until its own commit
    std::shared_ptr<const Entry> entry;
  };

  Result<void> write(const Entry& entry, const std::string& key);
  void forget_pending(const std::string& key, std::uint64_t number);
  Result<std::vector<std::int64_t>> find(const PurgeFilter& filter);  // ids on disk

  std::unique_ptr<WriteSide>
      write_side_;  // closed after the readers: the last to leave removes the log
  sqlite::ReaderPool<Reader> readers_;

  mutable std::mutex pending_mutex_;
  std::unordered_map<std::string, Pending> pending_;  // by key_bytes()
  std::uint64_t puts_ = 0;
  std::uint64_t refused_ = 0;  // puts into a read-only store

  std::unique_ptr<sqlite::Writer> writer_;  // last: its thread uses all of the above
};

// The stored material must be what was hashed: the key's own, or, for a key known by name alone,
// bytes with that digest.
bool same_material(const CacheKey& key, std::string_view stored) {
  return key.material.empty() ? sha256_hex(stored) == key.hex : key.material == stored;
}

Result<std::optional<Entry>> SqliteStore::get(const CacheKey& key) {
  const Result<std::string> bytes = key_bytes(key);
  if (!bytes) return tl::make_unexpected(bytes.error());
  const auto other_material = [&] {
    return fail(ErrorCode::corrupt, key.name() + ": the stored key material is not the request's");
  };
  {
    // Before the database: a put leaves this map only when the database shows it.
    const std::lock_guard lock(pending_mutex_);
    const auto found = pending_.find(*bytes);
    if (found != pending_.end()) {
      if (!same_material(key, found->second.entry->key.material)) return other_material();
      return *found->second.entry;
    }
  }
  Result<sqlite::ReaderPool<Reader>::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  sqlite::Statement& select = (*reader)->select;
  const sqlite::ResetAtEnd at_end(select);
  select.bind_blob(1, *bytes);
  const Result<bool> row = select.step();
  if (!row) return tl::make_unexpected(row.error());
  if (!*row) return std::nullopt;

  const std::string_view material = select.bytes(6);
  if (!same_material(key, material)) return other_material();
  Entry entry;
  entry.created_ms = select.integer(0);
  entry.endpoint = select.bytes(1);
  entry.model = select.bytes(2);
  entry.provider = select.bytes(3);
  entry.generation = select.bytes(4);
  entry.body = std::make_shared<const std::string>(select.bytes(7));
  if (view(checksum_of(entry, *entry.body)) != select.bytes(5)) {
    return fail(ErrorCode::corrupt, key.name() + ": the stored entry fails its checksum");
  }
  entry.key = {key.kind, key.hex, std::string(material)};
  return entry;
}

void SqliteStore::put(Entry entry) {
  if (entry.body == nullptr) throw std::invalid_argument("Store::put: entry without a body");
  const Result<std::string> checked = key_bytes(entry.key);
  if (!checked) throw std::invalid_argument("Store::put: " + checked.error().message);
  const std::string& key = *checked;
  const std::size_t bytes = size_in_queue(entry);
  const auto shared = std::make_shared<const Entry>(std::move(entry));

  // Held over submit(): of two puts of one key, the one that pending_ keeps is the one written
  // last.
  const std::lock_guard lock(pending_mutex_);
  const std::uint64_t number = ++puts_;
  if (!writer_) {
    ++refused_;
    return;
  }
  const bool queued = writer_->submit(
      bytes, [this, shared, key] { return write(*shared, key); },
      [this, key, number](const Result<void>&) { forget_pending(key, number); });
  if (queued) pending_.insert_or_assign(key, Pending{number, shared});
}

Result<void> SqliteStore::write(const Entry& entry, const std::string& key) {
  const Sha256Bytes checksum = checksum_of(entry, *entry.body);
  sqlite::Statement& upsert = write_side_->upsert;
  upsert.bind_blob(1, key);
  upsert.bind(2, std::int64_t{entry.key.kind == KeyKind::body});
  upsert.bind(3, entry.created_ms);
  upsert.bind_text(4, entry.endpoint);
  upsert.bind_text(5, entry.model);
  upsert.bind_text(6, entry.provider);
  upsert.bind_text(7, entry.generation);
  upsert.bind(8, static_cast<std::int64_t>(entry.body->size()));
  upsert.bind_blob(9, view(checksum));
  upsert.bind_blob(10, entry.key.material);
  upsert.bind_blob(11, *entry.body);
  return upsert.run();
}

void SqliteStore::forget_pending(const std::string& key, std::uint64_t number) {
  const std::lock_guard lock(pending_mutex_);
  const auto found = pending_.find(key);
  if (found != pending_.end() && found->second.number == number) pending_.erase(found);
}

Result<std::vector<std::int64_t>> SqliteStore::find(const PurgeFilter& filter) {
  std::string key;
  if (filter.key) {
    const Result<CacheKey> parsed = parse_key_name(*filter.key);
    if (!parsed) return tl::make_unexpected(parsed.error());
    key = *key_bytes(*parsed);
  }
  Result<sqlite::ReaderPool<Reader>::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  Result<sqlite::Statement> select = (*reader)->database.prepare(filter.key ? kFindByKey : kFind);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  if (filter.model) select->bind_text(1, *filter.model);
  if (filter.older_than_ms) select->bind(2, *filter.older_than_ms);
  if (filter.key) select->bind_blob(3, key);
  std::vector<std::int64_t> ids;
  for (;;) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return ids;
    ids.push_back(select->integer(0));
  }
}

Result<std::uint64_t> SqliteStore::purge(const PurgeFilter& filter) {
  if (!writer_) return fail(ErrorCode::invalid, "purge: the store is open for reading only");
  flush();
  const Result<std::vector<std::int64_t>> ids = find(filter);
  if (!ids) return tl::make_unexpected(ids.error());
  sqlite::Database& database = write_side_->database;
  std::uint64_t removed = 0;
  for (std::size_t begin = 0; begin < ids->size(); begin += kPurgeRows) {
    const std::size_t end = std::min(begin + kPurgeRows, ids->size());
    std::int64_t changes = 0;
    const Result<void> done = writer_->run([&]() -> Result<void> {
      const std::int64_t before = sqlite3_total_changes64(database.handle());
      for (std::size_t i = begin; i < end; ++i) {
        write_side_->remove.bind(1, (*ids)[i]);
        if (Result<void> outcome = write_side_->remove.run(); !outcome) return outcome;
      }
      changes = sqlite3_total_changes64(database.handle()) - before;
      return {};
    });
    if (!done) return tl::make_unexpected(done.error());
    removed += static_cast<std::uint64_t>(changes);
  }
  // Gives the space back; freed pages would keep the removed answers' bytes until they are reused.
  std::int64_t left = removed > 0 ? std::numeric_limits<std::int64_t>::max() : 0;
  while (left > 0) {
    const std::int64_t before = left;
    const Result<void> done = writer_->run([&]() -> Result<void> {
      const std::string step = "PRAGMA incremental_vacuum(" + std::to_string(kVacuumPages) + ")";
      if (Result<void> outcome = database.execute(step.c_str()); !outcome) return outcome;
      const Result<std::int64_t> count = database.query_integer("PRAGMA freelist_count");
      if (!count) return tl::make_unexpected(count.error());
      left = *count;
      return {};
    });
    if (!done) return tl::make_unexpected(done.error());
    if (left >= before) break;  // other purges may add as fast as this one takes
  }
  return removed;
}

Result<StoreStats> SqliteStore::stats() {
  flush();
  Result<sqlite::ReaderPool<Reader>::Lease> reader = readers_.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  sqlite::Statement& statement = (*reader)->stats;
  const sqlite::ResetAtEnd at_end(statement);
  const Result<bool> row = statement.step();
  if (!row) return tl::make_unexpected(row.error());
  StoreStats stats;
  stats.entries = static_cast<std::uint64_t>(statement.integer(0));
  stats.bytes = static_cast<std::uint64_t>(statement.integer(1));
  stats.prompt_entries = static_cast<std::uint64_t>(statement.integer(2));
  stats.body_entries = stats.entries - stats.prompt_entries;
  stats.oldest_ms = statement.integer(3);
  stats.newest_ms = statement.integer(4);
  return stats;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteStoreOptions& options) {
  std::unique_ptr<WriteSide> write_side;
  if (!options.read_only) {
    Result<std::unique_ptr<WriteSide>> opened = open_write_side(options);
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
