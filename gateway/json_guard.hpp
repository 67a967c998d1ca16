// JSON from a peer as a tree, within limits that are held while it is read: trees are copied and
// printed by recursion, and a few bytes of text are many of a tree.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint {

struct JsonLimits {
  std::size_t depth = 128;  // at most JsonScanner::kMaxDepth
  std::size_t members_per_object = 1024;
  std::size_t members = 100'000;   // of all objects together
  std::size_t values = 1'000'000;  // of all kinds together
};

// Answers of upstreams, which max_response_bytes bounds: embeddings are arrays of numbers, and
// log-probabilities have dozens of members a token.
inline constexpr JsonLimits kAnswerLimits{128, 100'000, 4'000'000, 16'000'000};

// Errors: invalid, for what is no JSON (or has a number beyond a double) and for each limit, by
// name.
Result<nlohmann::ordered_json> parse_json(std::string_view text, const JsonLimits& limits = {});
// An upstream's answer, within kAnswerLimits. Models may write half of a surrogate pair, as JSON's
// grammar allows: it is read as U+FFFD, and `exact` becomes false (never true).
Result<nlohmann::ordered_json> parse_answer(std::string_view text, bool* exact = nullptr);

}  // namespace fixpoint
