#include "local_engine/weights.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace fixpoint::engine {
namespace {

using kernels::DType;

std::optional<DType> dtype_of(std::uint32_t gguf_type) {
  switch (gguf_type) {
    case 0:
      return DType::f32;
    case 1:
      return DType::f16;
    case 2:
      return DType::q4_0;
    case 3:
      return DType::q4_1;
    case 8:
      return DType::q8_0;
    case 14:
      return DType::q6_k;
    case 30:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

std::string shape_text(std::span<const std::uint64_t> dims) {
  std::string text;
  for (const std::uint64_t dim : dims) {
    if (!text.empty()) text += " x ";
    text += std::to_string(dim);
  }
  return "[" + text + "]";
}

// A tensor of a model file, whatever the file's format.
struct StoredTensor {
  std::vector<std::uint64_t> dims;  // dims[0] is the row length
  std::optional<DType> type;        // none: there is no kernel for it
  std::string type_name;
  std::uint64_t elements = 0;
  std::span<const std::byte> bytes;
};
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

StoredTensors stored_tensors(const GgufFile& file) {
  StoredTensors tensors;
  for (const GgufTensor& tensor : file.header().tensors) {
    const auto type = tensor.bytes ? dtype_of(tensor.type) : std::nullopt;
    tensors.emplace(tensor.name,
                    StoredTensor{tensor.dims, type, tensor.type_name(), tensor.elements(),
                                 type ? file.data(tensor) : decltype(file.bytes()){}});
  }
  return tensors;
}

StoredTensors stored_tensors(const SafetensorsFile& file) {
  StoredTensors tensors;
  for (const auto& [name, tensor] : file.tensors()) {
    const char* type = tensor.type == DType::f32   ? "F32"
                       : tensor.type == DType::f16 ? "F16"
                                                   : "BF16";
    tensors.emplace(name,
                    StoredTensor{{tensor.shape.rbegin(), tensor.shape.rend()},  // row length first
                                 tensor.type,
                                 type,
                                 tensor.elements(),
                                 file.data(tensor)});
  }
  return tensors;
}

// How a format calls the tensors. Those of a layer follow its prefix and number.
struct TensorNames {
  std::string embedding, output_norm, head, rope_factors, layer;
  std::string attention_norm, q, k, v, o, ffn_norm, gate, up, down;
};

const TensorNames& gguf_names() {
  static const TensorNames names{"token_embd.weight",
                                 "output_norm.weight",
                                 "output.weight",
                                 "rope_freqs.weight",
                                 "blk.",
                                 "attn_norm.weight",
                                 "attn_q.weight",
                                 "attn_k.weight",
                                 "attn_v.weight",
                                 "attn_output.weight",
                                 "ffn_norm.weight",
                                 "ffn_gate.weight",
                                 "ffn_up.weight",
                                 "ffn_down.weight"};
  return names;
}

const TensorNames& hugging_face_names() {
  static const TensorNames names{"model.embed_tokens.weight",
                                 "model.norm.weight",
                                 "lm_head.weight",
                                 "",  // computed from config.json, never stored
                                 "model.layers.",
                                 "input_layernorm.weight",
                                 "self_attn.q_proj.weight",
                                 "self_attn.k_proj.weight",
                                 "self_attn.v_proj.weight",
                                 "self_attn.o_proj.weight",
                                 "post_attention_layernorm.weight",
                                 "mlp.gate_proj.weight",
                                 "mlp.up_proj.weight",
                                 "mlp.down_proj.weight"};
  return names;
}

// Takes tensors by name, checks them and keeps the first error; then everything it gives is empty.
class Loader {
 public:
  explicit Loader(const StoredTensors& tensors) : tensors_(tensors) {}

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }

  // A matrix of n rows of k weights.
  kernels::PackedMatrix matrix(const std::string& name, std::size_t n, std::size_t k) {
    const auto found = find(name, std::vector<std::uint64_t>{k, n});
    if (!found) return {};
    return kernels::PackedMatrix::pack(found->type, found->bytes.data(), n, k);
  }

  std::vector<float> vector(const std::string& name, std::size_t n) {
    const auto found = find(name, std::vector<std::uint64_t>{n});
    if (!found) return {};
    std::vector<float> values(n);
    kernels::dequantise_row(found->type, found->bytes.data(), n, values.data());
    return values;
  }

  EmbeddingTable table(const std::string& name, std::size_t n, std::size_t k) {
    const auto found = find(name, std::vector<std::uint64_t>{k, n});
    if (!found) return {};
    return {found->type, {found->bytes.begin(), found->bytes.end()}};
  }

  void stop(ErrorCode code, std::string message) {
    if (!error_) error_ = Error{code, std::move(message)};
  }

  // A tensor that nothing asked for would be ignored, and the answers would be wrong without a
  // word.
  void check_all_used() {
    for (const auto& [name, tensor] : tensors_) {
      if (!used_.contains(name)) {
        stop(ErrorCode::unsupported,
             "tensor \"" + name + "\" has no place in the llama architecture implemented");
        return;
      }
    }
  }

 private:
  struct Found {
    DType type;
    std::span<const std::byte> bytes;
  };

  std::optional<Found> find(const std::string& name, const std::vector<std::uint64_t>& dims) {
    if (!ok()) return std::nullopt;
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      stop(ErrorCode::bad_model_file, "tensor \"" + name + "\" is missing");
      return std::nullopt;
    }
    used_.insert(name);
    const StoredTensor& tensor = found->second;
    if (tensor.dims != dims) {
      stop(ErrorCode::bad_model_file, "tensor \"" + name + "\" has shape " +
                                          shape_text(tensor.dims) + ", the metadata needs " +
                                          shape_text(dims));
      return std::nullopt;
    }
    if (!tensor.type) {
      stop(ErrorCode::unsupported,
           "tensor \"" + name + "\" is " + tensor.type_name +
               "; F32, F16, BF16, Q8_0, Q4_0, Q4_1 and Q6_K are implemented");
      return std::nullopt;
    }
    return Found{*tensor.type, tensor.bytes};
  }

  const StoredTensors& tensors_;
  std::set<std::string> used_;
  std::optional<Error> error_;
};

LayerWeights load_layer(Loader& from, const TensorNames& names, std::size_t index,
                        const ModelConfig& c) {
  const std::string prefix = names.layer + std::to_string(index) + ".";
  LayerWeights layer;
  layer.attention_norm = from.vector(prefix + names.attention_norm, c.hidden);
  layer.q = from.matrix(prefix + names.q, c.q_width(), c.hidden);
  layer.k = from.matrix(prefix + names.k, c.kv_width(), c.hidden);
  layer.v = from.matrix(prefix + names.v, c.kv_width(), c.hidden);
  layer.o = from.matrix(prefix + names.o, c.hidden, c.q_width());
  layer.ffn_norm = from.vector(prefix + names.ffn_norm, c.hidden);
  layer.gate = from.matrix(prefix + names.gate, c.ffn, c.hidden);
  layer.up = from.matrix(prefix + names.up, c.ffn, c.hidden);
  layer.down = from.matrix(prefix + names.down, c.hidden, c.ffn);
  return layer;
}

void load_rope_factors(Loader& from, const std::string& name, const ModelConfig& config,
                       Weights& weights) {
  if (!from.has(name)) return;
  weights.rope_factors = from.vector(name, config.rotary_dim / 2);
  for (const float factor : weights.rope_factors) {
    if (!std::isfinite(factor) || !(factor > 0)) {
      from.stop(ErrorCode::bad_model_file,
                "tensor \"" + name + "\" has a factor that is not a positive number");
    }
  }
}

void describe(const StoredTensors& tensors, Weights& weights) {
  std::map<std::string, std::size_t> per_type;
  for (const auto& [name, tensor] : tensors) {
    std::string type = tensor.type_name;
    for (char& c : type) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    ++per_type[type];
    weights.parameters += tensor.elements;
  }
  for (const auto& [type, count] : per_type) {
    if (!weights.dtypes.empty()) weights.dtypes += ',';
    weights.dtypes += type + ":" + std::to_string(count);
  }
}

Result<Weights> load(const StoredTensors& tensors, const TensorNames& names,
                     const ModelConfig& config, bool tied) {
  Loader from(tensors);
  Weights weights;
  weights.embedding = from.table(names.embedding, config.vocabulary, config.hidden);
  for (std::size_t i = 0; i < config.layers && from.ok(); ++i) {
    weights.layers.push_back(load_layer(from, names, i, config));
  }
  weights.output_norm = from.vector(names.output_norm, config.hidden);
  weights.head = from.matrix(tied ? names.embedding : names.head, config.vocabulary, config.hidden);
  load_rope_factors(from, names.rope_factors, config, weights);
  from.check_all_used();
  if (!from.ok()) return tl::make_unexpected(from.error());
  describe(tensors, weights);
  return weights;
}

}  // namespace

Result<Weights> load_weights(const GgufFile& file, const ModelConfig& config) {
  const StoredTensors tensors = stored_tensors(file);
  return load(tensors, gguf_names(), config, !tensors.contains(gguf_names().head));
}

Result<Weights> load_weights(const SafetensorsFile& file, const ModelConfig& config, bool tied) {
  return load(stored_tensors(file), hugging_face_names(), config, tied);
}

}  // namespace fixpoint::engine
