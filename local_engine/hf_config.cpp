#include "local_engine/hf_config.hpp"

#include "local_engine/hf_json.hpp"

namespace fixpoint::engine {
namespace {

using Json = nlohmann::json;

void check_architecture(HfObject& config) {
  const Json* names = config.find("architectures");
  if (!names) return config.bad("architectures", "is missing");
  if (*names != Json::array({"LlamaForCausalLM"})) {
    config.unsupported("architectures",
                       "is " + HfObject::shown(*names) + "; [\"LlamaForCausalLM\"] is implemented");
  }
}

// Each would change the forward pass.
void check_settings(HfObject& config) {
  const std::string* activation = config.text("hidden_act");
  if (activation && *activation != "silu") {
    config.unsupported("hidden_act", "is \"" + *activation + "\"; \"silu\" is implemented");
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (config.boolean(bias, false)) config.unsupported(bias, "is not implemented");
  }
  for (const char* key : {"rope_scaling", "quantization_config"}) {
    if (const Json* value = config.find(key)) {
      config.unsupported(key, "is " + HfObject::shown(*value) + "; only null is implemented");
    }
  }
  if (config.positive("partial_rotary_factor", 1, 1) != 1) {
    config.unsupported("partial_rotary_factor", "must be 1");
  }
}

// rope_theta stands in config.json itself, or since transformers 5 in its rope_parameters.
double read_rope_base(HfObject& config) {
  constexpr double kDefault = 10'000, kMost = 1e12;
  const Json* nested = config.find("rope_parameters");
  if (!nested) return config.positive("rope_theta", kMost, kDefault);
  HfObject rope("config.json: \"rope_parameters\"", *nested);
  const std::string* type = rope.text("rope_type");
  if (type && *type != "default") {
    rope.unsupported("rope_type", "is \"" + *type + "\"; \"default\" is implemented");
  }
  if (rope.positive("partial_rotary_factor", 1, 1) != 1) {
    rope.unsupported("partial_rotary_factor", "must be 1");
  }
  const double base =
      rope.positive("rope_theta", kMost, config.positive("rope_theta", kMost, kDefault));
  if (rope.error && !config.error) config.error = rope.error;
  return base;
}

}  // namespace

// The limits are those of read_model_config(): several times the largest models.
Result<HfConfig> read_hf_config(const Json& config_json) {
  HfObject config("config.json", config_json);
  check_architecture(config);
  check_settings(config);
  HfConfig out;
  ModelConfig& model = out.model;
  model.layers = config.count("num_hidden_layers", 1024);
  model.hidden = config.count("hidden_size", 65'536);
  model.heads = config.count("num_attention_heads", 1024);
  model.kv_heads = config.count("num_key_value_heads", 1024, model.heads);
  model.ffn = config.count("intermediate_size", 1 << 20);
  model.vocabulary = config.count("vocab_size", std::size_t{1} << 24);
  model.context = config.count("max_position_embeddings", std::size_t{1} << 32);
  model.rms_eps = static_cast<float>(config.positive("rms_norm_eps", 1));
  model.rope_base = read_rope_base(config);
  model.rope_pairing = kernels::RopePairing::halves;
  out.tied = config.boolean("tie_word_embeddings", false);
  if (config.error) return tl::make_unexpected(*config.error);

  if (!config.find("head_dim") && model.hidden % model.heads != 0) {
    config.bad("num_attention_heads", "does not divide \"hidden_size\"");
  }
  model.head_dim = config.count("head_dim", 256, model.hidden / model.heads);
  model.rotary_dim = model.head_dim;
  if (model.head_dim == 0 || model.head_dim > 256 || model.head_dim % 2 != 0) {
    config.bad("head_dim", "is " + std::to_string(model.head_dim) +
                               "; even numbers of 2 to 256 are implemented");
  }
  if (model.heads % model.kv_heads != 0) {
    config.bad("num_key_value_heads", "is " + std::to_string(model.kv_heads) +
                                          ", which does not divide the " +
                                          std::to_string(model.heads) + " heads");
  }
  if (config.error) return tl::make_unexpected(*config.error);
  return out;
}

}  // namespace fixpoint::engine
