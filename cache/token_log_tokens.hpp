// The tokens of one generation as bytes, the form in which the token log keeps them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/token_log.hpp"

namespace fixpoint {

// One string for a whole generation: a row for each token made writing a generation of 64 tokens
// cost several times as much, most of it SQLite's work per row. Binary and not JSON: token bytes
// need not be UTF-8, log-probabilities keep their bits (infinities and NaN too), and no query looks
// inside. Per token:
//
//   u8     flags: 1 has an id, 2 has a margin, 4 redacted,
//          8 follows the token before it: same choice, next position (the first follows 0, -1)
//   [varint choice, varint position]   without flag 8
//   [varint id, zigzag]
//   f32    log-probability             little-endian, as all f32
//   [f32   margin]
//   varint length, the bytes
//   varint number of alternatives, each: u8 1 if it has an id; [varint id, zigzag]; f32
//          log-probability; varint length, the bytes
//
// A varint has seven bits per byte, the lowest first; the eighth bit says that another byte
// follows. A margin that is NaN is no margin.
std::string pack_tokens(const std::vector<LoggedToken>& tokens);

// Errors: corrupt.
Result<std::vector<LoggedToken>> unpack_tokens(std::string_view bytes);

// What the report and the thinnest-margin query need to know of a generation without its tokens.
struct MarginCounts {
  std::int64_t tokens = 0, with_margin = 0;
  std::int64_t below[3] = {0, 0, 0};  // kMarginSteps
  std::optional<float> least;         // none has a margin
};
MarginCounts count_margins(const std::vector<LoggedToken>& tokens);

}  // namespace fixpoint
