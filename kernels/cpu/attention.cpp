// Attention over a KV cache of leaves. See deploy/decisions/0002-cpu-v1.md for the order.
//
// Queries (a row and a head) that share a key/value head and a leaf are computed together, up to
// kQueryTile at a time, so that prefill and grouped heads read the leaf once. Each query's own
// chain, maximum, sums and folds are what they would be alone.
#include <algorithm>
#include <limits>

#include "kernels/cpu/share.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include "kernels/cpu/targets.hpp"
// Includes this file once per target.
#include <hwy/foreach_target.h>

#include "kernels/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fixpoint::kernels::HWY_NAMESPACE {

constexpr std::size_t kL = kLeafTokens;
constexpr std::size_t kMaxHeadDim = 256;
constexpr std::size_t kQueryTile = 4;  // queries whose chains stand in registers together
constexpr std::size_t kQueries = 16;   // queries that walk over the leaves together
constexpr std::size_t kVectors = kManyRegisters ? 4 : 2;
static_assert(kL % (kVectors * kWide) == 0 && kL % 16 == 0);

// A partial softmax: maximum, sum of exp(s - maximum), and the weighted sum of values.
struct Partial {
  float most, sum;
  HWY_ALIGN float out[kMaxHeadDim];
};

struct Query {
  const AttentionRow* row;
  const float* q;  // of its head
  float* out;
  std::size_t offset;  // of its key/value head in a leaf
  Partial leaf, group, total;
  HWY_ALIGN float p[kL];  // scores, then exp(score - maximum)
};

struct Shape {
  std::size_t head_dim;
  float scale;
};

// Visible tokens of leaf i.
HWY_INLINE std::size_t visible(const Query& q, std::size_t leaf) {
  return std::min(kL, q.row->position + 1 - leaf * kL);
}

template <std::size_t kCount>
HWY_INLINE void scores(Query* const* queries, const float* keys, const Shape& shape,
                       std::size_t tokens) {
  const Wide d;
  for (std::size_t t = 0; t < tokens; t += kVectors * kWide) {
    hn::Vec<Wide> s[kCount][kVectors];
    for (std::size_t i = 0; i < kCount; i++) {
      for (std::size_t v = 0; v < kVectors; v++) s[i][v] = hn::Zero(d);
    }
    const float* k = keys + t;
    for (std::size_t j = 0; j < shape.head_dim; j++, k += kL) {
      hn::Vec<Wide> key[kVectors];
      for (std::size_t v = 0; v < kVectors; v++) key[v] = hn::LoadU(d, k + v * kWide);
      for (std::size_t i = 0; i < kCount; i++) {
        const auto q = hn::Set(d, queries[i]->q[j]);
        for (std::size_t v = 0; v < kVectors; v++) s[i][v] = fma(d, q, key[v], s[i][v]);
      }
    }
    for (std::size_t i = 0; i < kCount; i++) {
      for (std::size_t v = 0; v < kVectors; v++) {
        hn::Store(hn::Mul(s[i][v], hn::Set(d, shape.scale)), d, queries[i]->p + t + v * kWide);
      }
    }
  }
}

// Turns the leaf's scores into exponentials and takes their maximum and sum. Lanes of unseen tokens
// may hold anything before and hold zero after.
HWY_INLINE void exponentials(Query& q, std::size_t tokens) {
  const Wide d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto most = lowest;
  for (std::size_t t = 0; t < tokens; t += kWide) {
    const auto seen = hn::FirstN(d, tokens - t);
    most = hn::Max(most, hn::IfThenElse(seen, hn::Load(d, q.p + t), lowest));
  }
  HWY_ALIGN float lanes[16];
  hn::Store(most, d, lanes);
  float m = lanes[0];
  for (std::size_t i = 1; i < kWide; i++) m = lanes[i] > m ? lanes[i] : m;
  q.leaf.most = m;
  for (std::size_t v = 0; v < 16; v += kWide) {
    auto sum = hn::Zero(d);
    for (std::size_t t = v; t < kL; t += 16) {
      auto e = hn::Zero(d);
      if (t < tokens) {
        const auto seen = hn::FirstN(d, tokens - t);
        e = exp_v(d, hn::Sub(hn::Load(d, q.p + t), hn::Set(d, m)));
        e = hn::IfThenElseZero(seen, e);
      }
      hn::Store(e, d, q.p + t);
      sum = hn::Add(sum, e);
    }
    hn::Store(sum, d, lanes + v);
  }
  q.leaf.sum = combine_lanes(lanes);
}

// Weighted sums of kCount queries over dimensions [j, j + kSpan * Lanes(d)) of `tokens` values.
template <std::size_t kCount, std::size_t kSpan, class D>
HWY_INLINE void weighted(D d, Query* const* queries, const float* values, const Shape& shape,
                         std::size_t j, const std::size_t* tokens) {
  constexpr std::size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> o[kCount][kSpan];
  std::size_t common = tokens[0];
  for (std::size_t i = 0; i < kCount; i++) {
    common = std::min(common, tokens[i]);
    for (std::size_t v = 0; v < kSpan; v++) o[i][v] = hn::Zero(d);
  }
  const float* value = values + j;
  for (std::size_t t = 0; t < common; t++, value += shape.head_dim) {
    hn::Vec<D> x[kSpan];
    for (std::size_t v = 0; v < kSpan; v++) x[v] = hn::LoadU(d, value + v * kLanes);
    for (std::size_t i = 0; i < kCount; i++) {
      const auto p = hn::Set(d, queries[i]->p[t]);
      for (std::size_t v = 0; v < kSpan; v++) o[i][v] = fma(d, p, x[v], o[i][v]);
    }
  }
  for (std::size_t i = 0; i < kCount; i++) {
    // Tokens that this query sees and another of the tile does not.
    const float* own = value;
    for (std::size_t t = common; t < tokens[i]; t++, own += shape.head_dim) {
      const auto p = hn::Set(d, queries[i]->p[t]);
      for (std::size_t v = 0; v < kSpan; v++) {
        o[i][v] = fma(d, p, hn::LoadU(d, own + v * kLanes), o[i][v]);
      }
    }
    for (std::size_t v = 0; v < kSpan; v++) {
      hn::StoreU(o[i][v], d, queries[i]->leaf.out + j + v * kLanes);
    }
  }
}

// One leaf for kCount queries of one key/value head: their `leaf` partials.
template <std::size_t kCount>
HWY_NOINLINE void leaf_tile(Query* const* queries, std::size_t leaf, const Shape& shape) {
  const float* keys = queries[0]->row->key_leaves[leaf] + queries[0]->offset;
  const float* values = queries[0]->row->value_leaves[leaf] + queries[0]->offset;
  std::size_t tokens[kCount], most = 0;
  for (std::size_t i = 0; i < kCount; i++) {
    tokens[i] = visible(*queries[i], leaf);
    most = std::max(most, tokens[i]);
  }
  scores<kCount>(queries, keys, shape, most);
  for (std::size_t i = 0; i < kCount; i++) exponentials(*queries[i], tokens[i]);
  std::size_t j = 0;
  for (; j + kVectors * kWide <= shape.head_dim; j += kVectors * kWide) {
    weighted<kCount, kVectors>(Wide(), queries, values, shape, j, tokens);
  }
  for (; j + kWide <= shape.head_dim; j += kWide) {
    weighted<kCount, 1>(Wide(), queries, values, shape, j, tokens);
  }
  for (; j < shape.head_dim; j++) weighted<kCount, 1>(One(), queries, values, shape, j, tokens);
}

template <std::size_t kCount = kQueryTile>
HWY_INLINE void leaf_some(std::size_t count, Query* const* queries, std::size_t leaf,
                          const Shape& shape) {
  if (count == kCount) return leaf_tile<kCount>(queries, leaf, shape);
  if constexpr (kCount > 1) leaf_some<kCount - 1>(count, queries, leaf, shape);
}

template <class D>
HWY_INLINE void fold_at(D d, Partial& a, const Partial& b, std::size_t j, float x, float y) {
  const auto scaled = hn::Mul(hn::LoadU(d, b.out + j), hn::Set(d, y));
  hn::StoreU(fma(d, hn::LoadU(d, a.out + j), hn::Set(d, x), scaled), d, a.out + j);
}

HWY_INLINE void copy(Partial& a, const Partial& b, std::size_t head_dim) {
  a.most = b.most;
  a.sum = b.sum;
  for (std::size_t j = 0; j < head_dim; j++) a.out[j] = b.out[j];
}

// a = a joined with b, which covers later tokens. Each value: fma(a, x, b * y).
HWY_INLINE void fold(Partial& a, const Partial& b, std::size_t head_dim) {
  const One one;
  const float most = b.most > a.most ? b.most : a.most;
  const float x = hn::GetLane(exp_v(one, hn::Set(one, a.most - most)));
  const float y = hn::GetLane(exp_v(one, hn::Set(one, b.most - most)));
  a.most = most;
  a.sum = hn::GetLane(fma(one, hn::Set(one, a.sum), hn::Set(one, x), hn::Set(one, b.sum * y)));
  std::size_t j = 0;
  for (; j + kWide <= head_dim; j += kWide) fold_at(Wide(), a, b, j, x, y);
  for (; j < head_dim; j++) fold_at(one, a, b, j, x, y);
}

HWY_INLINE bool same_keys(const Query& a, const Query& b, std::size_t leaf) {
  return a.offset == b.offset && a.row->key_leaves[leaf] == b.row->key_leaves[leaf] &&
         a.row->value_leaves[leaf] == b.row->value_leaves[leaf];
}

// The `leaf` partials of all queries that see the leaf, tile by tile.
HWY_INLINE void visit_leaf(Query* queries, std::size_t count, std::size_t leaf,
                           const Shape& shape) {
  for (std::size_t at = 0; at < count;) {
    Query* tile[kQueryTile];
    std::size_t n = 0;
    for (; at < count && n < kQueryTile; at++) {
      Query& q = queries[at];
      if (q.row->position < leaf * kL) continue;
      if (n > 0 && !same_keys(*tile[0], q, leaf)) break;
      tile[n++] = &q;
    }
    if (n > 0) leaf_some(n, tile, leaf, shape);
  }
}

// Folds leaf i into the group, and the group, when it ends here, into the total.
HWY_INLINE void fold_leaf(Query& q, std::size_t i, std::size_t head_dim) {
  const std::size_t last = q.row->position / kL;
  if (i > last) return;
  if (i % kGroupLeaves == 0) {
    copy(q.group, q.leaf, head_dim);
  } else {
    fold(q.group, q.leaf, head_dim);
  }
  if (i % kGroupLeaves != kGroupLeaves - 1 && i != last) return;
  if (i < kGroupLeaves) {
    copy(q.total, q.group, head_dim);
  } else {
    fold(q.total, q.group, head_dim);
  }
}

HWY_NOINLINE void walk(Query* queries, std::size_t count, const Shape& shape) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < count; i++) last = std::max(last, queries[i].row->position / kL);
  for (std::size_t leaf = 0; leaf <= last; leaf++) {
    visit_leaf(queries, count, leaf, shape);
    for (std::size_t i = 0; i < count; i++) fold_leaf(queries[i], leaf, shape.head_dim);
  }
  for (std::size_t i = 0; i < count; i++) {
    const Partial& total = queries[i].total;
    for (std::size_t j = 0; j < shape.head_dim; j++) queries[i].out[j] = total.out[j] / total.sum;
  }
}

// Queries [begin, end) of all rows' heads, a query being row * heads + head.
void attention_range(const AttentionRow* rows, std::size_t heads, std::size_t kv_heads,
                     std::size_t head_dim, float scale, std::size_t begin, std::size_t end) {
  const Shape shape{head_dim, scale};
  const std::size_t per_kv = heads / kv_heads;
  const std::size_t block = std::max<std::size_t>(1, kQueries / per_kv);
  HWY_ALIGN Query queries[kQueries];
  const std::size_t last = (end + heads - 1) / heads;
  for (std::size_t r0 = begin / heads, r1; r0 < last; r0 = r1) {
    for (r1 = r0 + 1; r1 < last && r1 < r0 + block; r1++) {
      if (rows[r1].key_leaves[0] != rows[r0].key_leaves[0]) break;
    }
    // Rows of one sequence walk together, a key/value head at a time. A lone row (decode) walks
    // with all heads, so that it reads its leaves in the order of memory.
    const std::size_t kv_step = r1 - r0 > 1 ? 1 : kv_heads;
    for (std::size_t kv = 0; kv < kv_heads; kv += kv_step) {
      std::size_t count = 0;
      for (std::size_t r = r0; r < r1; r++) {
        for (std::size_t h = kv * per_kv; h < (kv + kv_step) * per_kv; h++) {
          if (r * heads + h < begin || r * heads + h >= end) continue;
          if (count == kQueries) {
            walk(queries, count, shape);
            count = 0;
          }
          Query& q = queries[count++];
          q.row = &rows[r];
          q.q = rows[r].q + h * head_dim;
          q.out = rows[r].out + h * head_dim;
          q.offset = h / per_kv * head_dim * kL;
        }
      }
      if (count > 0) walk(queries, count, shape);
    }
  }
}

}  // namespace fixpoint::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fixpoint::kernels {

HWY_EXPORT(attention_range);

namespace {

// The first query of a share. A row costs as many leaves as it sees; shares get equal costs.
std::size_t query_at(std::span<const AttentionRow> rows, std::size_t heads, int rank, int size) {
  const auto cost = [](const AttentionRow& row) { return row.position / kLeafTokens + 1; };
  std::size_t total = 0;
  for (const AttentionRow& row : rows) total += cost(row);
  std::size_t left =
      total * heads * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size);
  for (std::size_t r = 0; r < rows.size(); r++) {
    const std::size_t row_cost = cost(rows[r]);
    if (left < row_cost * heads) return r * heads + left / row_cost;
    left -= row_cost * heads;
  }
  return rows.size() * heads;
}

}  // namespace

void attention(std::span<const AttentionRow> rows, std::size_t heads, std::size_t kv_heads,
               std::size_t head_dim, float scale, Share share) {
  const std::size_t begin = query_at(rows, heads, share.rank, share.size);
  const std::size_t end = query_at(rows, heads, share.rank + 1, share.size);
  if (begin == end) return;
  HWY_DYNAMIC_DISPATCH(attention_range)
  (rows.data(), heads, kv_heads, head_dim, scale, begin, end);
}

void store_kv(const float* k, const float* v, float* key_leaf, float* value_leaf,
              std::size_t position, std::size_t kv_heads, std::size_t head_dim) {
  const std::size_t slot = position % kLeafTokens;
  for (std::size_t h = 0; h < kv_heads; h++) {
    for (std::size_t j = 0; j < head_dim; j++) {
      key_leaf[(h * head_dim + j) * kLeafTokens + slot] = k[h * head_dim + j];
      value_leaf[(h * kLeafTokens + slot) * head_dim + j] = v[h * head_dim + j];
    }
  }
}

}  // namespace fixpoint::kernels
#endif
