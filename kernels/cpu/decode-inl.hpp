// Dequantises packed blocks to vectors of fp32 weights, by the same expressions as dequantise_row.
//
// A Decoder holds what one vector of lanes needs of one block: start(block, lane) reads the scales
// of columns lane .. lane + Lanes - 1, step(t) the words of step t, and at<J>() gives the weights
// of k = kStepWeights * t + J. Members have no initialisers: GCC compiles an implicit constructor
// without the target's instructions.
#if defined(FIXPOINT_KERNELS_DECODE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FIXPOINT_KERNELS_DECODE_INL
#undef FIXPOINT_KERNELS_DECODE_INL
#else
#define FIXPOINT_KERNELS_DECODE_INL
#endif

#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/cpu/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

using WideV = hn::Vec<Wide>;
using WideU = hn::RebindToUnsigned<Wide>;
using WideI = hn::RebindToSigned<Wide>;

// One k a block.
template <DType kType>
struct FloatDecoder {
  static constexpr std::size_t kSteps = 1;
  static constexpr std::size_t kStepWeights = 1;
  WideV value;

  HWY_INLINE void start(const std::byte* block, std::size_t lane) {
    if constexpr (kType == DType::f32) {
      value = hn::LoadU(Wide(), reinterpret_cast<const float*>(block) + lane);
    } else if constexpr (kType == DType::f16) {
      value = load_f16(Wide(), reinterpret_cast<const std::uint16_t*>(block) + lane);
    } else {
      value = load_bf16(Wide(), reinterpret_cast<const std::uint16_t*>(block) + lane);
    }
  }
  HWY_INLINE void step(std::size_t) {}
  template <std::size_t J>
  HWY_INLINE WideV at() const {
    return value;
  }
};

// Signed bytes [k][16] after the scales.
template <DType kType>
struct ByteDecoder {
  static constexpr bool kHalfScale = kType == DType::q8_0;
  static constexpr std::size_t kStepWeights = 8;
  static constexpr std::size_t kSteps = block_shape(kType).weights / kStepWeights;
  WideV scale;
  const std::int8_t* first;
  const std::int8_t* bytes;

  HWY_INLINE void start(const std::byte* block, std::size_t lane) {
    if constexpr (kHalfScale) {
      scale = load_f16(Wide(), reinterpret_cast<const std::uint16_t*>(block) + lane);
    } else {
      scale = hn::LoadU(Wide(), reinterpret_cast<const float*>(block) + lane);
    }
    first = reinterpret_cast<const std::int8_t*>(block) + (kHalfScale ? 32 : 64) + lane;
  }
  HWY_INLINE void step(std::size_t t) { bytes = first + t * kStepWeights * kGroup; }
  template <std::size_t J>
  HWY_INLINE WideV at() const {
    const hn::Rebind<std::int8_t, Wide> narrow;
    const auto q = hn::PromoteTo(WideI(), hn::LoadU(narrow, bytes + J * kGroup));
    return hn::Mul(scale, hn::ConvertTo(Wide(), q));
  }
};

// Nibbles q: fma(d, q, m), with m = -8 d for q4_0.
template <DType kType>
struct NibbleDecoder {
  static constexpr std::size_t kSteps = 4;
  static constexpr std::size_t kStepWeights = 8;
  static constexpr std::size_t kWords = kType == DType::q4_1 ? 64 : 32;
  WideV m;
  const std::uint32_t* words;
  hn::Vec<WideU> low;
  hn::Vec<WideU> high;
  WideV scaled[4];

  HWY_INLINE void start(const std::byte* block, std::size_t lane) {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(block);
    const WideV scale = load_f16(Wide(), halves + lane);
    if constexpr (kType == DType::q4_1) {
      m = load_f16(Wide(), halves + kGroup + lane);
    } else {
      m = hn::Mul(scale, hn::Set(Wide(), -8.0f));
    }
    words = reinterpret_cast<const std::uint32_t*>(block + kWords) + lane;
    scaled[0] = scale;
    for (std::size_t i = 1; i < 4; i++) {
      scaled[i] = hn::Mul(scaled[i - 1], hn::Set(Wide(), 1.0f / 16.0f));
    }
  }

  HWY_INLINE void step(std::size_t t) {
    low = hn::LoadU(WideU(), words + t * kGroup);
    high = hn::ShiftRight<16>(low);
  }

  template <std::size_t J>
  HWY_INLINE WideV at() const {
    // A nibble in its place is q * 16^i; times d / 16^i it is the same exact product.
    constexpr std::size_t i = J % 4;
    const auto in_place = hn::And(J < 4 ? low : high, hn::Set(WideU(), 15u << (4 * i)));
    const WideV q = hn::ConvertTo(Wide(), hn::BitCast(WideI(), in_place));
    return fma(Wide(), q, scaled[i], m);
  }
};

template <DType kType>
struct DecoderOf {
  using type = FloatDecoder<kType>;
};
template <>
struct DecoderOf<DType::q8_0> {
  using type = ByteDecoder<DType::q8_0>;
};
template <>
struct DecoderOf<DType::q6_k> {
  using type = ByteDecoder<DType::q6_k>;
};
template <>
struct DecoderOf<DType::q4_0> {
  using type = NibbleDecoder<DType::q4_0>;
};
template <>
struct DecoderOf<DType::q4_1> {
  using type = NibbleDecoder<DType::q4_1>;
};
template <DType kType>
using Decoder = typename DecoderOf<kType>::type;

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
