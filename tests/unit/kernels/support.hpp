// What the kernels' tests share: inputs, a comparison of bits, and a loop over instruction sets.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu.hpp"
#include "kernels/cpu/dtype.hpp"
#include "kernels/cpu/targets.hpp"

// After targets.hpp, which says what is compiled.
#include <hwy/targets.h>

namespace fixpoint::kernels::test {

inline constexpr float kUnset = -12345.0f;

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

// A positive, normal half near 2^exponent.
inline std::uint16_t random_half(std::mt19937& generator, int exponent) {
  return static_cast<std::uint16_t>((exponent + 15) << 10 | (generator() & 1023));
}

// n stored rows of random weights, about unit size.
inline std::vector<std::byte> random_rows(DType type, std::size_t n, std::size_t k, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> rows(n * row_bytes(type, k));
  for (std::byte& byte : rows) byte = static_cast<std::byte>(generator());
  const std::size_t block = row_bytes(type, block_size(type));
  for (std::size_t at = 0; at < rows.size(); at += block) {
    std::byte* p = rows.data() + at;
    std::uint16_t d = random_half(generator, -5);
    const auto m = static_cast<std::uint16_t>(random_half(generator, -2) | 0x8000);
    switch (type) {
      case DType::f32: {
        const float value = std::normal_distribution<float>()(generator);
        std::memcpy(p, &value, 4);
        break;
      }
      case DType::f16:  // subnormal halves now and then
        d = static_cast<std::uint16_t>(
            random_half(generator, static_cast<int>(generator() % 20) - 15) | (generator() & 1)
                                                                                  << 15);
        std::memcpy(p, &d, 2);
        break;
      case DType::bf16:
        d = static_cast<std::uint16_t>((generator() & 0x80ff) | 0x3f00);
        std::memcpy(p, &d, 2);
        break;
      case DType::q6_k:
        d = random_half(generator, -10);
        std::memcpy(p + kQ6D, &d, 2);
        break;
      case DType::q4_1:
        std::memcpy(p + 2, &m, 2);
        [[fallthrough]];
      case DType::q8_0:
      case DType::q4_0:
        std::memcpy(p, &d, 2);
        break;
    }
  }
  return rows;
}

// Equal bit by bit; the message names the first difference.
inline testing::AssertionResult same_bits(std::span<const float> actual,
                                          std::span<const float> expected) {
  if (actual.size() != expected.size()) {
    return testing::AssertionFailure() << actual.size() << " values, not " << expected.size();
  }
  for (std::size_t i = 0; i < actual.size(); i++) {
    const auto a = std::bit_cast<std::uint32_t>(actual[i]);
    const auto b = std::bit_cast<std::uint32_t>(expected[i]);
    if (a != b) {
      return testing::AssertionFailure()
             << "value " << i << " of " << actual.size() << " is " << actual[i] << " (0x"
             << std::hex << a << "), not " << expected[i] << " (0x" << b << ")";
    }
  }
  return testing::AssertionSuccess();
}

// Runs `test` once per instruction set that is compiled in and that this CPU has.
template <class Test>
void for_each_target(const Test& test) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GE(targets.size(), 1u);
  for (const std::int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    test();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
}

inline std::string name(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::q8_0:
      return "q8_0";
    case DType::q4_0:
      return "q4_0";
    case DType::q4_1:
      return "q4_1";
    case DType::q6_k:
      return "q6_k";
  }
  return "?";
}

inline constexpr DType kAllTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                      DType::q4_0, DType::q4_1, DType::q6_k};

}  // namespace fixpoint::kernels::test
