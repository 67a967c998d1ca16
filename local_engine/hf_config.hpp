// The shape of a model from a Hugging Face config.json.
#pragma once

#include <nlohmann/json.hpp>

#include "local_engine/model_config.hpp"
#include "local_engine/result.hpp"

namespace fixpoint::engine {

struct HfConfig {
  ModelConfig model;
  bool tied = false;  // the head is the embedding
};

// Members that LlamaForCausalLM does not read are ignored, as transformers ignores them. Errors:
// bad_model_file for a missing, mistyped or absurd member; unsupported for another architecture
// than LlamaForCausalLM or a setting that would change the forward pass and is not implemented.
Result<HfConfig> read_hf_config(const nlohmann::json& config_json);

}  // namespace fixpoint::engine
