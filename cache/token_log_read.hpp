// The token log's queries. The limits of their arguments are checked by TokenLog. Each reads one
// state of the file.
#pragma once

#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"
#include "cache/token_log.hpp"

namespace fixpoint {

Result<std::vector<GenerationRecord>> read_tail(sqlite::Database& database, std::size_t limit);

// With its tokens. Errors: not_found.
Result<GenerationRecord> read_generation(sqlite::Database& database, std::string_view id_or_key);

// Where a walk over generations stands.
struct WalkPosition {
  std::int64_t created_ms = INT64_MIN, row = INT64_MIN;
};
// The next matching generations after `position`, by (created_ms, row): at most 256, fewer when
// their tokens take more than a MiB of the file. Moves the position to the last one. Empty: no
// more.
Result<std::vector<GenerationRecord>> read_page(sqlite::Database& database,
                                                const GenerationFilter& filter, bool with_tokens,
                                                WalkPosition& position);

Result<std::vector<ThinMargin>> read_thin_margins(sqlite::Database& database,
                                                  const MarginQuery& query);
Result<std::vector<MarginReport>> read_margin_report(sqlite::Database& database,
                                                     const MarginReportQuery& query);
Result<std::vector<SeenFingerprint>> read_fingerprints(sqlite::Database& database);

}  // namespace fixpoint
