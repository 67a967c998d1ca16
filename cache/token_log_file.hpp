// The token log's SQLite file: its schema, and how it is opened.
#pragma once

#include <cstdint>
#include <string>

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"

namespace fixpoint {

// Version 3, or created with it. max_bytes bounds the file: a write beyond it fails. A file of an
// older version is migrated first, in one transaction. Errors: as Database::open_writer().
Result<sqlite::Database> open_token_log_writer(const std::string& path, std::uint64_t max_bytes);

// Errors: as Database::open_reader(); invalid for a file of an older version, which only a writer
// migrates.
Result<sqlite::Database> open_token_log_reader(const std::string& path);

}  // namespace fixpoint
