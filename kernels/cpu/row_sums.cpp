// rms_norm and log_softmax: the operations that sum over a row, by 16 virtual lanes and one tree.
#include <cmath>
#include <cstddef>

#include "kernels/cpu/share.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_sums.cpp"
#include "kernels/cpu/targets.hpp"
// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "kernels/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

constexpr std::size_t kSumLanes = 16;
constexpr std::size_t kSumVectors = kSumLanes / kWide;

float sum_of_squares(const float* x, std::size_t count) {
  const Wide d;
  hn::Vec<Wide> sum[kSumVectors];
  for (auto& s : sum) s = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (std::size_t v = 0; v < kSumVectors; v++) {
      const auto value = hn::LoadU(d, x + i + v * kWide);
      sum[v] = fma(d, value, value, sum[v]);
    }
  }
  HWY_ALIGN float lanes[kSumLanes];
  for (std::size_t v = 0; v < kSumVectors; v++) hn::Store(sum[v], d, lanes + v * kWide);
  for (std::size_t lane = 0; i + lane < count; lane++) {
    lanes[lane] = std::fma(x[i + lane], x[i + lane], lanes[lane]);
  }
  return combine_lanes(lanes);
}

void rms_norm_row(const float* x, const float* weight, float eps, float* y, std::size_t count) {
  const Wide d;
  const float mean = sum_of_squares(x, count) / static_cast<float>(count);
  const float scale = 1.0f / std::sqrt(mean + eps);
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, scale));
    hn::StoreU(hn::Mul(scaled, hn::LoadU(d, weight + i)), d, y + i);
  }
  for (; i < count; i++) y[i] = x[i] * scale * weight[i];
}

float maximum(const float* x, std::size_t count) {
  const Wide d;
  std::size_t i = 0;
  float result = x[0];
  if (count >= kWide) {
    auto most = hn::LoadU(d, x);
    for (; i + kWide <= count; i += kWide) most = hn::Max(most, hn::LoadU(d, x + i));
    HWY_ALIGN float lanes[kWide];
    hn::Store(most, d, lanes);
    result = lanes[0];
    for (const float lane : lanes) result = lane > result ? lane : result;
  }
  for (; i < count; i++) result = x[i] > result ? x[i] : result;
  return result;
}

float sum_of_exponentials(const float* x, std::size_t count, float most) {
  const Wide d;
  hn::Vec<Wide> sum[kSumVectors];
  for (auto& s : sum) s = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (std::size_t v = 0; v < kSumVectors; v++) {
      const auto value = hn::LoadU(d, x + i + v * kWide);
      sum[v] = hn::Add(sum[v], exp_v(d, hn::Sub(value, hn::Set(d, most))));
    }
  }
  HWY_ALIGN float lanes[kSumLanes];
  for (std::size_t v = 0; v < kSumVectors; v++) hn::Store(sum[v], d, lanes + v * kWide);
  for (std::size_t lane = 0; i + lane < count; lane++) {
    const One one;
    lanes[lane] += hn::GetLane(exp_v(one, hn::Set(one, x[i + lane] - most)));
  }
  return combine_lanes(lanes);
}

void log_softmax_row(const float* x, float* out, std::size_t count) {
  const Wide d;
  const float most = maximum(x, count);
  const One one;
  const float log_sum = hn::GetLane(log_v(one, hn::Set(one, sum_of_exponentials(x, count, most))));
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    const auto shifted = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, most));
    hn::StoreU(hn::Sub(shifted, hn::Set(d, log_sum)), d, out + i);
  }
  for (; i < count; i++) out[i] = x[i] - most - log_sum;
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fixpoint::kernels {

HWY_EXPORT(rms_norm_row);
HWY_EXPORT(log_softmax_row);

void rms_norm(const float* x, const float* weight, float eps, float* y, std::size_t m,
              std::size_t d, Share share) {
  const Range rows = cut(m, 1, share);
  for (std::size_t r = rows.begin; r < rows.end; r++) {
    HWY_DYNAMIC_DISPATCH(rms_norm_row)(x + r * d, weight, eps, y + r * d, d);
  }
}

void log_softmax(const float* logits, float* out, std::size_t n) {
  if (n > 0) HWY_DYNAMIC_DISPATCH(log_softmax_row)(logits, out, n);
}

}  // namespace fixpoint::kernels
#endif
