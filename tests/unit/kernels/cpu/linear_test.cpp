#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/reference.hpp"
#include "tests/unit/kernels/support.hpp"

namespace fixpoint::kernels {
namespace {

using test::for_each_target;
using test::kUnset;
using test::random_floats;
using test::random_rows;
using test::same_bits;

constexpr std::size_t kRows[] = {1, 2, 3, 7, 8, 16, 33, 64, 129};

// More than one panel's depth and no multiple of it, where the type allows.
std::size_t test_k(DType type) {
  return block_size(type) == 256 ? 512 : block_size(type) == 32 ? 288 : 263;
}

std::vector<float> run_linear(const PackedMatrix& w, std::span<const float> x, std::size_t m,
                              int size) {
  std::vector<float> y(m * w.n() + 16, kUnset);  // 16 more: writes behind the end would show
  for (int rank = 0; rank < size; rank++) linear(w, x.data(), y.data(), m, {rank, size});
  for (std::size_t i = m * w.n(); i < y.size(); i++) EXPECT_EQ(y[i], kUnset) << "overrun";
  y.resize(m * w.n());
  return y;
}

class LinearOfType : public testing::TestWithParam<DType> {};

TEST_P(LinearOfType, EqualsTheReferenceForAllRowsAndColumns) {
  const DType type = GetParam();
  const std::size_t k = test_k(type);
  for (const std::size_t n : {1, 7, 16, 17, 100}) {
    SCOPED_TRACE(n);
    const auto rows = random_rows(type, n, k, 1);
    const auto w = PackedMatrix::pack(type, rows.data(), n, k);
    ASSERT_EQ(w.n(), n);
    ASSERT_EQ(w.k(), k);
    const auto x = random_floats(129 * k, 2);
    std::vector<float> expected(129 * n);
    reference::linear(type, rows.data(), n, k, x.data(), expected.data(), 129);
    for_each_target([&] {
      for (const std::size_t m : kRows) {
        EXPECT_TRUE(same_bits(run_linear(w, x, m, 1), std::span(expected).first(m * n))) << m;
      }
    });
  }
}

TEST_P(LinearOfType, SharesAndRowsDoNotChangeBits) {
  const DType type = GetParam();
  const std::size_t k = test_k(type), n = 209;
  const auto rows = random_rows(type, n, k, 3);
  const auto w = PackedMatrix::pack(type, rows.data(), n, k);
  const auto x = random_floats(129 * k, 4);
  for_each_target([&] {
    std::vector<float> alone;
    for (std::size_t r = 0; r < 129; r += 4) {
      const auto y = run_linear(w, std::span(x).subspan(r * k, k), 1, 1);
      alone.insert(alone.end(), y.begin(), y.end());
    }
    for (const std::size_t m :
         {std::size_t{1}, std::size_t{5}, std::size_t{13}, std::size_t{129}}) {
      for (int size = 1; size <= 5; size++) {
        const auto y = run_linear(w, x, m, size);
        for (std::size_t r = 0; r < m; r += 4) {
          EXPECT_TRUE(
              same_bits(std::span(y).subspan(r * n, n), std::span(alone).subspan(r / 4 * n, n)))
              << "row " << r << " of " << m << ", " << size << " shares";
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, LinearOfType, testing::ValuesIn(test::kAllTypes),
                         [](const auto& instance) { return test::name(instance.param); });

TEST(Linear, ModelShapesAreEqualOnAllTargets) {
  const std::size_t n = 576, k = 1536;
  const auto rows = random_rows(DType::q4_1, n, k, 5);
  const auto w = PackedMatrix::pack(DType::q4_1, rows.data(), n, k);
  const auto x = random_floats(20 * k, 6);
  std::vector<float> expected(20 * n);
  reference::linear(DType::q4_1, rows.data(), n, k, x.data(), expected.data(), 20);
  for_each_target([&] {
    EXPECT_TRUE(same_bits(run_linear(w, x, 1, 2), std::span(expected).first(n)));
    EXPECT_TRUE(same_bits(run_linear(w, x, 20, 3), expected));
  });
}

TEST(Linear, RandomShapes) {
  EXPECT_TRUE(rc::check("linear is the reference", [] {
    const auto type = *rc::gen::elementOf(
        std::vector<DType>(std::begin(test::kAllTypes), std::end(test::kAllTypes)));
    const auto n = *rc::gen::inRange<std::size_t>(1, 130);
    const auto k = block_size(type) * *rc::gen::inRange<std::size_t>(1, 4);
    const auto m = *rc::gen::inRange<std::size_t>(1, 40);
    const auto size = *rc::gen::inRange(1, 9);
    const auto rows = random_rows(type, n, k, static_cast<unsigned>(n * 1000 + k));
    const auto x = random_floats(m * k, static_cast<unsigned>(m));
    const auto w = PackedMatrix::pack(type, rows.data(), n, k);
    std::vector<float> expected(m * n);
    reference::linear(type, rows.data(), n, k, x.data(), expected.data(), m);
    RC_ASSERT(same_bits(run_linear(w, x, m, size), expected));
  }));
}

TEST(Linear, StoredRowsNeedNoAlignment) {
  const std::size_t n = 17, k = 64;
  const auto rows = random_rows(DType::q4_1, n, k, 7);
  std::vector<std::byte> shifted(rows.size() + 1);
  std::copy(rows.begin(), rows.end(), shifted.begin() + 1);
  const auto x = random_floats(k, 8);
  const auto a = PackedMatrix::pack(DType::q4_1, rows.data(), n, k);
  const auto b = PackedMatrix::pack(DType::q4_1, shifted.data() + 1, n, k);
  EXPECT_TRUE(same_bits(run_linear(b, x, 1, 1), run_linear(a, x, 1, 1)));
}

// The chain sees k in ascending order: here another order gives another number.
TEST(Linear, OrderOfTheChain) {
  const float big = 0x1p60f;
  const std::vector<float> weights = {1, 1, 1, 1}, x = {big, 1, -big, 1};
  const auto w = PackedMatrix::pack(DType::f32, reinterpret_cast<const std::byte*>(weights.data()),
                                    1, weights.size());
  for_each_target([&] { EXPECT_EQ(run_linear(w, x, 1, 1)[0], 1.0f); });
}

// Products are not rounded before they are added.
TEST(Linear, FusesOnEveryTarget) {
  const float a = 1 + 0x1p-12f;  // a * a = 1 + 2^-11 + 2^-24
  const std::vector<float> weights = {1, a}, x = {-(1 + 0x1p-11f), a};
  const auto w = PackedMatrix::pack(DType::f32, reinterpret_cast<const std::byte*>(weights.data()),
                                    1, weights.size());
  for_each_target([&] { EXPECT_EQ(run_linear(w, x, 1, 1)[0], 0x1p-24f); });
}

// The negative control: two chains for eight rows or more, as a library would do. The comparison
// that the tests above rely on has to see it.
void batch_dependent_linear(const float* w, std::size_t n, std::size_t k, const float* x, float* y,
                            std::size_t m) {
  const std::size_t half = m >= 8 ? k / 2 : k;
  for (std::size_t r = 0; r < m; r++) {
    for (std::size_t c = 0; c < n; c++) {
      float first = 0, second = 0;
      for (std::size_t i = 0; i < half; i++) first = std::fma(x[r * k + i], w[c * k + i], first);
      for (std::size_t i = half; i < k; i++) second = std::fma(x[r * k + i], w[c * k + i], second);
      y[r * n + c] = first + second;
    }
  }
}

TEST(Linear, NegativeControlIsCaught) {
  const std::size_t n = 20, k = 64;
  const auto w = random_floats(n * k, 9), x = random_floats(8 * k, 10);
  std::vector<float> one(n), seven(7 * n), eight(8 * n);
  batch_dependent_linear(w.data(), n, k, x.data(), one.data(), 1);
  batch_dependent_linear(w.data(), n, k, x.data(), seven.data(), 7);
  batch_dependent_linear(w.data(), n, k, x.data(), eight.data(), 8);
  EXPECT_TRUE(same_bits(std::span(seven).first(n), one));
  EXPECT_FALSE(same_bits(std::span(eight).first(n), one));
}

// The comparisons above mean little on one instruction set.
TEST(Targets, SeveralOnX86) {
#if defined(__x86_64__)
  EXPECT_GE(hwy::SupportedAndGeneratedTargets().size(), 2u);
#endif
}

TEST(PackedMatrix, EmptyAndMoved) {
  PackedMatrix empty;
  EXPECT_EQ(empty.n(), 0u);
  linear(empty, nullptr, nullptr, 0, {});
  const auto rows = random_rows(DType::q8_0, 5, 32, 11);
  PackedMatrix a = PackedMatrix::pack(DType::q8_0, rows.data(), 5, 32);
  empty = std::move(a);
  EXPECT_EQ(empty.n(), 5u);
  EXPECT_EQ(empty.k(), 32u);
}

}  // namespace
}  // namespace fixpoint::kernels
