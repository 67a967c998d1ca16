// What cpu-v1 says, written as plainly as possible: one scalar operation after the other, std::fma
// where the contract fuses. Slow; tests compare every kernel with it bit by bit.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu.hpp"

namespace fixpoint::kernels::reference {

float exp_f32(float x);
float log_f32(float x);
float sin_f32(float x);
float cos_f32(float x);

// `rows`: n stored rows of k weights.
void linear(DType type, const std::byte* rows, std::size_t n, std::size_t k, const float* x,
            float* y, std::size_t m);
void rms_norm(const float* x, const float* weight, float eps, float* y, std::size_t m,
              std::size_t d);
void rope_table(std::size_t position, std::span<const float> frequency, float* out);
void rope(float* x, const float* const* tables, std::size_t m, std::size_t heads,
          std::size_t head_dim, std::size_t rotary_dim, RopePairing pairing);
void silu_mul(float* gate, const float* up, std::size_t count);
void add(float* x, const float* y, std::size_t count);
void attention(std::span<const AttentionRow> rows, std::size_t heads, std::size_t kv_heads,
               std::size_t head_dim, float scale);
void log_softmax(const float* logits, float* out, std::size_t n);

}  // namespace fixpoint::kernels::reference
