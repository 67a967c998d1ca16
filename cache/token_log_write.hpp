// The writing side of the token log: one generation, one step of retention. Everything here runs
// inside a transaction on the writer's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"
#include "cache/token_log_tokens.hpp"

namespace fixpoint {

class TokenLogWriteSide {
 public:
  // Errors: as open_token_log_writer().
  static Result<TokenLogWriteSide> open(const TokenLogOptions& options);

  // `packed` and `counts` are those of the record's tokens.
  Result<void> insert(const GenerationRecord& record, const std::string& packed,
                      const MarginCounts& counts);

  struct Step {
    std::uint64_t removed = 0;  // generations
    bool more = false;          // there is more to do
  };
  // Removes at most kStepGenerations of the generations that were written first, where they are too
  // many, or of those that are too old at `now_ms`, and no more than are too many; when there are
  // none, gives at most kStepPages free pages back to the file system.
  Result<Step> retain(std::int64_t now_ms);

  // Bytes that insert() took since the last call, about.
  std::uint64_t take_growth() { return std::exchange(growth_, 0); }
  std::uint64_t growth() const { return growth_; }

  sqlite::Database& database() { return database_; }

 private:
  static constexpr int kStepGenerations = 64;
  static constexpr int kStepPages = 256;  // of 16 KiB

  TokenLogWriteSide(sqlite::Database database, const TokenLogOptions& options)
      : database_(std::move(database)), max_bytes_(options.max_bytes), max_age_(options.max_age) {}

  // The selected generations, until they make up so many bytes; at most kStepGenerations. Returns
  // how many.
  Result<std::uint64_t> remove(sqlite::Statement& select, std::uint64_t bytes);
  Result<void> forget_fingerprints();

  sqlite::Database database_;  // outlives its statements
  sqlite::Statement insert_generation_, insert_tokens_, insert_fingerprint_;
  sqlite::Statement too_old_, oldest_, delete_generation_, delete_tokens_;
  std::uint64_t max_bytes_;
  std::chrono::milliseconds max_age_;
  std::uint64_t growth_ = 0;
};

}  // namespace fixpoint
