// How an operation is cut between the threads of a team.
#pragma once

#include <cstddef>

#include "kernels/cpu.hpp"

namespace fixpoint::kernels {

struct Range {
  std::size_t begin, end;
};

// The share's part of [0, count), in runs of `grain` items so that threads do not meet in a cache
// line. Parts differ by one grain at most.
inline Range cut(std::size_t count, std::size_t grain, Share share) {
  const std::size_t grains = (count + grain - 1) / grain;
  const auto rank = static_cast<std::size_t>(share.rank);
  const auto size = static_cast<std::size_t>(share.size);
  const auto at = [&](std::size_t i) {
    const std::size_t item = grains * i / size * grain;
    return item < count ? item : count;
  };
  return {at(rank), at(rank + 1)};
}

}  // namespace fixpoint::kernels
