// The cpu-v1 numerics profile: the operations of a transformer's forward pass on any CPU.
//
// Contract (deploy/decisions/0002-cpu-v1.md): every output is a pure function of its own row's
// inputs and the weights. No function here looks at the number of rows, threads or the vector width
// when it decides the order of a sum, so none of them can change a bit.
//
// All functions are called by each thread of a Team with its own Share and write disjoint outputs;
// callers put a barrier between an operation and one that reads its output. None allocates, none
// throws, none does I/O (pack() alone allocates: std::bad_alloc). Arrays are dense, row-major fp32
// unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace fixpoint::kernels {

inline constexpr std::string_view kCpuProfile = "cpu-v1";

// Storage types of weights, with GGUF's block layouts (32 or 256 weights a block).
enum class DType : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q6_k };

// Weights per block of `type` (1 for the float types); a row's length is a multiple of it.
std::size_t block_size(DType type);
// Bytes of a row of k weights as stored in a file. Precondition: k % block_size(type) == 0.
std::size_t row_bytes(DType type, std::size_t k);
// Dequantises one stored row of k weights; each weight is one stated expression, rounded once
// (Q4_1: fma(d, q, m); Q4_0: fma(d, q, -8d), which is d * (q - 8); Q8_0: d * q; Q6_K: (d * scale) *
// q; F16, BF16: exact).
void dequantise_row(DType type, const std::byte* row, std::size_t k, float* out);

// One thread's part of an operation.
struct Share {
  int rank = 0;  // 0 <= rank < size
  int size = 1;
};

// A weight matrix [n, k] repacked at load so that a SIMD lane is an output column.
// Immutable after pack(); safe to share between threads. Owns its memory (64-byte aligned). A
// moved-from matrix may only be assigned or destroyed.
class PackedMatrix {
 public:
  // rows: n stored rows of row_bytes(type, k) bytes each, any alignment. Any n and any legal k.
  static PackedMatrix pack(DType type, const std::byte* rows, std::size_t n, std::size_t k);

  PackedMatrix();
  PackedMatrix(PackedMatrix&&) noexcept;
  PackedMatrix& operator=(PackedMatrix&&) noexcept;
  ~PackedMatrix();

  std::size_t n() const;
  std::size_t k() const;
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// y[m, n] = x[m, k] W^T. Each output is one chain: y = 0; for k ascending: y = fma(x[k], w[k], y).
// y must not overlap x. Threads split columns, so a share may read all of x.
void linear(const PackedMatrix& w, const float* x, float* y, std::size_t m, Share share);

// y[m, d] = x / sqrt(mean(x^2) + eps) * weight. The sum of squares runs over 16 virtual fp32 lanes,
// ascending, met by one fixed tree. y may be x.
void rms_norm(const float* x, const float* weight, float eps, float* y, std::size_t m,
              std::size_t d, Share share);

// Cosine and sine of position * frequency[i], i < rotary_dim / 2, interleaved as [cos, sin] pairs.
void rope_table(std::size_t position, std::span<const float> frequency, float* out);
// How a rotation pairs the dimensions of a head: `adjacent` pairs (2i, 2i+1), as GGUF files of the
// "llama" architecture are permuted for; `halves` pairs (i, i + rotary_dim/2), as Hugging Face
// does.
enum class RopePairing : std::uint8_t { adjacent, halves };
// Rotates m rows of `heads` heads of head_dim values in place; tables[r] is row r's rope_table.
void rope(float* x, const float* const* tables, std::size_t m, std::size_t heads,
          std::size_t head_dim, std::size_t rotary_dim, RopePairing pairing, Share share);

// gate[i] = silu(gate[i]) * up[i]
void silu_mul(float* gate, const float* up, std::size_t count, Share share);
// x[i] = x[i] + y[i]
void add(float* x, const float* y, std::size_t count, Share share);

// Attention over a KV cache cut into leaves of kLeafTokens tokens at absolute positions 0, L, 2L,
// ... A leaf of one layer holds keys as [kv_head][head_dim][L] (a lane is a token) and values as
// [kv_head][L][head_dim] (a lane is a dimension). Self-contained leaves: maximum, exp, sum and
// output of a leaf never look outside it. Leaves fold left to right in a group of kGroupLeaves,
// groups fold left to right, so the order depends on the row's own position only.
inline constexpr std::size_t kLeafTokens = 64;
inline constexpr std::size_t kGroupLeaves = 16;

// Writes one token's key and value [kv_heads * head_dim] into slot position % kLeafTokens of a
// leaf.
void store_kv(const float* k, const float* v, float* key_leaf, float* value_leaf,
              std::size_t position, std::size_t kv_heads, std::size_t head_dim);

struct AttentionRow {
  const float* q;                  // [heads * head_dim]
  float* out;                      // [heads * head_dim]
  const float* const* key_leaves;  // leaf i covers positions [i * L, (i + 1) * L)
  const float* const* value_leaves;
  std::size_t position;  // sees keys 0 .. position
};
// Rows of one sequence may stand next to each other in ascending position (prefill); the kernel may
// use that for speed, never for order. heads % kv_heads == 0, head_dim <= 256.
void attention(std::span<const AttentionRow> rows, std::size_t heads, std::size_t kv_heads,
               std::size_t head_dim, float scale, Share share);

// Log-probabilities of one row of n logits, by a fixed tree: out[i] = logits[i] -
// logsumexp(logits). out may be logits.
void log_softmax(const float* logits, float* out, std::size_t n);

// Correctly specified elementary functions: one formula, the same bits on every CPU. Never libm.
float exp_f32(float x);
float log_f32(float x);
float sin_f32(float x);  // accurate for |x| up to the largest position (2^20) times frequency 1
float cos_f32(float x);

}  // namespace fixpoint::kernels
