#include "cache/token_log.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "cache/key.hpp"
#include "cache/sqlite/database.hpp"
#include "cache/sqlite/reader_pool.hpp"
#include "cache/sqlite/writer.hpp"
#include "cache/token_alternatives.hpp"

namespace fixpoint {
namespace {

// Generations get their indexes at once (one row each, and show() would read the whole table
// without them). Tokens, hundreds per generation, get none: their primary key follows the insertion
// order, so that writing appends, and reading one generation is one range. min_margin makes the
// thinnest margins of a range cheap: see kThinInRange.
constexpr sqlite::Schema kSchema{.what = "token log",
                                 .application_id = 0x4650544C,  // "FPTL"
                                 .version = 1,
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
  finish_reason TEXT NOT NULL,
  sample INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  queue_ms REAL,
  first_token_ms REAL,
  total_ms REAL,
  logprobs_status TEXT NOT NULL,
  min_margin REAL) STRICT;   -- of its tokens; NULL: none has a margin
CREATE INDEX generations_by_time ON generations(created_ms);
CREATE INDEX generations_by_key ON generations(key) WHERE key <> '';
CREATE TABLE tokens(
  generation INTEGER NOT NULL,  -- generations.row
  choice INTEGER NOT NULL,
  position INTEGER NOT NULL,
  id INTEGER,
  bytes BLOB NOT NULL,
  logprob REAL,                 -- NULL: NaN, which SQLite cannot hold
  margin REAL,
  top BLOB NOT NULL,            -- encode_alternatives()
  PRIMARY KEY(generation, choice, position)) STRICT, WITHOUT ROWID;
)sql"};

#define FIXPOINT_GENERATION_COLUMNS                                                       \
  "id, created_ms, key, prompt_hash, endpoint, model, requested_model, provider, route, " \
  "fingerprint, finish_reason, sample, prompt_tokens, completion_tokens, queue_ms, "      \
  "first_token_ms, total_ms, logprobs_status"
#define FIXPOINT_TOKEN_COLUMNS "choice, position, t.id, bytes, logprob, margin, top"

constexpr const char* kInsertGeneration =
    "INSERT INTO generations(" FIXPOINT_GENERATION_COLUMNS
    ", min_margin) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)";
constexpr const char* kInsertToken = "INSERT INTO tokens VALUES(?1,?2,?3,?4,?5,?6,?7,?8)";
constexpr const char* kTail = "SELECT " FIXPOINT_GENERATION_COLUMNS
                              " FROM generations ORDER BY created_ms DESC, row DESC LIMIT ?1";
constexpr const char* kById =
    "SELECT " FIXPOINT_GENERATION_COLUMNS ", row FROM generations WHERE id = ?1";
constexpr const char* kByKey = "SELECT " FIXPOINT_GENERATION_COLUMNS
                               ", row FROM generations WHERE key = ?1 AND key <> ''"
                               " ORDER BY created_ms DESC, row DESC LIMIT 1";
constexpr const char* kTokens = "SELECT " FIXPOINT_TOKEN_COLUMNS
                                " FROM tokens t WHERE generation = ?1 ORDER BY choice, position";
// The n thinnest tokens lie in the n generations with the least min_margin (each of those has at
// least one token before any token of another generation, in this very order), so only their tokens
// are read.
constexpr const char* kThinInRange =
    "SELECT " FIXPOINT_TOKEN_COLUMNS
    ", g.id, g.model, g.created_ms FROM"
    " (SELECT row, id, model, created_ms FROM generations"
    "  WHERE created_ms >= ?1 AND created_ms < ?2 AND min_margin IS NOT NULL"
    "  ORDER BY min_margin, created_ms, row LIMIT ?3) g"
    " JOIN tokens t ON t.generation = g.row WHERE margin IS NOT NULL"
    " ORDER BY margin, g.created_ms, g.row, choice, position LIMIT ?3";
constexpr const char* kThinInGeneration =
    "SELECT " FIXPOINT_TOKEN_COLUMNS
    ", g.id, g.model, g.created_ms FROM generations g JOIN tokens t ON t.generation = g.row"
    " WHERE g.id = ?1 AND margin IS NOT NULL ORDER BY margin, choice, position LIMIT ?2";

GenerationRecord read_generation(const sqlite::Statement& row) {
  GenerationRecord record;
  record.id = row.bytes(0);
  record.created_ms = row.integer(1);
  record.key = row.bytes(2);
  record.prompt_hash = row.bytes(3);
  record.endpoint = row.bytes(4);
  record.model = row.bytes(5);
  record.requested_model = row.bytes(6);
  record.provider = row.bytes(7);
  record.route = row.bytes(8);
  record.fingerprint = row.bytes(9);
  record.finish_reason = row.bytes(10);
  record.sample = static_cast<std::uint32_t>(row.integer(11));
  record.prompt_tokens = static_cast<std::uint64_t>(row.integer(12));
  record.completion_tokens = static_cast<std::uint64_t>(row.integer(13));
  record.queue_ms = row.real(14);
  record.first_token_ms = row.real(15);
  record.total_ms = row.real(16);
  record.logprobs_status = row.bytes(17);
  return record;
}

Result<LoggedToken> read_token(const sqlite::Statement& row) {
  LoggedToken token;
  token.choice = static_cast<std::uint32_t>(row.integer(0));
  token.position = static_cast<std::uint32_t>(row.integer(1));
  if (!row.is_null(2)) token.id = static_cast<std::int32_t>(row.integer(2));
  token.bytes = row.bytes(3);
  token.logprob =
      row.is_null(4) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(row.real(4));
  if (!row.is_null(5)) token.margin = static_cast<float>(row.real(5));
  Result<std::vector<LoggedAlternative>> top = decode_alternatives(row.bytes(6));
  if (!top) return tl::make_unexpected(std::move(top.error()));
  token.top = std::move(*top);
  return token;
}

std::optional<float> thinnest(const std::vector<LoggedToken>& tokens) {
  std::optional<float> least;
  for (const LoggedToken& token : tokens) {
    if (!token.margin || std::isnan(*token.margin)) continue;
    least = least ? std::min(*least, *token.margin) : *token.margin;
  }
  return least;
}

std::size_t size_in_queue(const GenerationRecord& record) {
  std::size_t bytes = sizeof(record);
  for (const std::string* text :
       {&record.id, &record.key, &record.prompt_hash, &record.endpoint, &record.model,
        &record.requested_model, &record.provider, &record.route, &record.fingerprint,
        &record.finish_reason, &record.logprobs_status}) {
    bytes += text->size();
  }
  for (const LoggedToken& token : record.tokens) {
    bytes += sizeof(token) + token.bytes.size();
    for (const LoggedAlternative& other : token.top) bytes += sizeof(other) + other.bytes.size();
  }
  return bytes;
}

struct WriteSide {
  sqlite::Database database;
  sqlite::Statement insert_generation, insert_token;
};

Result<std::unique_ptr<WriteSide>> open_write_side(const TokenLogOptions& options) {
  Result<sqlite::Database> database =
      sqlite::Database::open_writer(options.path, kSchema, options.max_file_bytes);
  if (!database) return tl::make_unexpected(std::move(database.error()));
  Result<sqlite::Statement> generation = database->prepare(kInsertGeneration);
  if (!generation) return tl::make_unexpected(std::move(generation.error()));
  Result<sqlite::Statement> token = database->prepare(kInsertToken);
  if (!token) return tl::make_unexpected(std::move(token.error()));
  return std::make_unique<WriteSide>(
      WriteSide{std::move(*database), std::move(*generation), std::move(*token)});
}

Result<void> check_limit(std::size_t limit) {
  if (limit <= TokenLog::kMaxRows) return {};
  return fail(ErrorCode::invalid, "limit: " + std::to_string(limit) + " rows, at most " +
                                      std::to_string(TokenLog::kMaxRows));
}

}  // namespace

struct TokenLog::Impl {
  explicit Impl(const TokenLogOptions& options)
      : readers([path = options.path]() -> Result<std::unique_ptr<sqlite::Database>> {
          Result<sqlite::Database> database = sqlite::Database::open_reader(path, kSchema);
          if (!database) return tl::make_unexpected(std::move(database.error()));
          return std::make_unique<sqlite::Database>(std::move(*database));
        }) {}

  Result<void> write(const GenerationRecord& record);

  std::unique_ptr<WriteSide>
      write_side;  // closed after the readers: the last to leave removes the log
  sqlite::ReaderPool<sqlite::Database> readers;
  std::atomic<std::uint64_t> refused = 0;  // appends to a read-only log
  std::unique_ptr<sqlite::Writer> writer;  // last: its thread uses the above
};

TokenLog::TokenLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenLog::~TokenLog() = default;

Result<std::unique_ptr<TokenLog>> TokenLog::open(const TokenLogOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (!options.read_only) {
    Result<std::unique_ptr<WriteSide>> opened = open_write_side(options);
    if (!opened) return tl::make_unexpected(std::move(opened.error()));
    impl->write_side = std::move(*opened);
    impl->writer = std::make_unique<sqlite::Writer>(
        impl->write_side->database, options.max_queue_bytes, options.on_write_error);
  }
  {
    auto reader = impl->readers.acquire();
    if (!reader) return tl::make_unexpected(std::move(reader.error()));
  }
  return std::unique_ptr<TokenLog>(new TokenLog(std::move(impl)));
}

void TokenLog::append(GenerationRecord record) {
  if (!impl_->writer) {
    ++impl_->refused;
    return;
  }
  const std::size_t bytes = size_in_queue(record);
  const auto shared = std::make_shared<const GenerationRecord>(std::move(record));
  impl_->writer->submit(
      bytes, [impl = impl_.get(), shared] { return impl->write(*shared); }, nullptr);
}

Result<void> TokenLog::Impl::write(const GenerationRecord& record) {
  sqlite::Statement& row = write_side->insert_generation;
  row.bind_text(1, record.id);
  row.bind(2, record.created_ms);
  row.bind_text(3, record.key);
  row.bind_text(4, record.prompt_hash);
  row.bind_text(5, record.endpoint);
  row.bind_text(6, record.model);
  row.bind_text(7, record.requested_model);
  row.bind_text(8, record.provider);
  row.bind_text(9, record.route);
  row.bind_text(10, record.fingerprint);
  row.bind_text(11, record.finish_reason);
  row.bind(12, static_cast<std::int64_t>(record.sample));
  row.bind(13, static_cast<std::int64_t>(record.prompt_tokens));
  row.bind(14, static_cast<std::int64_t>(record.completion_tokens));
  row.bind(15, record.queue_ms);
  row.bind(16, record.first_token_ms);
  row.bind(17, record.total_ms);
  row.bind_text(18, record.logprobs_status);
  if (const std::optional<float> least = thinnest(record.tokens)) row.bind(19, double{*least});
  if (Result<void> done = row.run(); !done) return done;

  const std::int64_t generation = sqlite3_last_insert_rowid(write_side->database.handle());
  sqlite::Statement& insert = write_side->insert_token;
  for (const LoggedToken& token : record.tokens) {
    const std::string top = encode_alternatives(token.top);
    insert.bind(1, generation);
    insert.bind(2, static_cast<std::int64_t>(token.choice));
    insert.bind(3, static_cast<std::int64_t>(token.position));
    if (token.id) insert.bind(4, static_cast<std::int64_t>(*token.id));
    insert.bind_blob(5, token.bytes);
    insert.bind(6, double{token.logprob});
    if (token.margin) insert.bind(7, double{*token.margin});
    insert.bind_blob(8, top);
    if (Result<void> done = insert.run(); !done) return done;
  }
  return {};
}

Result<std::vector<GenerationRecord>> TokenLog::tail(std::size_t limit) {
  if (Result<void> checked = check_limit(limit); !checked) {
    return tl::make_unexpected(std::move(checked.error()));
  }
  auto reader = impl_->readers.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  Result<sqlite::Statement> select = (*reader)->prepare(kTail);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  select->bind(1, static_cast<std::int64_t>(limit));
  std::vector<GenerationRecord> records;
  for (;;) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return records;
    records.push_back(read_generation(*select));
  }
}

Result<GenerationRecord> TokenLog::show(std::string_view id_or_key) {
  auto reader = impl_->readers.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  // One transaction over both queries, so that they see one state.
  if (Result<void> begun = (*reader)->execute("BEGIN"); !begun) {
    return tl::make_unexpected(std::move(begun.error()));
  }
  Result<GenerationRecord> record = [&]() -> Result<GenerationRecord> {
    Result<sqlite::Statement> select =
        (*reader)->prepare(parse_key_name(id_or_key) ? kByKey : kById);
    if (!select) return tl::make_unexpected(std::move(select.error()));
    select->bind_text(1, id_or_key);
    const Result<bool> found = select->step();
    if (!found) return tl::make_unexpected(found.error());
    if (!*found) {
      return fail(ErrorCode::not_found, "no generation has this id or cache key");
    }
    GenerationRecord generation = read_generation(*select);
    Result<sqlite::Statement> tokens = (*reader)->prepare(kTokens);
    if (!tokens) return tl::make_unexpected(std::move(tokens.error()));
    tokens->bind(1, select->integer(18));
    for (;;) {
      const Result<bool> row = tokens->step();
      if (!row) return tl::make_unexpected(row.error());
      if (!*row) return generation;
      Result<LoggedToken> token = read_token(*tokens);
      if (!token) return tl::make_unexpected(std::move(token.error()));
      generation.tokens.push_back(std::move(*token));
    }
  }();
  if (Result<void> ended = (*reader)->execute("COMMIT"); !ended) {
    return tl::make_unexpected(std::move(ended.error()));
  }
  return record;
}

Result<std::vector<ThinMargin>> TokenLog::thin_margins(const MarginQuery& query) {
  if (Result<void> checked = check_limit(query.limit); !checked) {
    return tl::make_unexpected(std::move(checked.error()));
  }
  auto reader = impl_->readers.acquire();
  if (!reader) return tl::make_unexpected(std::move(reader.error()));
  const auto limit = static_cast<std::int64_t>(query.limit);
  Result<sqlite::Statement> select =
      (*reader)->prepare(query.generation ? kThinInGeneration : kThinInRange);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  if (query.generation) {
    Result<sqlite::Statement> exists = (*reader)->prepare(kById);
    if (!exists) return tl::make_unexpected(std::move(exists.error()));
    exists->bind_text(1, *query.generation);
    const Result<bool> row = exists->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return fail(ErrorCode::not_found, "no generation has this id");
    select->bind_text(1, *query.generation);
    select->bind(2, limit);
  } else {
    select->bind(1, query.since_ms.value_or(std::numeric_limits<std::int64_t>::min()));
    select->bind(2, query.until_ms.value_or(std::numeric_limits<std::int64_t>::max()));
    select->bind(3, limit);
  }
  std::vector<ThinMargin> margins;
  for (;;) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return margins;
    Result<LoggedToken> token = read_token(*select);
    if (!token) return tl::make_unexpected(std::move(token.error()));
    margins.push_back({std::string(select->bytes(7)), std::string(select->bytes(8)),
                       select->integer(9), std::move(*token)});
  }
}

void TokenLog::flush() {
  if (impl_->writer) impl_->writer->flush();
}

std::uint64_t TokenLog::failed_writes() const {
  return impl_->refused + (impl_->writer ? impl_->writer->failed() : 0);
}

}  // namespace fixpoint
