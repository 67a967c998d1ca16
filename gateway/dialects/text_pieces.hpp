// Dealing a whole text out over the events of a stream. Inside this folder.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/dialects/json_access.hpp"

namespace fixpoint::dialects {

// Small: as a model would send it. Whole: at once, for an answer that is only passing through the
// form of a stream.
enum class Pieces { small, whole };

// Pieces of whole UTF-8 characters, views into `text`; none of an empty one.
std::vector<std::string_view> pieces_of(std::string_view text, Pieces size);

// One piece per token, each with its entry, where the tokens of `entries` (an array of {token,
// logprob, ...}) spell the text exactly and it is wanted in small pieces; else none.
std::vector<std::pair<std::string_view, const Json*>> token_pieces(std::string_view text,
                                                                   const Json* entries,
                                                                   Pieces size);

}  // namespace fixpoint::dialects
