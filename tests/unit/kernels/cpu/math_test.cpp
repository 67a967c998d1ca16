#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/reference.hpp"
#include "tests/unit/kernels/support.hpp"

namespace fixpoint::kernels {
namespace {

using test::for_each_target;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// |actual - exact| in units of the last place of the exact value's binade.
double ulps(float actual, long double exact) {
  const auto magnitude = std::max(std::fabs(exact), 0x1p-126L);
  const long double unit = std::ldexp(1.0L, std::ilogb(magnitude) - 23);
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / unit);
}

std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

// Every `stride`-th float of all 2^32.
template <class Check>
void sweep(std::uint32_t stride, const Check& check) {
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); i += stride) {
    check(std::bit_cast<float>(static_cast<std::uint32_t>(i)));
  }
}

TEST(Math, ExpErrorIsBelowTheDocumentedBound) {
  double worst = 0;
  for (int i = -88 * 4096; i <= 88 * 4096; i++) {
    const float x = static_cast<float>(i) / 4096.0f + static_cast<float>(i % 7) * 1e-5f;
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 1.25);
  RecordProperty("worst_ulp", std::to_string(worst));
  // Subnormal results are rounded once.
  for (float x = -103.9f; x < -87.3f; x += 0.01f) {
    const auto exact = std::exp(static_cast<long double>(x));
    EXPECT_LE(std::fabs(static_cast<long double>(exp_f32(x)) - exact), 0x1p-149L) << x;
  }
}

TEST(Math, ExpAtTheEnds) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(89.0f), kInfinity);
  EXPECT_EQ(exp_f32(kInfinity), kInfinity);
  EXPECT_EQ(exp_f32(-104.0f), 0.0f);
  EXPECT_EQ(exp_f32(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(exp_f32(std::nanf(""))));
  EXPECT_TRUE(std::isfinite(exp_f32(88.72f)));
}

TEST(Math, LogErrorIsBelowTheDocumentedBound) {
  double worst = 0;
  sweep(20011, [&](float x) {
    if (!(x > 0) || !std::isfinite(x)) return;
    worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<long double>(x))));
  });
  for (int i = -40000; i <= 40000; i++) {  // around 1, where the result is small
    const float x = 1.0f + static_cast<float>(i) * 1e-5f;
    worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 1.5);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Math, LogAtTheEnds) {
  EXPECT_EQ(log_f32(1.0f), 0.0f);
  EXPECT_EQ(log_f32(0.0f), -kInfinity);
  EXPECT_EQ(log_f32(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log_f32(-1.0f)));
  EXPECT_TRUE(std::isnan(log_f32(std::nanf(""))));
}

TEST(Math, SinCosErrorIsBelowTheDocumentedBound) {
  long double worst = 0;
  const auto check = [&](float x) {
    const auto exact = static_cast<long double>(x);
    worst = std::max(worst, std::fabs(static_cast<long double>(sin_f32(x)) - std::sin(exact)));
    worst = std::max(worst, std::fabs(static_cast<long double>(cos_f32(x)) - std::cos(exact)));
  };
  for (int i = -200000; i <= 200000; i++) check(static_cast<float>(i) * 1e-3f);
  for (int i = 0; i <= 1 << 20; i += 3) check(static_cast<float>(i));  // positions
  for (int i = 1; i < 600000; i += 7) {  // next to multiples of pi/2, where reduction cancels
    check(static_cast<float>(i * 1.5707963267948966));
  }
  EXPECT_LT(worst, 1.0e-7L);
  RecordProperty("worst", std::to_string(static_cast<double>(worst * 1e9L)) + "e-9");
}

TEST(Math, EveryTargetEqualsTheReference) {
  for_each_target([] {
    std::size_t differ = 0;
    const auto check = [&](float actual, float expected) {
      differ += bits(actual) != bits(expected) && !(std::isnan(actual) && std::isnan(expected));
    };
    sweep(104729, [&](float x) {
      check(exp_f32(x), reference::exp_f32(x));
      check(log_f32(x), reference::log_f32(x));
      if (std::fabs(x) <= 0x1p20f) {
        check(sin_f32(x), reference::sin_f32(x));
        check(cos_f32(x), reference::cos_f32(x));
      }
    });
    for (int i = -110 * 64; i <= 95 * 64; i++) {
      const float x = static_cast<float>(i) / 64.0f;
      check(exp_f32(x), reference::exp_f32(x));
      check(sin_f32(x), reference::sin_f32(x));
    }
    EXPECT_EQ(differ, 0u);
  });
}

}  // namespace
}  // namespace fixpoint::kernels
