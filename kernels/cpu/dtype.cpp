#include "kernels/cpu/dtype.hpp"

#include <cmath>

namespace fixpoint::kernels {

std::size_t block_size(DType type) {
  switch (type) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return 1;
    case DType::q8_0:
    case DType::q4_0:
    case DType::q4_1:
      return 32;
    case DType::q6_k:
      return 256;
  }
  return 1;
}

std::size_t row_bytes(DType type, std::size_t k) {
  switch (type) {
    case DType::f32:
      return k * 4;
    case DType::f16:
    case DType::bf16:
      return k * 2;
    case DType::q8_0:
      return k / 32 * kQ8Bytes;
    case DType::q4_0:
      return k / 32 * kQ40Bytes;
    case DType::q4_1:
      return k / 32 * kQ41Bytes;
    case DType::q6_k:
      return k / 256 * kQ6Bytes;
  }
  return 0;
}

namespace {

void dequantise_q8_0(const std::byte* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (std::size_t i = 0; i < 32; i++) {
    out[i] = d * static_cast<float>(std::to_integer<std::int8_t>(block[2 + i]));
  }
}

void dequantise_q4(const std::byte* q, float d, float m, float* out) {
  for (std::size_t i = 0; i < 32; i++) out[i] = std::fma(d, static_cast<float>(nibble(q, i)), m);
}

void dequantise_q6_k(const std::byte* block, float* out) {
  const float d = half_to_float(load_u16(block + kQ6D));
  for (std::size_t i = 0; i < 256; i++) {
    const auto scale = std::to_integer<std::int8_t>(block[kQ6Scales + i / 16]);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q6_weight(block, i));
  }
}

}  // namespace

void dequantise_row(DType type, const std::byte* row, std::size_t k, float* out) {
  const std::size_t block_weights = block_size(type);
  const std::size_t block_bytes = row_bytes(type, block_weights);
  for (std::size_t i = 0; i < k; i += block_weights, row += block_bytes, out += block_weights) {
    switch (type) {
      case DType::f32:
        std::memcpy(out, row, sizeof(float));
        break;
      case DType::f16:
        *out = half_to_float(load_u16(row));
        break;
      case DType::bf16:
        *out = bfloat_to_float(load_u16(row));
        break;
      case DType::q8_0:
        dequantise_q8_0(row, out);
        break;
      case DType::q4_0: {
        // d (q - 8), which is exact; as one fma a zero weight is always +0.
        const float d = half_to_float(load_u16(row));
        dequantise_q4(row + 2, d, d * -8.0f, out);
        break;
      }
      case DType::q4_1:
        dequantise_q4(row + 4, half_to_float(load_u16(row)), half_to_float(load_u16(row + 2)), out);
        break;
      case DType::q6_k:
        dequantise_q6_k(row, out);
        break;
    }
  }
}

}  // namespace fixpoint::kernels
