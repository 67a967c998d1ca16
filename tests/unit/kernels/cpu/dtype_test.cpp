#include "kernels/cpu/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/unit/kernels/support.hpp"

namespace fixpoint::kernels {
namespace {

std::vector<float> dequantise(DType type, const std::vector<std::uint8_t>& block) {
  std::vector<float> out(block_size(type));
  dequantise_row(type, reinterpret_cast<const std::byte*>(block.data()), out.size(), out.data());
  return out;
}

TEST(DType, Sizes) {
  EXPECT_EQ(row_bytes(DType::f32, 5), 20u);
  EXPECT_EQ(row_bytes(DType::f16, 5), 10u);
  EXPECT_EQ(row_bytes(DType::bf16, 5), 10u);
  EXPECT_EQ(row_bytes(DType::q8_0, 64), 68u);
  EXPECT_EQ(row_bytes(DType::q4_0, 64), 36u);
  EXPECT_EQ(row_bytes(DType::q4_1, 64), 40u);
  EXPECT_EQ(row_bytes(DType::q6_k, 512), 420u);
}

TEST(DType, HalvesAreExact) {
  for (std::uint32_t h = 0; h < 0x10000; h++) {
    const auto half = static_cast<std::uint16_t>(h);
    const int exponent = (half >> 10 & 31), mantissa = half & 1023;
    const float value = half_to_float(half);
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), mantissa != 0);
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(static_cast<double>(value), (half & 0x8000) ? -magnitude : magnitude) << h;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << h;
  }
  EXPECT_EQ(half_to_float(0x7c00), std::numeric_limits<float>::infinity());
}

TEST(DType, Q4BlocksKeepLowNibblesFirst) {
  std::vector<std::uint8_t> block = {0x00, 0x3c, 0x00, 0x40};  // d = 1, m = 2
  for (unsigned i = 0; i < 16; i++) block.push_back(static_cast<std::uint8_t>(i | (15 - i) << 4));
  const auto q4_1 = dequantise(DType::q4_1, block);
  block.erase(block.begin() + 2, block.begin() + 4);
  const auto q4_0 = dequantise(DType::q4_0, block);
  for (int i = 0; i < 16; i++) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(q4_1[at], static_cast<float>(i + 2));
    EXPECT_EQ(q4_1[at + 16], static_cast<float>(15 - i + 2));
    EXPECT_EQ(q4_0[at], static_cast<float>(i - 8));
    EXPECT_EQ(q4_0[at + 16], static_cast<float>(15 - i - 8));
  }
  EXPECT_FALSE(std::signbit(q4_0[8]));  // a zero weight is +0
}

TEST(DType, Q8Block) {
  std::vector<std::uint8_t> block = {0x00, 0x38};  // d = 0.5
  for (int i = 0; i < 32; i++) block.push_back(static_cast<std::uint8_t>(i * 8 - 128));
  const auto values = dequantise(DType::q8_0, block);
  for (int i = 0; i < 32; i++) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)], 0.5f * static_cast<float>(i * 8 - 128));
  }
}

TEST(DType, Q6BlockPutsEachWeightWhereTheFormatSays) {
  // Weight i gets q = (i * 7) % 64, scale i / 16 + 1, d = 2.
  std::vector<std::uint8_t> block(kQ6Bytes);
  for (std::size_t i = 0; i < 256; i++) {
    const unsigned q = i * 7 % 64;
    const std::size_t half = i / 128, within = i % 128;
    // The first 64 weights of a half lie in low nibbles, the others in high ones.
    block[half * 64 + within % 64] |= static_cast<std::uint8_t>((q & 15) << (within < 64 ? 0 : 4));
    block[kQ6High + half * 32 + within % 32] |=
        static_cast<std::uint8_t>((q >> 4) << (within / 32 * 2));
  }
  for (std::size_t s = 0; s < 16; s++) block[kQ6Scales + s] = static_cast<std::uint8_t>(s + 1);
  block[kQ6D + 1] = 0x40;
  const auto values = dequantise(DType::q6_k, block);
  for (int i = 0; i < 256; i++) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)],
              2.0f * static_cast<float>(i / 16 + 1) * static_cast<float>(i * 7 % 64 - 32))
        << i;
  }
}

TEST(DType, Bfloat) {
  EXPECT_EQ(dequantise(DType::bf16, {0xc0, 0xbf})[0], -1.5f);
  EXPECT_EQ(dequantise(DType::f16, {0x00, 0xbe})[0], -1.5f);
}

}  // namespace
}  // namespace fixpoint::kernels
