// Older versions of the token log's file.
#pragma once

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"

namespace fixpoint {

// From version 2, whose fingerprints belonged to the models that answers named, to version 3, where
// they belong to those that were asked for: a restart goes on with what the tracker looks up.
inline constexpr const char* kToVersion3 = R"sql(
DELETE FROM fingerprints;
INSERT INTO fingerprints
  SELECT provider, requested_model, fingerprint, min(created_ms), max(created_ms), count(*)
  FROM generations WHERE fingerprint <> '' GROUP BY provider, requested_model, fingerprint;
)sql";

// From version 1 (one row per token, no counts, no fingerprints) to version 3, whose schema is
// `sql`. In one transaction: a process that dies in it leaves version 1. Needs the whole log's size
// once more in the write-ahead log. Errors: io, corrupt.
Result<void> migrate_version_1(sqlite::Database& database, const char* sql);

}  // namespace fixpoint
