// The token log: every generation with its tokens, log-probabilities, alternatives and margins, so
// that a coin flip can be told from a change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"

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
};

struct GenerationRecord {
  std::string id;  // "gen-" + 24 hex digits, unique; also in the answer's headers
  std::int64_t created_ms = 0;
  std::string key;          // CacheKey::name(), or empty when none was made
  std::string prompt_hash;  // SHA-256 of the rendered prompt (local) or the key material (hosted)
  std::string endpoint, model, requested_model, provider, route, fingerprint;
  std::string finish_reason;  // of the first choice; "error: ..." when the generation failed
  std::uint32_t sample = 0;
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
  double queue_ms = 0, first_token_ms = 0, total_ms = 0;
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

struct TokenLogOptions {
  std::string path;        // its directory exists; `<path>.lock` appears beside it
  bool read_only = false;  // tools; append() drops and counts
  std::size_t max_queue_bytes = 64u << 20;
  std::uint64_t max_file_bytes = 64ull << 30;  // beyond it new generations are dropped and counted
  // Hears of every write and checkpoint that failed, on the writer's thread. May be empty.
  std::function<void(const Error&)> on_write_error;
};

// Thread-safe. Writes go through one writer thread in group commits; a generation is on disk at
// most 50 ms (plus the commit) after append() returned, and is lost only if the process dies in
// between.
class TokenLog {
 public:
  static constexpr std::size_t kMaxRows = 10'000;  // that one query may ask for

  // One process at a time may have a file open for writing. Errors: as open_sqlite_store().
  static Result<std::unique_ptr<TokenLog>> open(const TokenLogOptions& options);
  ~TokenLog();

  // Returns at once. Dropped (and counted) when the queue is full, the disk refuses, or the id is
  // taken.
  void append(GenerationRecord record);
  // Newest first, without tokens. Errors: invalid (limit beyond kMaxRows), io, corrupt.
  Result<std::vector<GenerationRecord>> tail(std::size_t limit);
  // By generation id, or by cache key name: the newest generation made for it. Errors: not_found.
  Result<GenerationRecord> show(std::string_view id_or_key);
  // Thinnest first; equal ones by time, then by choice and position. Tokens without a margin are
  // not listed. A generation that does not exist is not_found; a range without one is empty.
  Result<std::vector<ThinMargin>> thin_margins(const MarginQuery& query);
  void flush();  // waits until everything appended before is on disk (or failed)
  std::uint64_t failed_writes() const;

 private:
  struct Impl;
  explicit TokenLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint
