// y = x W^T. Each output is one fp32 chain over k (the contract); tiles, blocks and paths are free.
//
// Two paths. Few rows: weights go from the packed block straight into the chains of up to
// kDirectRows rows. More rows: kDepth steps of k of 32 columns are dequantised into a panel that
// stays in the cache and meets all rows, tile by tile, with the running sums kept in y between
// depths.
#include <algorithm>

#include "kernels/cpu/packed_matrix.hpp"
#include "kernels/cpu/share.hpp"

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "kernels/cpu/targets.hpp"
// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "kernels/cpu/decode-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

constexpr std::size_t kPerGroup = kGroup / kWide;  // vectors of a group

// Tile shapes by what the register file holds: see the benchmarks before changing them.
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kDirectRows = 8;
constexpr std::size_t direct_groups(std::size_t rows) {
  return rows <= 2 ? 6 : rows <= 4 ? 3 : 2;
}
constexpr std::size_t kTileRows = 12;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
constexpr std::size_t kDirectRows = 4;
constexpr std::size_t direct_groups(std::size_t rows) {
  return rows <= 2 ? 2 : 1;
}
constexpr std::size_t kTileRows = kManyRegisters ? 10 : 6;
#else
constexpr std::size_t kDirectRows = 1;
constexpr std::size_t direct_groups(std::size_t) {
  return 1;
}
constexpr std::size_t kTileRows = 4;
#endif
constexpr std::size_t kDepth = 256;  // k of a panel; a multiple of every block
constexpr std::size_t kPanelColumns = 2 * kGroup;
constexpr std::size_t kAhead = 8192;    // bytes between a prefetch and its use
constexpr std::size_t kRowBlock = 512;  // rows whose kDepth inputs stay in the L2 cache

// Types whose weights come from memory for each token: worth a direct path for several rows.
constexpr std::size_t direct_rows(DType type) {
  return type == DType::q4_0 || type == DType::q4_1 || type == DType::q8_0 ? kDirectRows : 1;
}

HWY_INLINE void store_some(WideV v, float* y, std::size_t count) {
  HWY_ALIGN float lanes[kWide];
  hn::Store(v, Wide(), lanes);
  for (std::size_t i = 0; i < count; i++) y[i] = lanes[i];
}

HWY_INLINE WideV load_some(const float* y, std::size_t count) {
  HWY_ALIGN float lanes[kWide] = {};
  for (std::size_t i = 0; i < count; i++) lanes[i] = y[i];
  return hn::Load(Wide(), lanes);
}

// Columns of the vector at column c that exist.
HWY_INLINE std::size_t valid(std::size_t n, std::size_t c) {
  return c >= n ? 0 : std::min(n - c, kWide);
}

template <class Dec, std::size_t J, std::size_t kRows, std::size_t kVectors>
HWY_INLINE void accumulate(const Dec (&decoder)[kVectors], const float* x, std::size_t k,
                           WideV (&sum)[kRows][kVectors]) {
  const Wide d;
  WideV w[kVectors];
  for (std::size_t v = 0; v < kVectors; v++) w[v] = decoder[v].template at<J>();
  for (std::size_t r = 0; r < kRows; r++) {
    const WideV xr = hn::Set(d, x[r * k + J]);
    for (std::size_t v = 0; v < kVectors; v++) sum[r][v] = fma(d, xr, w[v], sum[r][v]);
  }
  if constexpr (J + 1 < Dec::kStepWeights) accumulate<Dec, J + 1>(decoder, x, k, sum);
}

// kRows rows times kGroups neighbouring groups that lie side by side from group g on.
template <DType kType, std::size_t kRows, std::size_t kGroups>
HWY_NOINLINE void direct(const PackedMatrix::Impl& m, std::size_t g, const float* x, float* y) {
  using Dec = Decoder<kType>;
  constexpr std::size_t kVectors = kGroups * kPerGroup;
  constexpr std::size_t kBytes = block_shape(kType).bytes;
  const Wide d;
  WideV sum[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; r++) {
    for (std::size_t v = 0; v < kVectors; v++) sum[r][v] = hn::Zero(d);
  }
  const std::byte* block = m.block(g, 0);
  const std::size_t stride = m.width(g) * kBytes;
  constexpr std::size_t kStepBytes = kGroups * kBytes / Dec::kSteps;
  const std::size_t ahead = (kAhead + stride - 1) / stride * stride;
  const float* xb = x;
  for (std::size_t b = 0; b < m.blocks; b++, block += stride) {
    Dec decoder[kVectors];
    for (std::size_t v = 0; v < kVectors; v++) {
      decoder[v].start(block + v / kPerGroup * kBytes, v % kPerGroup * kWide);
    }
    for (std::size_t t = 0; t < Dec::kSteps; t++, xb += Dec::kStepWeights) {
      // Hardware does not follow this many interleaved streams; memory order is the order of use.
      for (std::size_t i = 0; i < kStepBytes; i += 64) {
        hwy::Prefetch(block + ahead + t * kStepBytes + i);
      }
      for (std::size_t v = 0; v < kVectors; v++) decoder[v].step(t);
      accumulate<Dec, 0>(decoder, xb, m.k, sum);
    }
  }
  for (std::size_t r = 0; r < kRows; r++) {
    for (std::size_t v = 0; v < kVectors; v++) {
      const std::size_t c = g * kGroup + v * kWide;
      const std::size_t count = valid(m.n, c);
      if (count == kWide) {
        hn::StoreU(sum[r][v], d, y + r * m.n + c);
      } else {
        store_some(sum[r][v], y + r * m.n + c, count);
      }
    }
  }
}

// `count` side-by-side groups from g on, in the largest tiles that fit.
template <DType kType, std::size_t kRows, std::size_t kGroups = direct_groups(kRows)>
HWY_INLINE void direct_run(const PackedMatrix::Impl& m, std::size_t g, std::size_t count,
                           const float* x, float* y) {
  for (; count >= kGroups; count -= kGroups, g += kGroups)
    direct<kType, kRows, kGroups>(m, g, x, y);
  if constexpr (kGroups > 1) direct_run<kType, kRows, kGroups / 2>(m, g, count, x, y);
}

template <DType kType, std::size_t kRows>
HWY_INLINE void direct_rows_run(std::size_t rows, const PackedMatrix::Impl& m, std::size_t g,
                                std::size_t count, const float* x, float* y) {
  if (rows == kRows) return direct_run<kType, kRows>(m, g, count, x, y);
  if constexpr (kRows > 1) direct_rows_run<kType, kRows - 1>(rows, m, g, count, x, y);
}

template <DType kType>
void linear_direct(const PackedMatrix::Impl& m, const float* x, float* y, std::size_t rows,
                   Range groups) {
  constexpr std::size_t kMost = direct_rows(kType);
  const std::size_t tiles = (rows + kMost - 1) / kMost;
  for (std::size_t g = groups.begin; g < groups.end;) {
    const std::size_t end = std::min(groups.end, (g / kInterleave + 1) * kInterleave);
    for (std::size_t i = 0; i < tiles; i++) {
      const std::size_t r = rows * i / tiles;
      direct_rows_run<kType, kMost>(rows * (i + 1) / tiles - r, m, g, end - g, x + r * m.k,
                                    y + r * m.n);
    }
    g = end;
  }
}

template <class Dec, std::size_t J>
HWY_INLINE void expand(const Dec& decoder, std::size_t columns, float* panel) {
  hn::Store(decoder.template at<J>(), Wide(), panel + J * columns);
  if constexpr (J + 1 < Dec::kStepWeights) expand<Dec, J + 1>(decoder, columns, panel);
}

// Dequantises blocks [b0, b1) of `groups` (1 or 2) groups into panel[k][16 * groups].
template <DType kType>
HWY_NOINLINE void fill_panel(const PackedMatrix::Impl& m, std::size_t g, std::size_t groups,
                             std::size_t b0, std::size_t b1, float* panel) {
  using Dec = Decoder<kType>;
  const std::size_t columns = groups * kGroup;
  for (std::size_t i = 0; i < groups; i++) {
    float* out = panel + i * kGroup;
    for (std::size_t b = b0; b < b1; b++) {
      const std::byte* block = m.block(g + i, b);
      Dec decoder[kPerGroup];
      for (std::size_t v = 0; v < kPerGroup; v++) decoder[v].start(block, v * kWide);
      for (std::size_t t = 0; t < Dec::kSteps; t++, out += Dec::kStepWeights * columns) {
        for (std::size_t v = 0; v < kPerGroup; v++) {
          decoder[v].step(t);
          expand<Dec, 0>(decoder[v], columns, out + v * kWide);
        }
      }
    }
  }
}

struct Tile {
  const float* panel;   // first column of the tile in panel[depth][columns]
  std::size_t columns;  // of the panel
  std::size_t depth;
  const float* x;  // x[row][k] at the panel's first k
  std::size_t k;
  float* y;  // y[row][n] at the tile's first column
  std::size_t n;
  bool first;  // the chains start here; else they continue from y
};

template <std::size_t kRows, std::size_t kVectors>
HWY_NOINLINE void tile_full(const Tile& t, const std::size_t (&count)[2]) {
  const Wide d;
  WideV sum[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; r++) {
    for (std::size_t v = 0; v < kVectors; v++) {
      const float* y = t.y + r * t.n + v * kWide;
      sum[r][v] = t.first             ? hn::Zero(d)
                  : count[v] == kWide ? hn::LoadU(d, y)
                                      : load_some(y, count[v]);
    }
  }
  const float* panel = t.panel;
  const float* x = t.x;
  for (std::size_t i = 0; i < t.depth; i++, panel += t.columns, x++) {
    WideV w[kVectors];
    for (std::size_t v = 0; v < kVectors; v++) w[v] = hn::Load(d, panel + v * kWide);
    for (std::size_t r = 0; r < kRows; r++) {
      const WideV xr = hn::Set(d, x[r * t.k]);
      for (std::size_t v = 0; v < kVectors; v++) sum[r][v] = fma(d, xr, w[v], sum[r][v]);
    }
  }
  for (std::size_t r = 0; r < kRows; r++) {
    for (std::size_t v = 0; v < kVectors; v++) {
      float* y = t.y + r * t.n + v * kWide;
      if (count[v] == kWide) {
        hn::StoreU(sum[r][v], d, y);
      } else {
        store_some(sum[r][v], y, count[v]);
      }
    }
  }
}

template <std::size_t kRows, std::size_t kVectors>
HWY_INLINE void tile_rows(std::size_t rows, const Tile& t, const std::size_t (&count)[2]) {
  if (rows == kRows) return tile_full<kRows, kVectors>(t, count);
  if constexpr (kRows > 1) tile_rows<kRows - 1, kVectors>(rows, t, count);
}

template <DType kType>
void linear_panels(const PackedMatrix::Impl& m, const float* x, float* y, std::size_t rows,
                   Range groups) {
  constexpr std::size_t kBlock = block_shape(kType).weights;
  HWY_ALIGN float panel[kDepth * kPanelColumns];
  const std::size_t tiles = (rows + kTileRows - 1) / kTileRows;
  const std::size_t depths = (m.k + kDepth - 1) / kDepth;
  for (std::size_t depth = 0; depth < depths; depth++) {
    const std::size_t b0 = m.blocks * depth / depths, b1 = m.blocks * (depth + 1) / depths;
    for (std::size_t g = groups.begin; g < groups.end; g += 2) {
      const std::size_t pair = std::min<std::size_t>(2, groups.end - g);
      const std::size_t columns = pair * kGroup;
      fill_panel<kType>(m, g, pair, b0, b1, panel);
      for (std::size_t i = 0; i < tiles; i++) {
        const std::size_t r = rows * i / tiles, height = rows * (i + 1) / tiles - r;
        for (std::size_t c = 0; c < columns; c += 2 * kWide) {
          const std::size_t column = g * kGroup + c;
          const std::size_t count[2] = {valid(m.n, column), valid(m.n, column + kWide)};
          const Tile tile{panel + c,
                          columns,
                          (b1 - b0) * kBlock,
                          x + r * m.k + b0 * kBlock,
                          m.k,
                          y + r * m.n + column,
                          m.n,
                          depth == 0};
          if (columns - c > kWide) {
            tile_rows<kTileRows, 2>(height, tile, count);
          } else {
            tile_rows<kTileRows, 1>(height, tile, count);
          }
        }
      }
    }
  }
}

template <DType kType>
void linear_typed(const PackedMatrix::Impl& m, const float* x, float* y, std::size_t rows,
                  Range groups) {
  if (rows <= 2 * direct_rows(kType) - 1) return linear_direct<kType>(m, x, y, rows, groups);
  for (std::size_t r = 0; r < rows; r += kRowBlock) {
    linear_panels<kType>(m, x + r * m.k, y + r * m.n, std::min(kRowBlock, rows - r), groups);
  }
}

void linear_any(const PackedMatrix::Impl& m, const float* x, float* y, std::size_t rows,
                Range groups) {
  switch (m.type) {
    case DType::f32:
      return linear_typed<DType::f32>(m, x, y, rows, groups);
    case DType::f16:
      return linear_typed<DType::f16>(m, x, y, rows, groups);
    case DType::bf16:
      return linear_typed<DType::bf16>(m, x, y, rows, groups);
    case DType::q8_0:
      return linear_typed<DType::q8_0>(m, x, y, rows, groups);
    case DType::q4_0:
      return linear_typed<DType::q4_0>(m, x, y, rows, groups);
    case DType::q4_1:
      return linear_typed<DType::q4_1>(m, x, y, rows, groups);
    case DType::q6_k:
      return linear_typed<DType::q6_k>(m, x, y, rows, groups);
  }
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fixpoint::kernels {

HWY_EXPORT(linear_any);

void linear(const PackedMatrix& w, const float* x, float* y, std::size_t m, Share share) {
  const Range groups = cut(w.impl().groups, 1, share);
  if (m == 0 || groups.begin == groups.end) return;
  HWY_DYNAMIC_DISPATCH(linear_any)(w.impl(), x, y, m, groups);
}

}  // namespace fixpoint::kernels
#endif
