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

// Takes tensors by name, checks them and keeps the first error; then everything it gives is empty.
class Loader {
 public:
  explicit Loader(const GgufFile& file) : file_(file) {}

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  bool has(const std::string& name) const { return file_.header().find_tensor(name) != nullptr; }

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
    for (const GgufTensor& tensor : file_.header().tensors) {
      if (!used_.contains(tensor.name)) {
        stop(ErrorCode::unsupported,
             "tensor \"" + tensor.name + "\" has no place in the llama architecture implemented");
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
    const GgufTensor* tensor = file_.header().find_tensor(name);
    if (!tensor) {
      stop(ErrorCode::bad_model_file, "tensor \"" + name + "\" is missing");
      return std::nullopt;
    }
    used_.insert(name);
    if (tensor->dims != dims) {
      stop(ErrorCode::bad_model_file, "tensor \"" + name + "\" has shape " +
                                          shape_text(tensor->dims) + ", the metadata needs " +
                                          shape_text(dims));
      return std::nullopt;
    }
    const auto type = dtype_of(tensor->type);
    if (!type) {
      stop(ErrorCode::unsupported,
           "tensor \"" + name + "\" is " + tensor->type_name() +
               "; F32, F16, BF16, Q8_0, Q4_0, Q4_1 and Q6_K are implemented");
      return std::nullopt;
    }
    return Found{*type, file_.data(*tensor)};
  }

  const GgufFile& file_;
  std::set<std::string> used_;
  std::optional<Error> error_;
};

LayerWeights load_layer(Loader& from, const std::string& prefix, const ModelConfig& c) {
  LayerWeights layer;
  layer.attention_norm = from.vector(prefix + "attn_norm.weight", c.hidden);
  layer.q = from.matrix(prefix + "attn_q.weight", c.q_width(), c.hidden);
  layer.k = from.matrix(prefix + "attn_k.weight", c.kv_width(), c.hidden);
  layer.v = from.matrix(prefix + "attn_v.weight", c.kv_width(), c.hidden);
  layer.o = from.matrix(prefix + "attn_output.weight", c.hidden, c.q_width());
  layer.ffn_norm = from.vector(prefix + "ffn_norm.weight", c.hidden);
  layer.gate = from.matrix(prefix + "ffn_gate.weight", c.ffn, c.hidden);
  layer.up = from.matrix(prefix + "ffn_up.weight", c.ffn, c.hidden);
  layer.down = from.matrix(prefix + "ffn_down.weight", c.hidden, c.ffn);
  return layer;
}

void load_rope_factors(Loader& from, const ModelConfig& config, Weights& weights) {
  if (!from.has("rope_freqs.weight")) return;
  weights.rope_factors = from.vector("rope_freqs.weight", config.rotary_dim / 2);
  for (const float factor : weights.rope_factors) {
    if (!std::isfinite(factor) || !(factor > 0)) {
      from.stop(ErrorCode::bad_model_file,
                "tensor \"rope_freqs.weight\" has a factor that is not a positive number");
    }
  }
}

void describe(const GgufHeader& header, Weights& weights) {
  std::map<std::string, std::size_t> per_type;
  for (const GgufTensor& tensor : header.tensors) {
    std::string type = tensor.type_name();
    for (char& c : type) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    ++per_type[type];
    weights.parameters += tensor.elements();
  }
  for (const auto& [type, count] : per_type) {
    if (!weights.dtypes.empty()) weights.dtypes += ',';
    weights.dtypes += type + ":" + std::to_string(count);
  }
}

}  // namespace

Result<Weights> load_weights(const GgufFile& file, const ModelConfig& config) {
  Loader from(file);
  Weights weights;
  weights.embedding = from.table("token_embd.weight", config.vocabulary, config.hidden);
  for (std::size_t i = 0; i < config.layers && from.ok(); ++i) {
    weights.layers.push_back(load_layer(from, "blk." + std::to_string(i) + ".", config));
  }
  weights.output_norm = from.vector("output_norm.weight", config.hidden);
  const bool tied = !from.has("output.weight");
  weights.head =
      from.matrix(tied ? "token_embd.weight" : "output.weight", config.vocabulary, config.hidden);
  load_rope_factors(from, config, weights);
  from.check_all_used();
  if (!from.ok()) return tl::make_unexpected(from.error());
  describe(file.header(), weights);
  return weights;
}

}  // namespace fixpoint::engine
