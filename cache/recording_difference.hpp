// Why a request has no recording, in words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cache/key.hpp"

namespace fixpoint {

// Compares a key with those of recordings, given with their files' names, member by member, and
// says in which it differs from the nearest one (the one with the fewest differing members; of
// several, the first by name): "messages[1].content (recorded "a", asked "b")". What the client
// asked (CacheKey::asked) stands for what was made of it, where both have it. Looks into strings
// that hold JSON. Names five members at most, and values by 60 bytes: of two long ones those around
// the first difference. Empty when there is no recording.
std::string nearest_difference(
    const CacheKey& key, const std::vector<std::pair<std::string, const CacheKey*>>& recordings);

}  // namespace fixpoint
