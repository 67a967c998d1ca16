// silu_mul and add.
#include <cstddef>

#include "kernels/cpu/share.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include "kernels/cpu/targets.hpp"
// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "kernels/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

template <class D>
HWY_INLINE void silu_mul_at(D d, float* gate, const float* up) {
  const auto g = hn::LoadU(d, gate);
  const auto e = exp_v(d, hn::Neg(g));
  const auto silu = hn::Div(g, hn::Add(hn::Set(d, 1.0f), e));
  hn::StoreU(hn::Mul(silu, hn::LoadU(d, up)), d, gate);
}

template <class D>
HWY_INLINE void add_at(D d, float* x, const float* y) {
  hn::StoreU(hn::Add(hn::LoadU(d, x), hn::LoadU(d, y)), d, x);
}

void silu_mul_range(float* gate, const float* up, std::size_t begin, std::size_t end) {
  std::size_t i = begin;
  for (; i + kWide <= end; i += kWide) silu_mul_at(Wide(), gate + i, up + i);
  for (; i < end; i++) silu_mul_at(One(), gate + i, up + i);
}

void add_range(float* x, const float* y, std::size_t begin, std::size_t end) {
  std::size_t i = begin;
  for (; i + kWide <= end; i += kWide) add_at(Wide(), x + i, y + i);
  for (; i < end; i++) add_at(One(), x + i, y + i);
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fixpoint::kernels {

HWY_EXPORT(silu_mul_range);
HWY_EXPORT(add_range);

void silu_mul(float* gate, const float* up, std::size_t count, Share share) {
  const Range part = cut(count, 16, share);
  HWY_DYNAMIC_DISPATCH(silu_mul_range)(gate, up, part.begin, part.end);
}

void add(float* x, const float* y, std::size_t count, Share share) {
  const Range part = cut(count, 16, share);
  HWY_DYNAMIC_DISPATCH(add_range)(x, y, part.begin, part.end);
}

}  // namespace fixpoint::kernels
#endif
