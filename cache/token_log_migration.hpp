// Version 1 of the token log's file: one row per token, no counts, no fingerprints.
#pragma once

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"

namespace fixpoint {

// In one transaction: a process that dies in it leaves version 1. Needs the whole log's size once
// more in the write-ahead log. Errors: io, corrupt.
Result<void> migrate_token_log(sqlite::Database& database, const char* version_2_sql);

}  // namespace fixpoint
