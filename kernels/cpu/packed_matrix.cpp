#include "kernels/cpu/packed_matrix.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/dtype.hpp"
#include "kernels/cpu/weight_memory.hpp"

namespace fixpoint::kernels {
namespace {

// Puts the block at `in`, of one stored row, into lane `lane` of a packed block.
void pack_nibbles(const std::byte* q, std::size_t lane, std::byte* words) {
  for (std::size_t t = 0; t < 4; t++) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 8; j++) word |= std::uint32_t{nibble(q, t * 8 + j)} << (4 * j);
    std::memcpy(words + t * 64 + lane * 4, &word, sizeof word);
  }
}

void pack_block(DType type, const std::byte* in, std::size_t lane, std::byte* out) {
  switch (type) {
    case DType::f32:
      std::memcpy(out + lane * 4, in, 4);
      break;
    case DType::f16:
    case DType::bf16:
      std::memcpy(out + lane * 2, in, 2);
      break;
    case DType::q8_0:
      std::memcpy(out + lane * 2, in, 2);
      for (std::size_t i = 0; i < 32; i++) out[32 + i * 16 + lane] = in[2 + i];
      break;
    case DType::q4_0:
      std::memcpy(out + lane * 2, in, 2);
      pack_nibbles(in + 2, lane, out + 32);
      break;
    case DType::q4_1:
      std::memcpy(out + lane * 2, in, 2);
      std::memcpy(out + 32 + lane * 2, in + 2, 2);
      pack_nibbles(in + 4, lane, out + 64);
      break;
    case DType::q6_k:
      break;  // sixteen packed blocks a stored one: pack_q6_k
  }
}

// Part s (16 of the 256 weights) of the stored block at `in`.
void pack_q6_k(const std::byte* in, std::size_t s, std::size_t lane, std::byte* out) {
  const auto scale = std::to_integer<std::int8_t>(in[kQ6Scales + s]);
  const float d = half_to_float(load_u16(in + kQ6D)) * static_cast<float>(scale);
  std::memcpy(out + lane * 4, &d, sizeof d);
  for (std::size_t i = 0; i < 16; i++) {
    out[64 + i * 16 + lane] = static_cast<std::byte>(q6_weight(in, s * 16 + i));
  }
}

}  // namespace

PackedMatrix PackedMatrix::pack(DType type, const std::byte* rows, std::size_t n, std::size_t k) {
  const BlockShape shape = block_shape(type);
  const std::size_t stored = row_bytes(type, block_size(type));
  const std::size_t row = row_bytes(type, k);
  PackedMatrix matrix;
  Impl& p = *matrix.impl_;
  p.type = type;
  p.n = n;
  p.k = k;
  p.groups = (n + kGroup - 1) / kGroup;
  p.blocks = k / shape.weights;
  p.memory = allocate_weights(p.groups * p.blocks * shape.bytes);
  for (std::size_t g = 0; g < p.groups; g++) {
    const std::size_t lanes = std::min(kGroup, n - g * kGroup);
    for (std::size_t b = 0; b < p.blocks; b++) {
      std::byte* out = const_cast<std::byte*>(p.block(g, b));
      for (std::size_t lane = 0; lane < lanes; lane++) {
        const std::byte* in = rows + (g * kGroup + lane) * row;
        if (type == DType::q6_k) {
          pack_q6_k(in + b / 16 * stored, b % 16, lane, out);
        } else {
          pack_block(type, in + b * stored, lane, out);
        }
      }
    }
  }
  return matrix;
}

PackedMatrix::PackedMatrix() : impl_(std::make_unique<Impl>()) {}
PackedMatrix::PackedMatrix(PackedMatrix&&) noexcept = default;
PackedMatrix& PackedMatrix::operator=(PackedMatrix&&) noexcept = default;
PackedMatrix::~PackedMatrix() = default;

std::size_t PackedMatrix::n() const {
  return impl_->n;
}
std::size_t PackedMatrix::k() const {
  return impl_->k;
}

}  // namespace fixpoint::kernels
