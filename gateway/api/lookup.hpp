// Asks the cache for a request's answer.
#pragma once

#include <string>

#include "cache/entry.hpp"
#include "gateway/api/plan.hpp"
#include "gateway/http/types.hpp"

namespace fixpoint {

struct Gateway;

struct Lookup {
  EntryPtr entry;                // null: none, or one that is too old for this request
  std::string forward = "miss";  // RFC 9211's fwd parameter, and detail
  bool failed = false;           // the store could not say; counted as a miss, and marked
  bool at_once = true;           // the store answered without a suspension
};

// Suspends only for stores that answer from elsewhere.
Task<Lookup> look_up(Gateway& gateway, const Plan& plan);

}  // namespace fixpoint
