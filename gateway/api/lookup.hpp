// Asks the cache for a request's answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

struct Gateway;

struct Lookup {
  EntryPtr entry;                // null: none, or one that is too old for this request
  std::string forward = "miss";  // RFC 9211's fwd parameter, and detail
  bool failed = false;           // the store could not say; counted as a miss, and marked
  bool unwanted = false;  // what the store has is too old or damaged: a new answer replaces it
  bool at_once = true;    // the store answered without a suspension
};

// What an entry must not be older than.
struct Freshness {
  std::chrono::milliseconds ttl{0};       // 0: any age
  std::optional<std::int64_t> max_age_s;  // the request's
};

// The value of an answer's Age: whole seconds since it was made (RFC 9111).
std::string age_of(const Entry& entry);

// Suspends only for stores that answer from elsewhere. Precondition: there is a store.
Task<Lookup> look_up(Gateway& gateway, const CacheKey& key, Freshness freshness);

}  // namespace fixpoint
