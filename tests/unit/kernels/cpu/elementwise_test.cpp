#include <gtest/gtest.h>

#include "kernels/cpu/reference.hpp"
#include "tests/unit/kernels/support.hpp"

namespace fixpoint::kernels {
namespace {

using test::for_each_target;
using test::random_floats;
using test::same_bits;

constexpr std::size_t kCounts[] = {1, 15, 16, 17, 100, 1537};

TEST(SiluMul, EqualsTheReferenceForAnyShare) {
  for (const std::size_t count : kCounts) {
    const auto gate = random_floats(count, 1, 20.0f), up = random_floats(count, 2);
    auto expected = gate;
    reference::silu_mul(expected.data(), up.data(), count);
    for_each_target([&] {
      for (int size = 1; size <= 5; size++) {
        auto actual = gate;
        for (int r = 0; r < size; r++) silu_mul(actual.data(), up.data(), count, {r, size});
        EXPECT_TRUE(same_bits(actual, expected)) << count << " by " << size;
      }
    });
  }
}

TEST(SiluMul, FarInputsSaturate) {
  std::vector<float> gate = {-200.0f, 200.0f, 0.0f, -0.0f};
  const std::vector<float> up = {1, 1, 1, 1};
  silu_mul(gate.data(), up.data(), gate.size(), {});
  EXPECT_EQ(gate, (std::vector<float>{-0.0f, 200.0f, 0.0f, 0.0f}));
}

TEST(Add, EqualsTheReferenceForAnyShare) {
  for (const std::size_t count : kCounts) {
    const auto x = random_floats(count, 3), y = random_floats(count, 4);
    auto expected = x;
    reference::add(expected.data(), y.data(), count);
    for_each_target([&] {
      for (int size = 1; size <= 5; size++) {
        auto actual = x;
        for (int r = 0; r < size; r++) add(actual.data(), y.data(), count, {r, size});
        EXPECT_TRUE(same_bits(actual, expected)) << count << " by " << size;
      }
    });
  }
}

}  // namespace
}  // namespace fixpoint::kernels
