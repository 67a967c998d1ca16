#include "kernels/cpu/reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace fixpoint::kernels::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Horner's rule, highest power first.
template <std::size_t kCount>
float polynomial(float x, const std::array<float, kCount>& coefficients) {
  float p = coefficients[0];
  for (std::size_t i = 1; i < kCount; i++) p = std::fma(p, x, coefficients[i]);
  return p;
}

float power_of_two(int n) {
  return std::bit_cast<float>((n + 127) << 23);
}

// The nearest integer, ties to even.
float nearest(float x, float factor) {
  return std::fma(x, factor, 12582912.0f) - 12582912.0f;
}

struct SinCos {
  float sine, cosine;
};

SinCos sin_cos(float x) {
  const float n = nearest(x, 0x1.45f306p-1f);
  float r = std::fma(-n, 0x1.921fb6p+0f, x);
  r = std::fma(-n, -0x1.777a5cp-25f, r);
  r = std::fma(-n, -0x1.ee59dap-50f, r);
  const float z = r * r;
  const float s =
      std::fma(r * z, polynomial<3>(z, {-0x1.9ac6fcp-13f, 0x1.110c24p-7f, -0x1.555552p-3f}), r);
  const float c =
      std::fma(z * z, polynomial<3>(z, {0x1.9bd67p-16f, -0x1.6c12cep-10f, 0x1.555554p-5f}),
               std::fma(-0.5f, z, 1.0f));
  switch (static_cast<int>(n) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

// A sum over 16 virtual lanes: item i joins lane i % 16; then lanes meet pairwise, 8 apart first.
class LaneSum {
 public:
  void add(std::size_t i, float value) { lanes_[i % 16] += value; }
  void add_square(std::size_t i, float value) {
    lanes_[i % 16] = std::fma(value, value, lanes_[i % 16]);
  }
  float total() {
    for (std::size_t half = 8; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; i++) lanes_[i] += lanes_[i + half];
    }
    return lanes_[0];
  }

 private:
  std::array<float, 16> lanes_{};
};

struct Partial {
  float most = -kInfinity, sum = 0;
  std::vector<float> out;
};

void fold(Partial& a, const Partial& b) {
  const float most = std::max(a.most, b.most);
  const float x = exp_f32(a.most - most), y = exp_f32(b.most - most);
  a.most = most;
  a.sum = std::fma(a.sum, x, b.sum * y);
  for (std::size_t j = 0; j < a.out.size(); j++) a.out[j] = std::fma(a.out[j], x, b.out[j] * y);
}

Partial attend_leaf(const float* q, const float* keys, const float* values, std::size_t tokens,
                    std::size_t head_dim, float scale) {
  std::vector<float> score(tokens);
  Partial leaf;
  for (std::size_t t = 0; t < tokens; t++) {
    float s = 0;
    for (std::size_t j = 0; j < head_dim; j++) s = std::fma(q[j], keys[j * kLeafTokens + t], s);
    score[t] = s * scale;
    leaf.most = std::max(leaf.most, score[t]);
  }
  LaneSum sum;
  leaf.out.assign(head_dim, 0.0f);
  for (std::size_t t = 0; t < tokens; t++) {
    const float p = exp_f32(score[t] - leaf.most);
    sum.add(t, p);
    for (std::size_t j = 0; j < head_dim; j++) {
      leaf.out[j] = std::fma(p, values[t * head_dim + j], leaf.out[j]);
    }
  }
  leaf.sum = sum.total();
  return leaf;
}

void attend(const AttentionRow& row, std::size_t head, std::size_t kv_head, std::size_t head_dim,
            float scale) {
  Partial total, group;
  const std::size_t last = row.position / kLeafTokens;
  for (std::size_t leaf = 0; leaf <= last; leaf++) {
    const std::size_t tokens = std::min(kLeafTokens, row.position + 1 - leaf * kLeafTokens);
    const std::size_t offset = kv_head * head_dim * kLeafTokens;
    const Partial part = attend_leaf(row.q + head * head_dim, row.key_leaves[leaf] + offset,
                                     row.value_leaves[leaf] + offset, tokens, head_dim, scale);
    if (leaf % kGroupLeaves == 0) {
      group = part;
    } else {
      fold(group, part);
    }
    if (leaf == last || leaf % kGroupLeaves == kGroupLeaves - 1) {
      if (leaf < kGroupLeaves) {
        total = group;
      } else {
        fold(total, group);
      }
    }
  }
  for (std::size_t j = 0; j < head_dim; j++) {
    row.out[head * head_dim + j] = total.out[j] / total.sum;
  }
}

}  // namespace

float exp_f32(float x) {
  if (std::isnan(x)) return x;
  x = std::min(std::max(x, -104.0f), 89.0f);
  const float n = nearest(x, 0x1.715476p+0f);
  float r = std::fma(-n, 0x1.62e43p-1f, x);
  r = std::fma(-n, -0x1.05c61p-29f, r);
  const float q =
      polynomial<5>(r, {0x1.6d117cp-10f, 0x1.120be2p-7f, 0x1.555518p-5f, 0x1.5554dcp-3f, 0.5f});
  const float p = 1.0f + std::fma(r * r, q, r);
  const int n1 = static_cast<int>(std::floor(n / 2));
  return p * power_of_two(n1) * power_of_two(static_cast<int>(n) - n1);
}

float log_f32(float x) {
  if (!(x >= 0)) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  float e = 0;
  if (x < std::numeric_limits<float>::min()) {
    x *= 0x1p23f;
    e = -23;
  }
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;
  e += static_cast<float>(exponent);
  const float f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1.0f;
  const float p = polynomial<9>(
      f, {0x1.1d8ea6p-4f, -0x1.d635bcp-4f, 0x1.dea282p-4f, -0x1.fcf4c6p-4f, 0x1.23d21ap-3f,
          -0x1.555b4ap-3f, 0x1.999d5ap-3f, -0x1.fffffcp-3f, 0x1.555554p-2f});
  const float z = f * f;
  float u = std::fma(z, f * p, e * -0x1.bd0106p-13f);
  u = f + std::fma(-0.5f, z, u);
  return std::fma(e, 0x1.63p-1f, u);
}

float sin_f32(float x) {
  return sin_cos(x).sine;
}
float cos_f32(float x) {
  return sin_cos(x).cosine;
}

void linear(DType type, const std::byte* rows, std::size_t n, std::size_t k, const float* x,
            float* y, std::size_t m) {
  std::vector<float> w(k);
  for (std::size_t c = 0; c < n; c++) {
    dequantise_row(type, rows + c * row_bytes(type, k), k, w.data());
    for (std::size_t r = 0; r < m; r++) {
      float sum = 0;
      for (std::size_t i = 0; i < k; i++) sum = std::fma(x[r * k + i], w[i], sum);
      y[r * n + c] = sum;
    }
  }
}

void rms_norm(const float* x, const float* weight, float eps, float* y, std::size_t m,
              std::size_t d) {
  for (std::size_t r = 0; r < m; r++, x += d, y += d) {
    LaneSum sum;
    for (std::size_t i = 0; i < d; i++) sum.add_square(i, x[i]);
    const float scale = 1.0f / std::sqrt(sum.total() / static_cast<float>(d) + eps);
    for (std::size_t i = 0; i < d; i++) y[i] = x[i] * scale * weight[i];
  }
}

void rope_table(std::size_t position, std::span<const float> frequency, float* out) {
  for (const float f : frequency) {
    const SinCos value = sin_cos(static_cast<float>(position) * f);
    *out++ = value.cosine;
    *out++ = value.sine;
  }
}

void rope(float* x, const float* const* tables, std::size_t m, std::size_t heads,
          std::size_t head_dim, std::size_t rotary_dim, RopePairing pairing) {
  const std::size_t half = rotary_dim / 2;
  for (std::size_t i = 0; i < m * heads; i++, x += head_dim) {
    for (std::size_t j = 0; j < half; j++) {
      const float cosine = tables[i / heads][2 * j], sine = tables[i / heads][2 * j + 1];
      float& a = pairing == RopePairing::adjacent ? x[2 * j] : x[j];
      float& b = pairing == RopePairing::adjacent ? x[2 * j + 1] : x[half + j];
      const float rotated = std::fma(a, cosine, -(b * sine));
      b = std::fma(a, sine, b * cosine);
      a = rotated;
    }
  }
}

void silu_mul(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; i++) {
    gate[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
  }
}

void add(float* x, const float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; i++) x[i] += y[i];
}

void attention(std::span<const AttentionRow> rows, std::size_t heads, std::size_t kv_heads,
               std::size_t head_dim, float scale) {
  for (const AttentionRow& row : rows) {
    for (std::size_t h = 0; h < heads; h++) {
      attend(row, h, h / (heads / kv_heads), head_dim, scale);
    }
  }
}

void log_softmax(const float* logits, float* out, std::size_t n) {
  const float most = *std::max_element(logits, logits + n);
  LaneSum sum;
  for (std::size_t i = 0; i < n; i++) sum.add(i, exp_f32(logits[i] - most));
  const float log_sum = log_f32(sum.total());
  for (std::size_t i = 0; i < n; i++) out[i] = logits[i] - most - log_sum;
}

}  // namespace fixpoint::kernels::reference
