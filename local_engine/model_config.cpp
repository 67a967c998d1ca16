#include "local_engine/model_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fixpoint::engine {
namespace {

// Reads "llama.<key>" values and keeps the first error.
class Keys {
 public:
  explicit Keys(const GgufHeader& header) : header_(header) {}

  static std::string full(std::string_view key) { return "llama." + std::string(key); }
  bool has(std::string_view key) const { return header_.find(full(key)) != nullptr; }

  std::size_t count(std::string_view key, std::size_t most,
                    std::optional<std::size_t> fallback = {}) {
    const GgufValue* value = header_.find(full(key));
    if (!value && fallback) return *fallback;
    if (!value) return bad(key, "is missing"), 0;
    const auto number = value->unsigned_integer();
    if (!number || *number == 0 || *number > most) {
      return bad(key, "is " + value->to_text() + "; it must be 1 to " + std::to_string(most)), 0;
    }
    return *number;
  }

  double positive(std::string_view key, double most, std::optional<double> fallback = {}) {
    const GgufValue* value = header_.find(full(key));
    if (!value && fallback) return *fallback;
    if (!value) return bad(key, "is missing"), 0;
    const auto number = value->number();
    if (!number || !(*number > 0) || *number > most) {
      return bad(key, "is " + value->to_text() + "; it must be a positive number of at most " +
                          std::to_string(most)),
             0;
    }
    return *number;
  }

  void bad(std::string_view key, const std::string& what) {
    stop(ErrorCode::bad_model_file, "model metadata \"" + full(key) + "\" " + what);
  }
  void stop(ErrorCode code, std::string message) {
    if (!error) error = Error{code, std::move(message)};
  }

  std::optional<Error> error;

 private:
  const GgufHeader& header_;
};

// Keys that read_model_config() takes into account, and keys that do not touch the forward pass.
// Any other "llama." key might: a file that has one is refused, because ignoring it could change
// the text.
constexpr std::array<std::string_view, 16> kKnownKeys = {"block_count",
                                                         "context_length",
                                                         "embedding_length",
                                                         "feed_forward_length",
                                                         "attention.head_count",
                                                         "attention.head_count_kv",
                                                         "attention.key_length",
                                                         "attention.value_length",
                                                         "attention.layer_norm_rms_epsilon",
                                                         "rope.freq_base",
                                                         "rope.dimension_count",
                                                         "rope.scaling.type",
                                                         "rope.scaling.factor",
                                                         "vocab_size",
                                                         "tensor_data_layout",
                                                         "rope.scaling.original_context_length"};

void check_known_keys(const GgufHeader& header, Keys& keys) {
  constexpr std::string_view kPrefix = "llama.";
  for (const auto& [key, value] : header.metadata) {
    if (!key.starts_with(kPrefix)) continue;
    const auto rest = std::string_view(key).substr(kPrefix.size());
    if (std::find(kKnownKeys.begin(), kKnownKeys.end(), rest) == kKnownKeys.end()) {
      keys.stop(ErrorCode::unsupported, "model metadata \"" + key + "\" = " + value.to_text() +
                                            " is not implemented and could change the answers");
    }
  }
}

void read_rope(const GgufHeader& header, Keys& keys, ModelConfig& config) {
  config.rotary_dim = keys.count("rope.dimension_count", 256, config.head_dim);
  config.rope_base = keys.positive("rope.freq_base", 1e12, 10'000);
  if (config.rotary_dim % 2 != 0 || config.rotary_dim > config.head_dim) {
    keys.bad("rope.dimension_count", "is " + std::to_string(config.rotary_dim) +
                                         "; it must be even and at most the head's dimension " +
                                         std::to_string(config.head_dim));
  }
  const GgufValue* scaling = header.find("llama.rope.scaling.type");
  if (!scaling) {
    if (keys.has("rope.scaling.factor")) {
      keys.stop(ErrorCode::unsupported,
                "model metadata \"llama.rope.scaling.factor\" stands without a scaling type");
    }
    return;
  }
  const std::string* kind = scaling->string();
  if (kind && *kind == "linear") {
    config.rope_scale = keys.positive("rope.scaling.factor", 1e6);
  } else if (!kind || *kind != "none") {
    keys.stop(ErrorCode::unsupported,
              "rope scaling " + scaling->to_text() + " is not implemented; none and linear are");
  }
}

void check_tensor_layout(const GgufHeader& header, Keys& keys) {
  const GgufValue* layout = header.find("llama.tensor_data_layout");
  if (!layout) return;
  // "Meta AI original pth" is what converters of the llama architecture always wrote: adjacent
  // pairs.
  const std::string* text = layout->string();
  if (!text || *text != "Meta AI original pth") {
    keys.stop(ErrorCode::unsupported, "tensor data layout " + layout->to_text() +
                                          " is not implemented; \"Meta AI original pth\" is");
  }
}

// Natural logarithm from x = m * 2^e and log m = 2 atanh((m - 1) / (m + 1)), |m - 1| < 0.42.
double log_exact(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);  // |s| < 0.1716: 12 terms leave less than 1e-19
  double term = s, sum = 0;
  for (int i = 1; i < 26; i += 2) {
    sum += term / i;
    term *= s * s;
  }
  return 2 * sum + exponent * 0.69314718055994530942;
}

// exp by 2^k times a Taylor series on |r| <= 0.35.
double exp_exact(double x) {
  const double k = std::floor(x / 0.69314718055994530942 + 0.5);
  const double r = x - k * 0.69314718055994530942;
  double term = 1, sum = 0;
  for (int i = 1; i < 20; ++i) {
    sum += term;
    term *= r / i;
  }
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace

Result<ModelConfig> read_model_config(const GgufHeader& header) {
  const GgufValue* architecture = header.find("general.architecture");
  const std::string* name = architecture ? architecture->string() : nullptr;
  if (!name) {
    return fail(ErrorCode::bad_model_file, "model metadata \"general.architecture\" is missing");
  }
  if (*name != "llama") {
    return fail(ErrorCode::unsupported,
                "model architecture \"" + *name + "\" is not implemented; \"llama\" is");
  }

  // The limits are several times those of the largest models and keep every product below 2^63.
  Keys keys(header);
  ModelConfig config;
  config.layers = keys.count("block_count", 1024);
  config.hidden = keys.count("embedding_length", 65'536);
  config.heads = keys.count("attention.head_count", 1024);
  config.kv_heads = keys.count("attention.head_count_kv", 1024, config.heads);
  config.ffn = keys.count("feed_forward_length", 1 << 20);
  config.context = keys.count("context_length", std::size_t{1} << 32);
  config.rms_eps = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon", 1));
  if (keys.error) return tl::make_unexpected(*keys.error);

  config.head_dim = keys.count("attention.key_length", 256, config.hidden / config.heads);
  if (config.head_dim == 0 || config.head_dim > 256) {
    keys.bad("attention.head_count", "gives heads of " + std::to_string(config.head_dim) +
                                         " dimensions; 1 to 256 are implemented");
  }
  if (config.heads % config.kv_heads != 0) {
    keys.bad("attention.head_count_kv", "is " + std::to_string(config.kv_heads) +
                                            ", which does not divide the " +
                                            std::to_string(config.heads) + " heads");
  }
  if (!keys.has("attention.key_length") && config.hidden % config.heads != 0) {
    keys.bad("attention.head_count", "does not divide the embedding length");
  }
  if (keys.count("attention.value_length", 256, config.head_dim) != config.head_dim) {
    keys.stop(ErrorCode::unsupported, "values of another length than keys are not implemented");
  }
  read_rope(header, keys, config);
  check_tensor_layout(header, keys);
  check_known_keys(header, keys);
  if (keys.error) return tl::make_unexpected(*keys.error);

  const GgufValue* tokens = header.find("tokenizer.ggml.tokens");
  const GgufArray* list = tokens ? tokens->array() : nullptr;
  if (!list || list->size() == 0) {
    return fail(ErrorCode::bad_model_file, "model metadata \"tokenizer.ggml.tokens\" is missing");
  }
  config.vocabulary = list->size();
  return config;
}

std::vector<float> rope_frequencies(const ModelConfig& config, std::span<const float> factors) {
  std::vector<float> frequency(config.rotary_dim / 2);
  const double log_base = log_exact(config.rope_base);
  for (std::size_t i = 0; i < frequency.size(); ++i) {
    const double power =
        -2 * static_cast<double>(i) / static_cast<double>(config.rotary_dim) * log_base;
    const double factor = factors.empty() ? 1 : static_cast<double>(factors[i]);
    frequency[i] = static_cast<float>(exp_exact(power) / config.rope_scale / factor);
  }
  return frequency;
}

}  // namespace fixpoint::engine
