// Vector helpers, compiled once per target (see Highway's foreach_target.h).
#if defined(FIXPOINT_KERNELS_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIXPOINT_KERNELS_SIMD_INL
#undef FIXPOINT_KERNELS_SIMD_INL
#else
#define FIXPOINT_KERNELS_SIMD_INL
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The widest vectors used: at most 16 lanes, and a divisor of 16 on every target.
using Wide = hn::CappedTag<float, 16>;
using One = hn::CappedTag<float, 1>;
inline constexpr std::size_t kWide = hn::MaxLanes(Wide());
static_assert(16 % kWide == 0);
// Targets with 32 vector registers take larger tiles.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr bool kManyRegisters = true;
#else
inline constexpr bool kManyRegisters = false;
#endif

// a * b + c rounded once. Highway's MulAdd rounds twice where the target has no such instruction;
// there each lane goes through std::fma: slow, but the same bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V fma([[maybe_unused]] D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  HWY_ALIGN float x[kLanes];
  HWY_ALIGN float y[kLanes];
  HWY_ALIGN float z[kLanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (std::size_t i = 0; i < kLanes; i++) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#endif
}

// Lanes(d) half-precision values, exactly.
template <class D>
HWY_INLINE hn::Vec<D> load_f16(D d, const std::uint16_t* p) {
#if HWY_NATIVE_FMA  // the same targets have a conversion instruction
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
#else
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> half;
  const auto h = hn::PromoteTo(du, hn::LoadU(half, p));
  const auto magnitude = hn::And(h, hn::Set(du, 0x7fffu));
  const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(du, 0x8000u)));
  // The exponent's bias differs by 112; the product also makes subnormal halves normal floats.
  const auto finite = hn::Mul(hn::BitCast(d, hn::ShiftLeft<13>(magnitude)),
                              hn::Set(d, 5.192296858534828e33f));  // 2^112
  const auto special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(du, 0x7f800000u));
  const auto is_special = hn::RebindMask(d, hn::Gt(hn::BitCast(hn::RebindToSigned<D>(), magnitude),
                                                   hn::Set(hn::RebindToSigned<D>(), 0x7bff)));
  const auto value = hn::IfThenElse(is_special, hn::BitCast(d, special), finite);
  return hn::Or(value, hn::BitCast(d, sign));
#endif
}

// Lanes(d) bfloat16 values, exactly.
template <class D>
HWY_INLINE hn::Vec<D> load_bf16(D d, const std::uint16_t* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> half;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(half, p))));
}

// Sums of the contract run over 16 virtual lanes; this is the one tree that combines them.
HWY_INLINE float combine_lanes(const float* lanes) {
  float s[16];
  for (std::size_t i = 0; i < 16; i++) s[i] = lanes[i];
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; i++) s[i] += s[i + half];
  }
  return s[0];
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
