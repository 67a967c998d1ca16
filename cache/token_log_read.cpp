#include "cache/token_log_read.hpp"

#include <limits>
#include <optional>

#include "cache/key.hpp"
#include "cache/token_log_snapshot.hpp"
#include "cache/token_log_tokens.hpp"

namespace fixpoint {
namespace {

#define FIXPOINT_GENERATION_COLUMNS                                                               \
  "id, created_ms, key, prompt_hash, endpoint, model, requested_model, provider, route, "         \
  "fingerprint, tenant, finish_reason, sample, prompt_tokens, completion_tokens, cached_tokens, " \
  "cost_microdollars, attempts, queue_ms, first_token_ms, total_ms, logprobs_status, row"
constexpr int kRowColumn = 22, kPackedColumn = 23;

constexpr const char* kTail = "SELECT " FIXPOINT_GENERATION_COLUMNS
                              " FROM generations ORDER BY created_ms DESC, row DESC LIMIT ?1";
constexpr const char* kById =
    "SELECT " FIXPOINT_GENERATION_COLUMNS " FROM generations WHERE id = ?1";
constexpr const char* kByKey = "SELECT " FIXPOINT_GENERATION_COLUMNS
                               " FROM generations WHERE key = ?1 AND key <> ''"
                               " ORDER BY created_ms DESC, row DESC LIMIT 1";
constexpr const char* kTokens = "SELECT packed FROM tokens WHERE generation = ?1";
// The first condition is for the index; the second one passes over what was read already.
#define FIXPOINT_PAGE_CONDITIONS                              \
  " WHERE created_ms >= ?1 AND (created_ms > ?1 OR row > ?2)" \
  " AND created_ms < ?3 AND (?4 IS NULL OR model = ?4)"       \
  " AND (?5 IS NULL OR route = ?5) ORDER BY created_ms, row LIMIT ?6"
constexpr const char* kPage =
    "SELECT " FIXPOINT_GENERATION_COLUMNS ", NULL FROM generations" FIXPOINT_PAGE_CONDITIONS;
constexpr const char* kPageWithTokens =
    "SELECT " FIXPOINT_GENERATION_COLUMNS
    ", packed FROM generations LEFT JOIN tokens ON generation = row" FIXPOINT_PAGE_CONDITIONS;
constexpr std::int64_t kPageGenerations = 256;
constexpr std::size_t kPagePackedBytes = 1 << 20;
constexpr const char* kFingerprints =
    "SELECT provider, model, fingerprint, first_seen_ms, last_seen_ms, generations"
    " FROM fingerprints ORDER BY provider, model, first_seen_ms, fingerprint";

GenerationRecord record_of(const sqlite::Statement& row) {
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
  record.tenant = row.bytes(10);
  record.finish_reason = row.bytes(11);
  record.sample = static_cast<std::uint32_t>(row.integer(12));
  record.prompt_tokens = static_cast<std::uint64_t>(row.integer(13));
  record.completion_tokens = static_cast<std::uint64_t>(row.integer(14));
  record.cached_tokens = static_cast<std::uint64_t>(row.integer(15));
  if (!row.is_null(16)) record.cost_microdollars = row.integer(16);
  record.attempts = static_cast<std::uint32_t>(row.integer(17));
  record.queue_ms = row.real(18);
  record.first_token_ms = row.real(19);
  record.total_ms = row.real(20);
  record.logprobs_status = row.bytes(21);
  return record;
}

}  // namespace

Result<std::vector<GenerationRecord>> read_tail(sqlite::Database& database, std::size_t limit) {
  Result<sqlite::Statement> select = database.prepare(kTail);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  select->bind(1, static_cast<std::int64_t>(limit));
  std::vector<GenerationRecord> records;
  for (;;) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return records;
    records.push_back(record_of(*select));
  }
}

Result<GenerationRecord> read_generation(sqlite::Database& database, std::string_view id_or_key) {
  return in_snapshot(database, [&]() -> Result<GenerationRecord> {
    Result<sqlite::Statement> select = database.prepare(parse_key_name(id_or_key) ? kByKey : kById);
    if (!select) return tl::make_unexpected(std::move(select.error()));
    select->bind_text(1, id_or_key);
    const Result<bool> found = select->step();
    if (!found) return tl::make_unexpected(found.error());
    if (!*found) return fail(ErrorCode::not_found, "no generation has this id or cache key");
    GenerationRecord record = record_of(*select);

    Result<sqlite::Statement> tokens = database.prepare(kTokens);
    if (!tokens) return tl::make_unexpected(std::move(tokens.error()));
    tokens->bind(1, select->integer(kRowColumn));
    const Result<bool> any = tokens->step();
    if (!any) return tl::make_unexpected(any.error());
    if (!*any) return record;
    Result<std::vector<LoggedToken>> unpacked = unpack_tokens(tokens->bytes(0));
    if (!unpacked) return tl::make_unexpected(std::move(unpacked.error()));
    record.tokens = std::move(*unpacked);
    return record;
  });
}

Result<std::vector<GenerationRecord>> read_page(sqlite::Database& database,
                                                const GenerationFilter& filter, bool with_tokens,
                                                WalkPosition& position,
                                                const OnDamaged& on_damaged) {
  Result<sqlite::Statement> select = database.prepare(with_tokens ? kPageWithTokens : kPage);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  select->bind(1, position.created_ms);
  select->bind(2, position.row);
  select->bind(3, filter.until_ms.value_or(INT64_MAX));
  if (filter.model) select->bind_text(4, *filter.model);
  if (filter.route) select->bind_text(5, *filter.route);
  select->bind(6, kPageGenerations);
  std::vector<GenerationRecord> records;
  std::size_t packed_bytes = 0;
  while (packed_bytes < kPagePackedBytes) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) break;
    GenerationRecord record = record_of(*select);
    position = {record.created_ms, select->integer(kRowColumn)};
    const std::string_view packed = select->bytes(kPackedColumn);
    packed_bytes += packed.size();
    Result<std::vector<LoggedToken>> tokens = unpack_tokens(packed);
    if (!tokens) {
      on_damaged(record.id);
      continue;
    }
    record.tokens = std::move(*tokens);
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::vector<SeenFingerprint>> read_fingerprints(sqlite::Database& database) {
  Result<sqlite::Statement> select = database.prepare(kFingerprints);
  if (!select) return tl::make_unexpected(std::move(select.error()));
  std::vector<SeenFingerprint> seen;
  for (;;) {
    const Result<bool> row = select->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return seen;
    seen.push_back({std::string(select->bytes(0)), std::string(select->bytes(1)),
                    std::string(select->bytes(2)), select->integer(3), select->integer(4),
                    static_cast<std::uint64_t>(select->integer(5))});
  }
}

}  // namespace fixpoint
