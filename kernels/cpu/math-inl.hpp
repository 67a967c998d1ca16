// Elementary functions for any vector tag, one lane included, so scalar and vector bits are equal.
// Coefficients: interpolation at Chebyshev nodes (60 digits), rounded to fp32. The formulas are
// part of the contract; deploy/decisions/0002-cpu-v1.md states them.
#if defined(FIXPOINT_KERNELS_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIXPOINT_KERNELS_MATH_INL
#undef FIXPOINT_KERNELS_MATH_INL
#else
#define FIXPOINT_KERNELS_MATH_INL
#endif

#include <limits>

#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

// Adding 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even, and leaves that integer
// in the low bits.
inline constexpr float kRoundShift = 12582912.0f;

// e^x: n = round(x / ln 2), r = x - n ln 2, (1 + r + r^2 q(r)) * 2^n. Subnormal results are right.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_v(D d, V x0) {
  const hn::RebindToSigned<D> di;
  // Beyond these ends the result is +inf or 0 anyway.
  const V x = hn::Min(hn::Max(x0, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const V shift = hn::Set(d, kRoundShift);
  const V t = fma(d, x, hn::Set(d, 0x1.715476p+0f), shift);  // 1 / ln 2
  const V n = hn::Sub(t, shift);
  const V minus_n = hn::Neg(n);
  V r = fma(d, minus_n, hn::Set(d, 0x1.62e43p-1f), x);  // ln 2, high; this step is exact
  r = fma(d, minus_n, hn::Set(d, -0x1.05c61p-29f), r);  // ln 2, low
  V q = hn::Set(d, 0x1.6d117cp-10f);
  q = fma(d, q, r, hn::Set(d, 0x1.120be2p-7f));
  q = fma(d, q, r, hn::Set(d, 0x1.555518p-5f));
  q = fma(d, q, r, hn::Set(d, 0x1.5554dcp-3f));
  q = fma(d, q, r, hn::Set(d, 0.5f));
  const V p = hn::Add(hn::Set(d, 1.0f), fma(d, hn::Mul(r, r), q, r));
  // 2^n in two factors: n reaches 128 and -150, whose powers are no normal numbers.
  const auto ni = hn::Sub(hn::BitCast(di, t), hn::BitCast(di, shift));
  const auto n1 = hn::ShiftRight<1>(ni);
  const auto n2 = hn::Sub(ni, n1);
  const auto bias = hn::Set(di, 127);
  const V f1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n1, bias)));
  const V f2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n2, bias)));
  const V result = hn::Mul(hn::Mul(p, f1), f2);
  return hn::IfThenElse(hn::Eq(x0, x0), result, x0);  // NaN stays NaN
}

// ln x: x = m 2^e with m in [sqrt(1/2), sqrt 2), f = m - 1, f - f^2/2 + f^3 P(f) + e ln 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_v(D d, V x0) {
  const hn::RebindToSigned<D> di;
  const auto subnormal = hn::Lt(x0, hn::Set(d, std::numeric_limits<float>::min()));
  const V x = hn::IfThenElse(subnormal, hn::Mul(x0, hn::Set(d, 8388608.0f)), x0);  // 2^23
  const V e_offset = hn::IfThenElse(subnormal, hn::Set(d, -23.0f), hn::Zero(d));
  const auto bits = hn::BitCast(di, x);
  const auto ei = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));  // sqrt(1/2)
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(ei))), hn::Set(d, 1.0f));
  const V e = hn::Add(hn::ConvertTo(d, ei), e_offset);
  V p = hn::Set(d, 0x1.1d8ea6p-4f);
  p = fma(d, p, f, hn::Set(d, -0x1.d635bcp-4f));
  p = fma(d, p, f, hn::Set(d, 0x1.dea282p-4f));
  p = fma(d, p, f, hn::Set(d, -0x1.fcf4c6p-4f));
  p = fma(d, p, f, hn::Set(d, 0x1.23d21ap-3f));
  p = fma(d, p, f, hn::Set(d, -0x1.555b4ap-3f));
  p = fma(d, p, f, hn::Set(d, 0x1.999d5ap-3f));
  p = fma(d, p, f, hn::Set(d, -0x1.fffffcp-3f));
  p = fma(d, p, f, hn::Set(d, 0x1.555554p-2f));
  const V z = hn::Mul(f, f);
  V u = hn::Mul(e, hn::Set(d, -0x1.bd0106p-13f));  // ln 2, low
  u = fma(d, z, hn::Mul(f, p), u);
  u = fma(d, hn::Set(d, -0.5f), z, u);
  u = hn::Add(f, u);
  u = fma(d, e, hn::Set(d, 0x1.63p-1f), u);  // ln 2, high: 10 bits, so the product is exact
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  u = hn::IfThenElse(hn::Eq(x0, inf), inf, u);
  u = hn::IfThenElse(hn::Eq(x0, hn::Zero(d)), hn::Sub(hn::Zero(d), inf), u);
  const auto valid = hn::Ge(x0, hn::Zero(d));  // false for NaN
  return hn::IfThenElse(valid, u, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

// sin x and cos x for |x| <= 2^20: n = round(x * 2/pi), r = x - n pi/2 in three steps.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void sin_cos_v(D d, V x, V& sine, V& cosine) {
  const hn::RebindToSigned<D> di;
  const V shift = hn::Set(d, kRoundShift);
  const V t = fma(d, x, hn::Set(d, 0x1.45f306p-1f), shift);  // 2/pi
  const V minus_n = hn::Neg(hn::Sub(t, shift));
  V r = fma(d, minus_n, hn::Set(d, 0x1.921fb6p+0f), x);
  r = fma(d, minus_n, hn::Set(d, -0x1.777a5cp-25f), r);
  r = fma(d, minus_n, hn::Set(d, -0x1.ee59dap-50f), r);
  const V z = hn::Mul(r, r);
  V s = hn::Set(d, -0x1.9ac6fcp-13f);
  s = fma(d, s, z, hn::Set(d, 0x1.110c24p-7f));
  s = fma(d, s, z, hn::Set(d, -0x1.555552p-3f));
  s = fma(d, hn::Mul(r, z), s, r);
  V c = hn::Set(d, 0x1.9bd67p-16f);
  c = fma(d, c, z, hn::Set(d, -0x1.6c12cep-10f));
  c = fma(d, c, z, hn::Set(d, 0x1.555554p-5f));
  c = fma(d, hn::Mul(z, z), c, fma(d, hn::Set(d, -0.5f), z, hn::Set(d, 1.0f)));
  const auto quadrant = hn::BitCast(di, t);
  const auto one = hn::Set(di, 1);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quadrant, one), one));
  const auto two = hn::Set(di, 2);
  const auto sine_sign = hn::ShiftLeft<30>(hn::And(quadrant, two));
  const auto cosine_sign = hn::ShiftLeft<30>(hn::And(hn::Add(quadrant, one), two));
  sine = hn::Xor(hn::IfThenElse(odd, c, s), hn::BitCast(d, sine_sign));
  cosine = hn::Xor(hn::IfThenElse(odd, s, c), hn::BitCast(d, cosine_sign));
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
