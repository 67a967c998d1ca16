// The shape of a model, from its file's metadata.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cpu.hpp"
#include "local_engine/gguf.hpp"
#include "local_engine/result.hpp"

namespace fixpoint::engine {

// A decoder of the "llama" architecture: pre-norm blocks of grouped-query attention with rotary
// positions and a SiLU-gated feed-forward layer.
struct ModelConfig {
  std::size_t layers = 0;
  std::size_t hidden = 0;    // width of the residual stream
  std::size_t heads = 0;     // query heads
  std::size_t kv_heads = 0;  // key and value heads; divides heads
  std::size_t head_dim = 0;
  std::size_t ffn = 0;  // inner width of the feed-forward layer
  std::size_t vocabulary = 0;
  std::size_t context = 0;     // tokens, as the model was trained
  std::size_t rotary_dim = 0;  // leading dimensions of a head that are rotated
  float rms_eps = 0;
  double rope_base = 10'000;  // the format's default
  double rope_scale = 1;      // positions are divided by it ("linear" scaling)
  // How the file orders a head's rows: converters to GGUF make the two of a pair neighbours.
  kernels::RopePairing rope_pairing = kernels::RopePairing::adjacent;

  std::size_t q_width() const { return heads * head_dim; }
  std::size_t kv_width() const { return kv_heads * head_dim; }
};

// Positions that the profile's sine and cosine are exact enough for (kernels/cpu.hpp).
inline constexpr std::size_t kMaxContext = std::size_t{1} << 20;

// Errors: bad_model_file for a missing, mistyped or absurd value; unsupported for another
// architecture or a setting that would change the forward pass and is not implemented.
Result<ModelConfig> read_model_config(const GgufHeader& header);

// frequency[i] = base^(-2i / rotary_dim) / scale / factor[i], i < rotary_dim / 2, computed in
// double and rounded once. `factors` is empty or has rotary_dim / 2 positive values (Llama 3's
// "rope_freqs"). Uses only correctly rounded operations, so the result is the same on every
// machine; libm's pow is not.
std::vector<float> rope_frequencies(const ModelConfig& config, std::span<const float> factors);

}  // namespace fixpoint::engine
