#include "cache/token_log_migration.hpp"

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "cache/token_log_tokens.hpp"

namespace fixpoint {
namespace {

// The index names are wanted again.
constexpr const char* kSetAside = R"sql(
DROP INDEX generations_by_time;
DROP INDEX generations_by_key;
ALTER TABLE generations RENAME TO generations_1;
ALTER TABLE tokens RENAME TO tokens_1;
)sql";

constexpr const char* kCopyGeneration = R"sql(
INSERT INTO generations SELECT
  row, id, created_ms, key, prompt_hash, endpoint, model, requested_model, provider, route,
  fingerprint, '', finish_reason, sample, prompt_tokens, completion_tokens, 0, NULL, 0, queue_ms,
  first_token_ms, total_ms, logprobs_status, ?2, ?3, ?4, ?5, ?6, min_margin
FROM generations_1 WHERE row = ?1
)sql";

constexpr const char* kFinish = R"sql(
DROP TABLE generations_1;
DROP TABLE tokens_1;
PRAGMA user_version=3;
)sql";

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Each alternative: u8 1 if it has an id; i32 id (0 without); the f32 log-probability's bits; u32
// length; the bytes. All little-endian.
Result<std::vector<LoggedAlternative>> read_alternatives(std::string_view bytes) {
  constexpr std::size_t kHeaderBytes = 1 + 3 * 4;
  std::vector<LoggedAlternative> alternatives;
  while (!bytes.empty()) {
    if (bytes.size() < kHeaderBytes || static_cast<unsigned char>(bytes[0]) > 1) {
      return fail(ErrorCode::corrupt, "tokens.top: not a list of alternatives");
    }
    LoggedAlternative& alternative = alternatives.emplace_back();
    if (bytes[0] == '\1') alternative.id = static_cast<std::int32_t>(read_u32(bytes.substr(1)));
    alternative.logprob = std::bit_cast<float>(read_u32(bytes.substr(5)));
    const std::size_t length = read_u32(bytes.substr(9));
    bytes.remove_prefix(kHeaderBytes);
    if (length > bytes.size()) {
      return fail(ErrorCode::corrupt, "tokens.top: an alternative is cut");
    }
    alternative.bytes = bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
  return alternatives;
}

// Columns: choice, position, id, bytes, logprob, margin, top.
Result<LoggedToken> read_token(const sqlite::Statement& row) {
  LoggedToken token;
  token.choice = static_cast<std::uint32_t>(row.integer(0));
  token.position = static_cast<std::uint32_t>(row.integer(1));
  if (!row.is_null(2)) token.id = static_cast<std::int32_t>(row.integer(2));
  token.bytes = row.bytes(3);
  token.logprob =
      row.is_null(4) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(row.real(4));
  if (!row.is_null(5)) token.margin = static_cast<float>(row.real(5));
  Result<std::vector<LoggedAlternative>> top = read_alternatives(row.bytes(6));
  if (!top) return tl::make_unexpected(std::move(top.error()));
  token.top = std::move(*top);
  return token;
}

// Takes each generation's rows away as it packs them, so that the file hardly grows.
class Migration {
 public:
  static Result<void> run(sqlite::Database& database) {
    Migration migration;
    for (const auto& [statement, sql] :
         {std::pair{&migration.generations_, "SELECT row FROM generations_1 ORDER BY row"},
          {&migration.tokens_,
           "SELECT choice, position, id, bytes, logprob, margin, top FROM tokens_1"
           " WHERE generation = ?1 ORDER BY choice, position"},
          {&migration.copy_generation_, kCopyGeneration},
          {&migration.insert_tokens_, "INSERT INTO tokens VALUES(?1, ?2)"},
          {&migration.delete_tokens_, "DELETE FROM tokens_1 WHERE generation = ?1"}}) {
      if (Result<void> prepared = database.prepare(*statement, sql); !prepared) return prepared;
    }
    for (;;) {
      const Result<bool> row = migration.generations_.step();
      if (!row) return tl::make_unexpected(row.error());
      if (!*row) return {};
      const std::int64_t generation = migration.generations_.integer(0);
      if (Result<void> done = migration.move_one(generation); !done) return done;
    }
  }

 private:
  Result<void> move_one(std::int64_t generation) {
    Result<std::vector<LoggedToken>> tokens = tokens_of(generation);
    if (!tokens) return tl::make_unexpected(std::move(tokens.error()));
    const MarginCounts counts = count_margins(*tokens);
    copy_generation_.bind(1, generation);
    copy_generation_.bind(2, counts.tokens);
    copy_generation_.bind(3, counts.with_margin);
    for (int i = 0; i < 3; ++i) copy_generation_.bind(4 + i, counts.below[i]);
    if (Result<void> done = copy_generation_.run(); !done) return done;
    if (tokens->empty()) return {};
    const std::string packed = pack_tokens(*tokens);
    insert_tokens_.bind(1, generation);
    insert_tokens_.bind_blob(2, packed);
    if (Result<void> done = insert_tokens_.run(); !done) return done;
    delete_tokens_.bind(1, generation);
    return delete_tokens_.run();
  }

  Result<std::vector<LoggedToken>> tokens_of(std::int64_t generation) {
    const sqlite::ResetAtEnd at_end(tokens_);
    tokens_.bind(1, generation);
    std::vector<LoggedToken> tokens;
    for (;;) {
      const Result<bool> row = tokens_.step();
      if (!row) return tl::make_unexpected(row.error());
      if (!*row) return tokens;
      Result<LoggedToken> token = read_token(tokens_);
      if (!token) return tl::make_unexpected(std::move(token.error()));
      tokens.push_back(std::move(*token));
    }
  }

  sqlite::Statement generations_, tokens_, copy_generation_, insert_tokens_, delete_tokens_;
};

}  // namespace

Result<void> migrate_version_1(sqlite::Database& database, const char* sql) {
  Result<void> done = database.execute("BEGIN IMMEDIATE");
  if (!done) return done;
  done = database.execute(kSetAside);
  if (done) done = database.execute(sql);
  if (done) done = Migration::run(database);
  if (done) done = database.execute(kToVersion3);
  if (done) done = database.execute(kFinish);
  if (done) done = database.execute("COMMIT");
  if (!done) {
    sqlite3_exec(database.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    return done;
  }
  // The writer's thread, which checkpoints later, has not begun.
  return database.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace fixpoint
