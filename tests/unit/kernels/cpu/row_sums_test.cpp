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

constexpr std::size_t kWidths[] = {1, 5, 16, 31, 64, 576, 577};

TEST(RmsNorm, EqualsTheReferenceForAnyRowsAndShare) {
  for (const std::size_t d : kWidths) {
    const std::size_t m = 7;
    const auto x = random_floats(m * d, 1, 3.0f), weight = random_floats(d, 2);
    std::vector<float> expected(m * d);
    reference::rms_norm(x.data(), weight.data(), 1e-5f, expected.data(), m, d);
    for_each_target([&] {
      for (int size = 1; size <= 5; size++) {
        std::vector<float> actual(m * d, kUnset);
        for (int r = 0; r < size; r++) {
          rms_norm(x.data(), weight.data(), 1e-5f, actual.data(), m, d, {r, size});
        }
        EXPECT_TRUE(same_bits(actual, expected)) << d << " by " << size;
      }
      auto in_place = x;
      rms_norm(in_place.data(), weight.data(), 1e-5f, in_place.data(), m, d, {});
      EXPECT_TRUE(same_bits(in_place, expected)) << d;
      std::vector<float> one(d);
      rms_norm(x.data() + 3 * d, weight.data(), 1e-5f, one.data(), 1, d, {});
      EXPECT_TRUE(same_bits(one, std::span(expected).subspan(3 * d, d))) << d;
    });
  }
}

TEST(RmsNorm, IsTheNorm) {
  const std::vector<float> x = {3, 4}, weight = {1, 2};
  std::vector<float> y(2);
  rms_norm(x.data(), weight.data(), 0.0f, y.data(), 1, 2, {});
  EXPECT_NEAR(y[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y[1], 8 / std::sqrt(12.5), 1e-6);
}

TEST(LogSoftmax, EqualsTheReference) {
  for (const std::size_t n : {1, 5, 16, 31, 1000, 49152}) {
    const auto x = random_floats(n, 3, 5.0f);
    std::vector<float> expected(n);
    reference::log_softmax(x.data(), expected.data(), n);
    for_each_target([&] {
      std::vector<float> actual(n, kUnset);
      log_softmax(x.data(), actual.data(), n);
      EXPECT_TRUE(same_bits(actual, expected)) << n;
      auto in_place = x;
      log_softmax(in_place.data(), in_place.data(), n);
      EXPECT_TRUE(same_bits(in_place, expected)) << n;
    });
  }
}

TEST(LogSoftmax, IsAccurate) {
  const std::size_t n = 49152;
  const auto x = random_floats(n, 4, 4.0f);
  std::vector<float> actual(n);
  log_softmax(x.data(), actual.data(), n);
  long double sum = 0;
  for (const float value : x) sum += std::exp(static_cast<long double>(value));
  for (std::size_t i = 0; i < n; i += 97) {
    EXPECT_NEAR(actual[i], static_cast<double>(x[i] - std::log(sum)), 2e-5);
  }
}

TEST(LogSoftmax, ForbiddenTokensStayForbidden) {
  std::vector<float> x = {1.0f, -std::numeric_limits<float>::infinity(), 1.0f};
  log_softmax(x.data(), x.data(), x.size());
  EXPECT_EQ(x[1], -std::numeric_limits<float>::infinity());
  EXPECT_NEAR(x[0], -std::log(2.0), 1e-6);
}

}  // namespace
}  // namespace fixpoint::kernels
