// Block layouts of the storage types and exact scalar conversions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu.hpp"

namespace fixpoint::kernels {

// Byte offsets inside GGUF blocks: q8_0 {f16 d; i8 q[32]}, q4_0 {f16 d; u8 q[16]},
// q4_1 {f16 d; f16 m; u8 q[16]}, q6_k {u8 ql[128]; u8 qh[64]; i8 scales[16]; f16 d}.
// A nibble byte i holds weight i (low) and weight i + 16 (high).
inline constexpr std::size_t kQ8Bytes = 34;
inline constexpr std::size_t kQ40Bytes = 18;
inline constexpr std::size_t kQ41Bytes = 20;
inline constexpr std::size_t kQ6Bytes = 210;
inline constexpr std::size_t kQ6High = 128;
inline constexpr std::size_t kQ6Scales = 192;
inline constexpr std::size_t kQ6D = 208;

inline std::uint16_t load_u16(const std::byte* p) {
  std::uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// IEEE binary16 to binary32, exact, subnormals and infinities included.
inline float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16;
  const std::uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | magnitude << 13);
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

inline float bfloat_to_float(std::uint16_t h) {
  return std::bit_cast<float>(std::uint32_t{h} << 16);
}

// Weight i (0 .. 31) of a nibble array.
inline unsigned nibble(const std::byte* q, std::size_t i) {
  const auto byte = std::to_integer<unsigned>(q[i % 16]);
  return i < 16 ? byte & 15 : byte >> 4;
}

// Weight i (0 .. 255) of a q6_k block, -32 .. 31. Its scale is scales[i / 16].
inline int q6_weight(const std::byte* block, std::size_t i) {
  const std::size_t half = i / 128, quarter = i % 128 / 32, l = i % 32;
  const auto low = std::to_integer<unsigned>(block[half * 64 + quarter % 2 * 32 + l]);
  const auto high = std::to_integer<unsigned>(block[kQ6High + half * 32 + l]);
  const unsigned four = quarter < 2 ? low & 15 : low >> 4;
  return static_cast<int>(four | (high >> (2 * quarter) & 3) << 4) - 32;
}

}  // namespace fixpoint::kernels
