#include "cache/token_log_write.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "cache/token_log_file.hpp"

namespace fixpoint {
namespace {

constexpr const char* kInsertGeneration =
    "INSERT INTO generations(id, created_ms, key, prompt_hash, endpoint, model, requested_model,"
    " provider, route, fingerprint, tenant, finish_reason, sample, prompt_tokens,"
    " completion_tokens, cached_tokens, cost_microdollars, attempts, queue_ms, first_token_ms,"
    " total_ms, logprobs_status, tokens, with_margin, below_001, below_01, below_1, min_margin)"
    " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,"
    "?24,?25,?26,?27,?28)";
constexpr const char* kInsertTokens = "INSERT INTO tokens VALUES(?1, ?2)";
// Appends may come out of order, by a little.
constexpr const char* kInsertFingerprint =
    "INSERT INTO fingerprints VALUES(?1, ?2, ?3, ?4, ?4, 1) ON CONFLICT DO UPDATE SET"
    " first_seen_ms = min(first_seen_ms, excluded.first_seen_ms),"
    " last_seen_ms = max(last_seen_ms, excluded.last_seen_ms), generations = generations + 1";
#define FIXPOINT_ROWS                                                                 \
  "SELECT row, ifnull((SELECT length(packed) FROM tokens WHERE generation = row), 0)" \
  " FROM generations"
constexpr const char* kTooOld =
    FIXPOINT_ROWS " WHERE created_ms < ?2 ORDER BY created_ms, row LIMIT ?1";
// Not by their times: a clock that was ahead for an hour would leave generations that no later one
// outlasts, for as long as it was ahead.
constexpr const char* kOldest = FIXPOINT_ROWS " ORDER BY row LIMIT ?1";
#undef FIXPOINT_ROWS
constexpr const char* kDeleteGeneration = "DELETE FROM generations WHERE row = ?1";
constexpr const char* kDeleteTokens = "DELETE FROM tokens WHERE generation = ?1";

// Of a generation's row and its places in the indexes.
constexpr std::size_t kRowBytes = 512;

// Both in bytes.
struct FileSize {
  std::uint64_t file = 0, free = 0;
};

Result<FileSize> size_of(sqlite::Database& database) {
  FileSize size;
  const Result<std::int64_t> page = database.query_integer("PRAGMA page_size");
  for (const auto& [bytes, sql] : {std::pair{&size.file, "PRAGMA page_count"},
                                   std::pair{&size.free, "PRAGMA freelist_count"}}) {
    const Result<std::int64_t> pages = database.query_integer(sql);
    if (!page || !pages) return tl::make_unexpected(page ? pages.error() : page.error());
    *bytes = static_cast<std::uint64_t>(*pages * *page);
  }
  return size;
}

}  // namespace

Result<TokenLogWriteSide> TokenLogWriteSide::open(const TokenLogOptions& options) {
  const std::uint64_t slack = std::max<std::uint64_t>(options.max_bytes / 4, 4 << 20);
  Result<sqlite::Database> database =
      open_token_log_writer(options.path, options.max_bytes + slack);
  if (!database) return tl::make_unexpected(std::move(database.error()));
  TokenLogWriteSide side(std::move(*database), options);
  for (const auto& [statement, sql] : {std::pair{&side.insert_generation_, kInsertGeneration},
                                       {&side.insert_tokens_, kInsertTokens},
                                       {&side.insert_fingerprint_, kInsertFingerprint},
                                       {&side.too_old_, kTooOld},
                                       {&side.oldest_, kOldest},
                                       {&side.delete_generation_, kDeleteGeneration},
                                       {&side.delete_tokens_, kDeleteTokens}}) {
    if (Result<void> prepared = side.database_.prepare(*statement, sql); !prepared) {
      return tl::make_unexpected(std::move(prepared.error()));
    }
  }
  return side;
}

Result<void> TokenLogWriteSide::insert(const GenerationRecord& record, const std::string& packed,
                                       const MarginCounts& counts) {
  sqlite::Statement& row = insert_generation_;
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
  row.bind_text(11, record.tenant);
  row.bind_text(12, record.finish_reason);
  row.bind(13, static_cast<std::int64_t>(record.sample));
  row.bind(14, static_cast<std::int64_t>(record.prompt_tokens));
  row.bind(15, static_cast<std::int64_t>(record.completion_tokens));
  row.bind(16, static_cast<std::int64_t>(record.cached_tokens));
  if (record.cost_microdollars) row.bind(17, *record.cost_microdollars);
  row.bind(18, static_cast<std::int64_t>(record.attempts));
  row.bind(19, record.queue_ms);
  row.bind(20, record.first_token_ms);
  row.bind(21, record.total_ms);
  row.bind_text(22, record.logprobs_status);
  row.bind(23, counts.tokens);
  row.bind(24, counts.with_margin);
  for (int i = 0; i < 3; ++i) row.bind(25 + i, counts.below[i]);
  if (counts.least) row.bind(28, double{*counts.least});
  if (Result<void> done = row.run(); !done) return done;

  if (!packed.empty()) {
    insert_tokens_.bind(1, std::int64_t{sqlite3_last_insert_rowid(database_.handle())});
    insert_tokens_.bind_blob(2, packed);
    if (Result<void> done = insert_tokens_.run(); !done) return done;
  }
  if (!record.fingerprint.empty()) {
    insert_fingerprint_.bind_text(1, record.provider);
    insert_fingerprint_.bind_text(2, record.requested_model);
    insert_fingerprint_.bind_text(3, record.fingerprint);
    insert_fingerprint_.bind(4, record.created_ms);
    if (Result<void> done = insert_fingerprint_.run(); !done) return done;
  }
  growth_ += kRowBytes + packed.size();
  return {};
}

Result<TokenLogWriteSide::Step> TokenLogWriteSide::retain(std::int64_t now_ms) {
  const Result<FileSize> before = size_of(database_);
  if (!before) return tl::make_unexpected(before.error());
  // A sixteenth below, so that the file with its free pages stays under the limit while it fills.
  const std::uint64_t used = before->file - before->free, wanted = max_bytes_ - max_bytes_ / 16;
  Step step;
  const bool too_many = used > wanted;
  if (!too_many) {
    too_old_.bind(2, max_age_.count() > 0 ? now_ms - max_age_.count()
                                          : std::numeric_limits<std::int64_t>::min());
  }
  const Result<std::uint64_t> removed =
      too_many ? remove(oldest_, used - wanted)
               : remove(too_old_, std::numeric_limits<std::uint64_t>::max());
  if (!removed) return tl::make_unexpected(removed.error());
  if (*removed > 0) return Step{*removed, true};

  // Free pages are for the next generations: giving them back copies as many pages from the file's
  // end. A file that is too large, or an eighth empty and by more than a MiB, gives them back.
  const auto wasteful = [&](const FileSize& size) {
    return size.free > 0 &&
           (size.file > max_bytes_ || (size.free > (1 << 20) && size.free > size.file / 8));
  };
  if (wasteful(*before)) {
    const std::string vacuum = "PRAGMA incremental_vacuum(" + std::to_string(kStepPages) + ")";
    if (Result<void> done = database_.execute(vacuum.c_str()); !done) {
      return tl::make_unexpected(std::move(done.error()));
    }
    const Result<FileSize> after = size_of(database_);
    if (!after) return tl::make_unexpected(after.error());
    // A file that somebody rebuilt without auto_vacuum does not shrink: no reason to go on for
    // ever.
    step.more = after->file < before->file && wasteful(*after);
    if (step.more) return step;
  }
  if (Result<void> done = forget_fingerprints(); !done) {
    return tl::make_unexpected(std::move(done.error()));
  }
  return step;
}

Result<std::uint64_t> TokenLogWriteSide::remove(sqlite::Statement& select, std::uint64_t bytes) {
  std::vector<std::int64_t> rows;
  {
    const sqlite::ResetAtEnd at_end(select);
    select.bind(1, std::int64_t{kStepGenerations});
    for (std::uint64_t found = 0; found < bytes;) {
      const Result<bool> row = select.step();
      if (!row) return tl::make_unexpected(row.error());
      if (!*row) break;
      rows.push_back(select.integer(0));
      found += kRowBytes + static_cast<std::uint64_t>(select.integer(1));
    }
  }
  for (const std::int64_t row : rows) {
    for (sqlite::Statement* statement : {&delete_tokens_, &delete_generation_}) {
      statement->bind(1, row);
      if (Result<void> done = statement->run(); !done) {
        return tl::make_unexpected(std::move(done.error()));
      }
    }
  }
  return rows.size();
}

Result<void> TokenLogWriteSide::forget_fingerprints() {
  const Result<std::int64_t> rows = database_.query_integer("SELECT count(*) FROM fingerprints");
  if (!rows) return tl::make_unexpected(rows.error());
  if (*rows <= static_cast<std::int64_t>(TokenLog::kMaxFingerprints)) return {};
  const std::string forget =
      "DELETE FROM fingerprints WHERE (provider, model, fingerprint) IN"
      " (SELECT provider, model, fingerprint FROM fingerprints ORDER BY last_seen_ms DESC"
      " LIMIT -1 OFFSET " +
      std::to_string(TokenLog::kMaxFingerprints) + ")";
  return database_.execute(forget.c_str());
}

}  // namespace fixpoint
