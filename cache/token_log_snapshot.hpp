// Several queries over one state of a file.
#pragma once

#include <utility>

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"

namespace fixpoint {

// What `query` returns, a Result; it runs in one read transaction. Its statements must be gone when
// it returns.
template <class Query>
auto in_snapshot(sqlite::Database& database, Query query) -> decltype(query()) {
  if (Result<void> begun = database.execute("BEGIN", "reading"); !begun) {
    return tl::make_unexpected(std::move(begun.error()));
  }
  auto outcome = query();
  if (Result<void> ended = database.execute("COMMIT", "reading"); !ended) {
    return tl::make_unexpected(std::move(ended.error()));
  }
  return outcome;
}

}  // namespace fixpoint
