#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/reference.hpp"
#include "tests/unit/kernels/support.hpp"

namespace fixpoint::kernels {
namespace {

using test::for_each_target;
using test::kUnset;
using test::random_floats;
using test::same_bits;

std::vector<float> frequencies(std::size_t count) {
  std::vector<float> f(count);
  for (std::size_t i = 0; i < count; i++) {
    f[i] =
        static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(count)));
  }
  return f;
}

TEST(RopeTable, EqualsTheReferenceAndIsAccurate) {
  for (const std::size_t count : {1, 5, 16, 32, 33}) {
    const auto f = frequencies(count);
    for (const std::size_t position : {0, 1, 63, 2100, 131071, 1048576}) {
      std::vector<float> expected(2 * count);
      reference::rope_table(position, f, expected.data());
      for_each_target([&] {
        std::vector<float> actual(2 * count, kUnset);
        rope_table(position, f, actual.data());
        EXPECT_TRUE(same_bits(actual, expected)) << position;
      });
      for (std::size_t i = 0; i < count; i++) {
        const float angle = static_cast<float>(position) * f[i];
        EXPECT_NEAR(expected[2 * i], std::cos(static_cast<double>(angle)), 1e-7);
        EXPECT_NEAR(expected[2 * i + 1], std::sin(static_cast<double>(angle)), 1e-7);
      }
    }
  }
}

TEST(Rope, EqualsTheReferenceForAnyShare) {
  const std::size_t m = 5, heads = 3;
  for (const auto pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (const auto& dims :
         {std::pair<std::size_t, std::size_t>{64, 64}, {64, 32}, {10, 6}, {128, 128}, {66, 66}}) {
      const std::size_t head_dim = dims.first, rotary_dim = dims.second;
      std::vector<std::vector<float>> tables(m, std::vector<float>(rotary_dim));
      std::vector<const float*> pointers;
      for (std::size_t r = 0; r < m; r++) {
        rope_table(r * 100 + 3, frequencies(rotary_dim / 2), tables[r].data());
        pointers.push_back(tables[r].data());
      }
      const auto x = random_floats(m * heads * head_dim, 1);
      auto expected = x;
      reference::rope(expected.data(), pointers.data(), m, heads, head_dim, rotary_dim, pairing);
      for_each_target([&] {
        for (int size = 1; size <= 5; size++) {
          auto actual = x;
          for (int r = 0; r < size; r++) {
            rope(actual.data(), pointers.data(), m, heads, head_dim, rotary_dim, pairing,
                 {r, size});
          }
          EXPECT_TRUE(same_bits(actual, expected)) << head_dim << " by " << size;
        }
      });
    }
  }
}

TEST(Rope, RotatesPairs) {
  const std::vector<float> quarter = {0, 1, 0, 1};  // cos 0, sin 1
  const float* table = quarter.data();
  std::vector<float> x = {1, 2, 3, 4}, y = x;
  rope(x.data(), &table, 1, 1, 4, 4, RopePairing::adjacent, {});
  EXPECT_EQ(x, (std::vector<float>{-2, 1, -4, 3}));
  rope(y.data(), &table, 1, 1, 4, 4, RopePairing::halves, {});
  EXPECT_EQ(y, (std::vector<float>{-3, -4, 1, 2}));
}

}  // namespace
}  // namespace fixpoint::kernels
