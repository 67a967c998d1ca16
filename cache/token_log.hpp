// The token log: every generation with its tokens, log-probabilities, alternatives and margins, so
// that a coin flip can be told from a change.
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
#include "cache/fingerprints.hpp"

namespace fixpoint {

struct LoggedAlternative {
  std::optional<std::int32_t> id;
  std::string bytes;
  float logprob = 0;
};

struct LoggedToken {
  std::uint32_t choice = 0;        // index in the answer's choices
  std::uint32_t position = 0;      // in that choice
  std::optional<std::int32_t> id;  // unknown for hosted models
  std::string bytes;
  float logprob = 0;            // may be -infinity
  std::optional<float> margin;  // top-1 minus top-2; unknown with fewer than two alternatives
  std::vector<LoggedAlternative> top;  // descending
  // Bytes and ids, its own or an alternative's, were taken out before the log kept it.
  bool redacted = false;
};

struct GenerationRecord {
  std::string id;  // "gen-" + 24 hex digits, unique; also in the answer's headers
  std::int64_t created_ms = 0;
  std::string key;          // CacheKey::name(), or empty when none was made
  std::string prompt_hash;  // SHA-256 of the rendered prompt (local) or the key material (hosted)
  std::string endpoint, model, requested_model, provider, route, fingerprint;
  std::string tenant;         // id of the gateway key; empty: none is configured
  std::string finish_reason;  // of the first choice; "error: ..." when the generation failed
  std::uint32_t sample = 0;
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
  std::uint64_t cached_tokens = 0;                // of the prompt, from the provider's own cache
  std::optional<std::int64_t> cost_microdollars;  // unset: no price is configured for the model
  std::uint32_t attempts = 0;                     // calls to upstreams; 0: the local engine
  double queue_ms = 0;  // for a place at upstreams; an engine's queue is in first_token_ms
  double first_token_ms = 0, total_ms = 0;
  std::string logprobs_status;      // "captured", or "unavailable: <why>"
  std::vector<LoggedToken> tokens;  // all choices, by (choice, position)
};

// One thin margin: where a generation could have gone another way.
struct ThinMargin {
  std::string generation, model;
  std::int64_t created_ms = 0;
  LoggedToken token;
};

struct MarginQuery {
  std::optional<std::string> generation;           // id; else the time range
  std::optional<std::int64_t> since_ms, until_ms;  // since <= created < until; unset: no bound
  std::size_t limit = 20;
};

// All set conditions must hold.
struct GenerationFilter {
  std::optional<std::int64_t> since_ms, until_ms;  // since <= created < until
  std::optional<std::string> model, route;         // equal to these
};

// Margins in nats below which the report counts tokens: at 0.01 the two likeliest are as good as
// equal, at 0.1 the second has 90 % of the first's probability, at 1.0 37 %.
constexpr float kMarginSteps[] = {0.01F, 0.1F, 1.0F};

// How often the generations of one model on one route could have gone another way.
struct MarginReport {
  std::string model, route;  // empty where the report is not by this
  std::uint64_t generations = 0;
  std::uint64_t tokens = 0;            // logged ones
  std::uint64_t with_margin = 0;       // of those
  std::uint64_t below[3] = {0, 0, 0};  // kMarginSteps; each counts those of the one before, too
  std::vector<ThinMargin> thinnest;
};

struct MarginReportQuery {
  GenerationFilter filter;
  bool by_model = true, by_route = true;
  std::size_t examples = 3;  // of each group, at most kMaxExamples
};

struct TokenLogOptions {
  std::string path;        // its directory exists; `<path>.lock` appears beside it
  bool read_only = false;  // tools; append() drops and counts
  std::size_t max_queue_bytes = 64u << 20;
  // Of the file. When it is larger the oldest generations go; those that come while it is a quarter
  // larger (and 4 MiB) are dropped and counted.
  std::uint64_t max_bytes = 8ull << 30;
  std::chrono::milliseconds max_age{0};  // older generations go; 0: never
  bool keep_text = true;                 // false: no text and no id of any token is kept
  std::vector<std::string> redact;       // PCRE2 patterns: see redaction.hpp
  // Hears of every write and checkpoint that failed, on a thread of the log's. May be empty.
  std::function<void(const Error&)> on_write_error;
  // Hears the id of every generation that a query over several leaves out because its tokens are
  // damaged, during that query. May be empty.
  std::function<void(const std::string&)> on_damaged;
};

// Since the log was opened.
struct TokenLogCounters {
  std::uint64_t written = 0;            // generations
  std::uint64_t failed = 0;             // generations that were dropped: queue, disk, id taken
  std::uint64_t removed = 0;            // generations, by retention
  std::uint64_t redacted_tokens = 0;    // lost their text or that of an alternative
  std::uint64_t redaction_gave_up = 0;  // choices redacted as a whole: a pattern's limit
};

// Thread-safe. Writes go through one writer thread in group commits; a generation is on disk at
// most 50 ms (plus the commit) after append() returned, and is lost only if the process dies in
// between. Redaction runs on that thread too, before anything touches the disk, and so
// does retention, a few generations at a time.
class TokenLog {
 public:
  static constexpr std::size_t kMaxRows = 10'000;  // that one query may ask for
  static constexpr std::size_t kMaxExamples = 100;
  static constexpr std::size_t kMaxFingerprints = 20'000;  // rows; those seen last stay

  // One process at a time may have a file open for writing. A file of an older version is migrated
  // when it is opened for writing. Errors: as open_sqlite_store(); invalid for a pattern of
  // `redact`.
  static Result<std::unique_ptr<TokenLog>> open(const TokenLogOptions& options);
  ~TokenLog();

  // Returns at once. Dropped (and counted) when the queue is full, the disk refuses, or the id is
  // taken.
  void append(GenerationRecord record);
  // Newest first, without tokens. Errors: invalid (limit beyond kMaxRows), io, corrupt.
  Result<std::vector<GenerationRecord>> tail(std::size_t limit);
  // By generation id, or by cache key name: the newest generation made for it. Errors: not_found.
  Result<GenerationRecord> show(std::string_view id_or_key);
  // Calls visit with every matching generation, oldest first; false from it ends the walk. A few
  // hundred are in memory at a time, fewer with many tokens, and the file is not held while visit
  // runs: generations that come or go meanwhile may be seen or not.
  Result<void> for_each(const GenerationFilter& filter, bool with_tokens,
                        const std::function<bool(const GenerationRecord&)>& visit);
  // Thinnest first; equal ones by time, then by choice and position. Tokens without a margin are
  // not listed. A generation that does not exist is not_found; a range without one is empty.
  Result<std::vector<ThinMargin>> thin_margins(const MarginQuery& query);
  // Most tokens first. Reads one row per generation, whose counts were made when it was written:
  // no tokens but the examples'. Errors: invalid (more than kMaxRows groups).
  Result<std::vector<MarginReport>> margin_report(const MarginReportQuery& query);
  // By provider and model, then by first sight.
  Result<std::vector<SeenFingerprint>> fingerprints();

  // Removes what max_age and max_bytes no longer allow, and waits for it. The log does so by itself
  // every minute and whenever it has grown. Returns the number of generations.
  Result<std::uint64_t> enforce_retention();
  void flush();  // waits until everything appended before is on disk (or failed)
  std::uint64_t failed_writes() const { return counters().failed; }
  TokenLogCounters counters() const;

 private:
  struct Impl;
  explicit TokenLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint
