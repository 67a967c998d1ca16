// Rotary position embedding: the table of a position and the rotation of heads.
#include <cstddef>

#include "kernels/cpu/share.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include "kernels/cpu/targets.hpp"
// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "kernels/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

template <class D>
HWY_INLINE void table_at(D d, float position, const float* frequency, float* out) {
  auto sine = hn::Zero(d), cosine = hn::Zero(d);
  sin_cos_v(d, hn::Mul(hn::Set(d, position), hn::LoadU(d, frequency)), sine, cosine);
  hn::StoreInterleaved2(cosine, sine, d, out);
}

void rope_table_row(float position, const float* frequency, std::size_t count, float* out) {
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) table_at(Wide(), position, frequency + i, out + 2 * i);
  for (; i < count; i++) table_at(One(), position, frequency + i, out + 2 * i);
}

// (a, b) -> (a cos - b sin, a sin + b cos), each with one rounded product and one fma.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void rotate(D d, V& a, V& b, const float* table) {
  V cosine, sine;
  hn::LoadInterleaved2(d, table, cosine, sine);
  const V first = fma(d, a, cosine, hn::Neg(hn::Mul(b, sine)));
  b = fma(d, a, sine, hn::Mul(b, cosine));
  a = first;
}

template <class D>
HWY_INLINE void rotate_adjacent(D d, float* x, const float* table) {
  hn::Vec<D> a, b;
  hn::LoadInterleaved2(d, x, a, b);
  rotate(d, a, b, table);
  hn::StoreInterleaved2(a, b, d, x);
}

template <class D>
HWY_INLINE void rotate_halves(D d, float* low, float* high, const float* table) {
  auto a = hn::LoadU(d, low), b = hn::LoadU(d, high);
  rotate(d, a, b, table);
  hn::StoreU(a, d, low);
  hn::StoreU(b, d, high);
}

void rope_head(float* x, const float* table, std::size_t rotary_dim, RopePairing pairing) {
  const std::size_t half = rotary_dim / 2;
  std::size_t i = 0;
  if (pairing == RopePairing::adjacent) {
    for (; i + kWide <= half; i += kWide) rotate_adjacent(Wide(), x + 2 * i, table + 2 * i);
    for (; i < half; i++) rotate_adjacent(One(), x + 2 * i, table + 2 * i);
  } else {
    for (; i + kWide <= half; i += kWide) {
      rotate_halves(Wide(), x + i, x + half + i, table + 2 * i);
    }
    for (; i < half; i++) rotate_halves(One(), x + i, x + half + i, table + 2 * i);
  }
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fixpoint::kernels {

HWY_EXPORT(rope_table_row);
HWY_EXPORT(rope_head);

void rope_table(std::size_t position, std::span<const float> frequency, float* out) {
  HWY_DYNAMIC_DISPATCH(rope_table_row)
  (static_cast<float>(position), frequency.data(), frequency.size(), out);
}

void rope(float* x, const float* const* tables, std::size_t m, std::size_t heads,
          std::size_t head_dim, std::size_t rotary_dim, RopePairing pairing, Share share) {
  const Range part = cut(m * heads, 1, share);
  for (std::size_t i = part.begin; i < part.end; i++) {
    HWY_DYNAMIC_DISPATCH(rope_head)(x + i * head_dim, tables[i / heads], rotary_dim, pairing);
  }
}

}  // namespace fixpoint::kernels
#endif
