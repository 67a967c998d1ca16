#include "cache/sqlite_store_file.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>

#include "cache/base/digest.hpp"
#include "cache/compression.hpp"
#include "cache/entry_codec.hpp"

namespace fixpoint::sqlite_store {
namespace {

// `entries` has the bodies: a second table for them cost every hit another B-tree descent (1.5 us
// of 11, measured with 60,000 entries of 2 KiB) and made nothing faster that the time index does
// not make faster still. That index holds all that stats() and purge() read; entries come in order
// of time, so that keeping it appends to its last page. Uses are apart: in `entries`, each would
// write a whole row, body and all.
//
// Columns that came after version 1 have defaults and stand last, as ALTER TABLE puts them: there
// is one form of the table, whichever version made the file.
constexpr const char* kVersion1 = R"sql(
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
)sql";
constexpr const char* kVersion2 = R"sql(
ALTER TABLE entries ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE entries ADD COLUMN first_token_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN total_ms INTEGER NOT NULL DEFAULT 0;
-- 0: body is as it was; else it went through zstd and became smaller by so much
ALTER TABLE entries ADD COLUMN saved_bytes INTEGER NOT NULL DEFAULT 0;
DROP INDEX entries_by_time;
CREATE INDEX entries_by_time
  ON entries(created_ms, kind, model, tenant, body_bytes, saved_bytes);
CREATE TABLE uses(
  entry INTEGER PRIMARY KEY,  -- entries.id
  used INTEGER NOT NULL,      -- WriteSide::next_use() at its last recorded use
  bytes INTEGER NOT NULL      -- of its body as stored and its material
) STRICT;
INSERT INTO uses SELECT id, created_ms, body_bytes + length(material) FROM entries;
CREATE INDEX uses_by_time ON uses(used, bytes);
)sql";
constexpr const char* kVersion3 = R"sql(
ALTER TABLE entries ADD COLUMN pace TEXT NOT NULL DEFAULT '';
)sql";
constexpr std::array kMigrations{kVersion2, kVersion3};

#define FIXPOINT_ENTRY_COLUMNS                                                               \
  "id, created_ms, first_token_ms, total_ms, endpoint, model, provider, generation, tenant," \
  " body_bytes, saved_bytes, checksum, key, material, body, pace"
constexpr const char* kSelectByKey =
    "SELECT " FIXPOINT_ENTRY_COLUMNS " FROM entries WHERE key = ?1";
constexpr const char* kSelectById = "SELECT " FIXPOINT_ENTRY_COLUMNS " FROM entries WHERE id = ?1";
#undef FIXPOINT_ENTRY_COLUMNS
constexpr const char* kStats =
    "SELECT count(*), ifnull(sum(body_bytes), 0), ifnull(sum(kind = 0), 0),"
    " ifnull(min(created_ms), 0), ifnull(max(created_ms), 0), ifnull(sum(saved_bytes), 0)"
    " FROM entries";
// NULL parameters are conditions that are not set. The first one reads the time index alone.
#define FIXPOINT_FIND                                                                           \
  "SELECT id FROM entries WHERE (?1 IS NULL OR model = ?1) AND (?2 IS NULL OR created_ms < ?2)" \
  " AND (?3 IS NULL OR tenant = ?3)"
constexpr const char* kFind = FIXPOINT_FIND;
constexpr const char* kFindByKey = FIXPOINT_FIND " AND key = ?4";
#undef FIXPOINT_FIND

// The row that `select` stands on. `key` is null when the row's own is to be taken.
Result<std::optional<Reader::Row>> read_row(const sqlite::Statement& select, const CacheKey* key) {
  auto entry = std::make_shared<Entry>();
  const std::string_view stored_key = select.bytes(12), material = select.bytes(13);
  if (key != nullptr) {
    entry->key.kind = key->kind;
    entry->key.hex = key->hex;
  } else {
    Sha256Bytes digest{};
    if (stored_key.size() != 1 + digest.size()) {
      return fail(ErrorCode::corrupt, "a stored entry has no proper key");
    }
    std::copy(stored_key.begin() + 1, stored_key.end(), digest.begin());
    entry->key.kind = stored_key[0] == 'p' ? KeyKind::prompt : KeyKind::body;
    entry->key.hex = to_hex(digest);
  }
  if (!same_material(key != nullptr ? *key : entry->key, material)) {
    return fail(ErrorCode::corrupt,
                entry->key.name() + ": the stored key material is not the request's");
  }
  entry->key.material = material;
  entry->created_ms = select.integer(1);
  entry->first_token_ms = static_cast<std::uint32_t>(select.integer(2));
  entry->total_ms = static_cast<std::uint32_t>(select.integer(3));
  entry->endpoint = select.bytes(4);
  entry->model = select.bytes(5);
  entry->provider = select.bytes(6);
  entry->generation = select.bytes(7);
  entry->tenant = select.bytes(8);
  entry->pace = select.bytes(15);
  const std::string_view body = select.bytes(14);
  if (select.integer(10) == 0) {
    entry->body = std::make_shared<const std::string>(body);
  } else {
    const std::int64_t size = select.integer(9);
    if (size < 0 || static_cast<std::uint64_t>(size) > kMaxDecodedBody) {
      return fail(ErrorCode::corrupt, entry->key.name() + ": the stored body is beyond the limit");
    }
    Result<std::string> text = decompress(body, static_cast<std::size_t>(size));
    if (!text) return fail(ErrorCode::corrupt, entry->key.name() + ": " + text.error().message);
    entry->body = std::make_shared<const std::string>(std::move(*text));
  }
  if (checksum_of(*entry) != select.bytes(11)) {
    return fail(ErrorCode::corrupt, entry->key.name() + ": the stored entry fails its checksum");
  }
  return Reader::Row{select.integer(0), std::move(entry)};
}

}  // namespace

const sqlite::Schema& schema() {
  static const std::string fresh = std::string(kVersion1) + kVersion2 + kVersion3;
  static const sqlite::Schema result{.what = "response cache",
                                     .application_id = 0x46505243,  // "FPRC"
                                     .version = 3,
                                     .sql = fresh.c_str(),
                                     .migrations = kMigrations};
  return result;
}

// SHA-256 over everything that get() hands out and does not compare: the small columns,
// length-prefixed, and the body's own SHA-256, so that the body is not copied. What older versions
// did not have is there only if it was set: their checksums stay right.
std::string checksum_of(const Entry& entry) {
  const Sha256Bytes body_digest = sha256(*entry.body);
  std::string bytes;
  const auto add = [&](std::string_view part) {
    bytes += std::to_string(part.size());
    bytes += ' ';
    bytes += part;
  };
  for (const std::string* part :
       {&entry.endpoint, &entry.model, &entry.provider, &entry.generation}) {
    add(*part);
  }
  bytes += std::to_string(entry.created_ms);
  if (!entry.tenant.empty() || entry.first_token_ms != 0 || entry.total_ms != 0) {
    bytes += ' ';
    add(entry.tenant);
    bytes += std::to_string(entry.first_token_ms) + ' ' + std::to_string(entry.total_ms) + ' ';
  }
  if (!entry.pace.empty()) {
    bytes += "pace ";
    add(entry.pace);
  }
  bytes.append(body_digest.begin(), body_digest.end());
  const Sha256Bytes digest = sha256(bytes);
  return {digest.begin(), digest.end()};
}

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

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path) {
  Result<sqlite::Database> database = sqlite::Database::open_reader(path, schema());
  if (!database) return tl::make_unexpected(std::move(database.error()));
  auto reader = std::make_unique<Reader>();
  reader->database_ = std::move(*database);
  for (const auto& [statement, sql] : {std::pair{&reader->by_key_, kSelectByKey},
                                       {&reader->by_id_, kSelectById},
                                       {&reader->stats_, kStats}}) {
    Result<void> prepared = reader->database_.prepare(*statement, sql);
    if (!prepared) return tl::make_unexpected(std::move(prepared.error()));
  }
  return reader;
}

Result<std::optional<Reader::Row>> Reader::find(const CacheKey& key, const std::string& bytes) {
  const sqlite::ResetAtEnd at_end(by_key_);
  by_key_.bind_blob(1, bytes);
  const Result<bool> row = by_key_.step();
  if (!row) return tl::make_unexpected(row.error());
  if (!*row) return std::nullopt;
  return read_row(by_key_, &key);
}

Result<std::optional<Reader::Row>> Reader::find(std::int64_t id) {
  const sqlite::ResetAtEnd at_end(by_id_);
  by_id_.bind(1, id);
  const Result<bool> row = by_id_.step();
  if (!row) return tl::make_unexpected(row.error());
  if (!*row) return std::nullopt;
  return read_row(by_id_, nullptr);
}

Result<std::vector<std::int64_t>> Reader::find_ids(const EntryFilter& filter) {
  std::string key;
  if (filter.key) {
    const Result<CacheKey> parsed = parse_key_name(*filter.key);
    if (!parsed) return tl::make_unexpected(parsed.error());
    key = *key_bytes(*parsed);
  }
  Result<sqlite::Statement> select = database_.prepare(filter.key ? kFindByKey : kFind);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  if (filter.model) select->bind_text(1, *filter.model);
  if (filter.older_than_ms) select->bind(2, *filter.older_than_ms);
  if (filter.tenant) select->bind_text(3, *filter.tenant);
  if (filter.key) select->bind_blob(4, key);
  return select->run_integers();
}

Result<StoreStats> Reader::stats() {
  const sqlite::ResetAtEnd at_end(stats_);
  const Result<bool> row = stats_.step();
  if (!row) return tl::make_unexpected(row.error());
  const auto count = [&](int column) { return static_cast<std::uint64_t>(stats_.integer(column)); };
  StoreStats stats;
  stats.entries = count(0);
  stats.bytes = count(1);
  stats.stored_bytes = stats.bytes - count(5);
  stats.prompt_entries = count(2);
  stats.body_entries = stats.entries - stats.prompt_entries;
  stats.oldest_ms = stats_.integer(3);
  stats.newest_ms = stats_.integer(4);
  return stats;
}

}  // namespace fixpoint::sqlite_store
