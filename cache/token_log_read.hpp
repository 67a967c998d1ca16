// The token log's queries. The limits of their arguments are checked by TokenLog. Each reads one
// state of the file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"
#include "cache/token_log.hpp"

namespace fixpoint {

// Hears the id of a generation that is left out because its tokens are damaged.
using OnDamaged = std::function<void(const std::string&)>;

Result<std::vector<GenerationRecord>> read_tail(sqlite::Database& database, std::size_t limit);

// With its tokens. Errors: not_found.
Result<GenerationRecord> read_generation(sqlite::Database& database, std::string_view id_or_key);

// Where a walk over generations stands; it begins at {since, INT64_MIN}.
struct WalkPosition {
  std::int64_t created_ms, row;
  bool operator==(const WalkPosition&) const = default;
};
// The next matching generations after `position`, by (created_ms, row): at most 256, fewer when
// their tokens take more than a MiB of the file. Moves the position to the last one that it saw: it
// stays when there are no more.
Result<std::vector<GenerationRecord>> read_page(sqlite::Database& database,
                                                const GenerationFilter& filter, bool with_tokens,
                                                WalkPosition& position,
                                                const OnDamaged& on_damaged);

Result<std::vector<ThinMargin>> read_thin_margins(sqlite::Database& database,
                                                  const MarginQuery& query,
                                                  const OnDamaged& on_damaged);
Result<std::vector<MarginReport>> read_margin_report(sqlite::Database& database,
                                                     const MarginReportQuery& query,
                                                     const OnDamaged& on_damaged);
Result<std::vector<SeenFingerprint>> read_fingerprints(sqlite::Database& database);

}  // namespace fixpoint
