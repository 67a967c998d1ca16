// A model's weights in memory, repacked for the kernels.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/cpu.hpp"
#include "local_engine/gguf.hpp"
#include "local_engine/model_config.hpp"
#include "local_engine/result.hpp"
#include "local_engine/safetensors.hpp"

namespace fixpoint::engine {

struct LayerWeights {
  std::vector<float> attention_norm, ffn_norm;  // [hidden]
  kernels::PackedMatrix q, k, v;                // [q_width | kv_width, hidden]
  kernels::PackedMatrix o;                      // [hidden, q_width]
  kernels::PackedMatrix gate, up;               // [ffn, hidden]
  kernels::PackedMatrix down;                   // [hidden, ffn]
};

// Token embeddings stay in the file's encoding: only single rows of them are read.
struct EmbeddingTable {
  kernels::DType type = kernels::DType::f32;
  std::vector<std::byte> rows;  // [vocabulary] rows of row_bytes(type, hidden)
};

// Owns copies of everything: once loaded, the file may change or go.
struct Weights {
  EmbeddingTable embedding;
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;   // [hidden]
  kernels::PackedMatrix head;       // [vocabulary, hidden]; packed from the embedding where tied
  std::vector<float> rope_factors;  // empty or [rotary_dim / 2]
  std::size_t parameters = 0;       // weights in the file
  std::string dtypes;               // "f32:61,q4_1:210,q8_0:1": tensors per type, by name
};

// Errors: bad_model_file for a missing tensor or a shape that contradicts `config`; unsupported for
// a tensor type without a kernel or a tensor that the architecture does not use (a bias, an
// expert).
Result<Weights> load_weights(const GgufFile& file, const ModelConfig& config);
// The same from Hugging Face's file. `tied`: the head is the embedding, and the file has no other.
Result<Weights> load_weights(const SafetensorsFile& file, const ModelConfig& config, bool tied);

}  // namespace fixpoint::engine
