// How weights lie in memory: groups of 16 output columns, so that a lane is a column.
//
// A group's weights are cut along k into blocks; blocks of kInterleave neighbouring groups lie side
// by side, so that the kernel for one row reads one stream. In a block, after the scales of its 16
// columns, weights lie so that one load gives 16 columns (or fewer, aligned within the 16):
//   f32, f16, bf16  one k: the 16 columns' values
//   q8_0            32 k: f16 d[16]; i8 q[32][16]
//   q4_0            32 k: f16 d[16]; u32 word[4][16]; word t holds k = 8t + j at nibble j
//   q4_1            32 k: f16 d[16]; f16 m[16]; words as q4_0
//   q6_k            16 k: f32 scale[16] = d * scale, rounded once; i8 q[16][16]
// Columns beyond n are zero.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/cpu.hpp"

namespace fixpoint::kernels {

inline constexpr std::size_t kGroup = 16;
inline constexpr std::size_t kInterleave = 6;

struct BlockShape {
  std::size_t weights;  // along k
  std::size_t bytes;    // of 16 columns
};

constexpr BlockShape block_shape(DType type) {
  switch (type) {
    case DType::f32:
      return {1, 64};
    case DType::f16:
    case DType::bf16:
      return {1, 32};
    case DType::q8_0:
      return {32, 32 + 512};
    case DType::q4_0:
      return {32, 32 + 256};
    case DType::q4_1:
      return {32, 64 + 256};
    case DType::q6_k:
      return {16, 64 + 256};
  }
  return {1, 64};
}

struct PackedMatrix::Impl {
  DType type = DType::f32;
  std::size_t n = 0, k = 0;
  std::size_t groups = 0;  // ceil(n / 16)
  std::size_t blocks = 0;  // of a group
  std::shared_ptr<std::byte> memory;

  // Groups that lie side by side where group g lies.
  std::size_t width(std::size_t g) const {
    const std::size_t left = groups - g / kInterleave * kInterleave;
    return left < kInterleave ? left : kInterleave;
  }
  // Block b of group g; the group's next block is width(g) blocks further.
  const std::byte* block(std::size_t g, std::size_t b) const {
    const std::size_t index =
        g / kInterleave * kInterleave * blocks + b * width(g) + g % kInterleave;
    return memory.get() + index * block_shape(type).bytes;
  }
};

}  // namespace fixpoint::kernels
