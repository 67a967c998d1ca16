// EntryFilter for stores that hold their entries in memory.
#pragma once

#include <utility>

#include "cache/store.hpp"

namespace fixpoint {

// An EntryFilter that was checked.
class EntryMatcher {
 public:
  static Result<EntryMatcher> of(const EntryFilter& filter) {
    EntryMatcher matcher(filter);
    if (!filter.key) return matcher;
    Result<CacheKey> key = parse_key_name(*filter.key);
    if (!key) return tl::make_unexpected(std::move(key.error()));
    matcher.key_ = std::move(*key);
    return matcher;
  }
  bool operator()(const Entry& entry) const {
    return (!filter_.key || (key_.hex == entry.key.hex && key_.kind == entry.key.kind)) &&
           (!filter_.model || *filter_.model == entry.model) &&
           (!filter_.tenant || *filter_.tenant == entry.tenant) &&
           (!filter_.older_than_ms || entry.created_ms < *filter_.older_than_ms);
  }

 private:
  explicit EntryMatcher(EntryFilter filter) : filter_(std::move(filter)) {}
  EntryFilter filter_;
  CacheKey key_;
};

}  // namespace fixpoint
