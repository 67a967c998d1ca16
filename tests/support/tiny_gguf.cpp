#include "tests/support/tiny_gguf.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace fixpoint::test {
namespace {

using kernels::DType;

constexpr std::uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9;
constexpr std::size_t kAlignment = 32;

// SplitMix64: the same numbers with every compiler and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // Uniform in [-1, 1).
  float unit() { return static_cast<float>(static_cast<double>(bits() >> 11) * 0x1p-52 - 1); }

 private:
  std::uint64_t state_;
};

class Bytes {
 public:
  template <class T>
  void number(T value) {
    const auto* from = reinterpret_cast<const char*>(&value);
    data.append(from, sizeof value);
  }
  void string(std::string_view text) {
    number<std::uint64_t>(text.size());
    data += text;
  }
  void pad() { data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment, '\0'); }

  std::string data;
};

// IEEE half of a value below its largest, rounded to nearest even; zero where half is not normal.
std::uint16_t half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  if (std::abs(value) < 0x1p-14F) return static_cast<std::uint16_t>(sign);
  const std::uint32_t magnitude = (bits & 0x7fffffff) - ((127 - 15) << 23);
  return static_cast<std::uint16_t>(sign | ((magnitude + 0xfff + ((magnitude >> 13) & 1)) >> 13));
}

// One block of random weights, about uniform in [-scale, scale].
void random_block(Bytes& out, DType type, float scale, Random& random) {
  const auto raw = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out.number(static_cast<std::uint8_t>(random.bits()));
  };
  switch (type) {
    case DType::f32:
      return out.number(random.unit() * scale);
    case DType::f16:
      return out.number(half(random.unit() * scale));
    case DType::bf16:
      return out.number(
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random.unit() * scale) >> 16));
    case DType::q8_0:
      out.number(half(scale / 127));
      return raw(32);
    case DType::q4_0:
      out.number(half(scale / 8));
      return raw(16);
    case DType::q4_1:
      out.number(half(scale * 2 / 15));
      out.number(half(-scale));
      return raw(16);
    case DType::q6_k:
      raw(128 + 64);
      for (int i = 0; i < 16; ++i) out.number(static_cast<std::int8_t>(random.bits() % 8 + 4));
      return out.number(half(scale / (32 * 12)));
  }
}

std::uint32_t gguf_number(DType type) {
  switch (type) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::bf16:
      return 30;
    case DType::q8_0:
      return 8;
    case DType::q4_0:
      return 2;
    case DType::q4_1:
      return 3;
    case DType::q6_k:
      return 14;
  }
  return 0;
}

void append_utf8(std::string& out, std::uint32_t c) {  // c < 0x800
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

// Byte-level BPE writes each byte as a printable character: itself where it is one, else U+0100 on.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;
  std::uint32_t next = 0x100;
  for (std::uint32_t b = 0; b < 256; ++b) {
    const bool printable =
        (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
    std::string token;
    append_utf8(token, printable ? b : next++);
    tokens.push_back(token);
  }
  return tokens;
}

// \u0120 is the byte-level spelling of a space. 41 merges: with bytes and specials, 300 tokens.
constexpr std::array<std::string_view, 41> kMerges = {
    "\u0120 t",  "\u0120 a", "h e",       "i n",       "r e",       "o n",      "\u0120t he",
    "e r",       "\u0120 s", "a t",       "\u0120 w",  "\u0120 o",  "e n",      "\u0120 c",
    "i t",       "i s",      "a n",       "o r",       "e s",       "\u0120 b", "e d",
    "\u0120 f",  "in g",     "\u0120 p",  "o u",       "\u0120a n", "a l",      "a r",
    "\u0120t o", "\u0120 m", "\u0120o f", "\u0120 in", "\u0120 d",  "\u0120 h", "\u0120an d",
    "i c",       "a s",      "l e",       "\u0120t h", "i on",      "l l"};

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}"
    "{% endif %}";

struct Tensor {
  std::string name;
  DType type;
  std::vector<std::uint64_t> dims;
  std::string data;
  std::uint64_t offset = 0;
};

class Writer {
 public:
  explicit Writer(const TinyGgufOptions& options) : o_(options), random_(options.seed) {}

  std::string file() {
    add_tensors();
    add_metadata();
    Bytes out;
    out.data.append(o_.damage == GgufDamage::bad_magic ? "GGML" : "GGUF");
    out.number<std::uint32_t>(3);
    const bool absurd = o_.damage == GgufDamage::absurd_tensors;
    out.number<std::uint64_t>(absurd ? std::uint64_t{1} << 62 : tensors_.size());
    out.number<std::uint64_t>(entries_);
    out.data += metadata_.data;
    const std::size_t metadata_end = out.data.size();

    std::uint64_t offset = 0;
    for (Tensor& tensor : tensors_) {
      tensor.offset = offset;
      offset += (tensor.data.size() + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (o_.damage == GgufDamage::tensor_outside) tensors_[1].offset = std::uint64_t{1} << 50;
    if (o_.damage == GgufDamage::absurd_dims) tensors_[1].dims = {1ULL << 40, 1ULL << 40};
    for (const Tensor& tensor : tensors_) {
      out.string(tensor.name);
      out.number(static_cast<std::uint32_t>(tensor.dims.size()));
      for (const std::uint64_t dim : tensor.dims) out.number(dim);
      out.number(gguf_number(tensor.type));
      out.number(tensor.offset);
    }
    for (const Tensor& tensor : tensors_) {
      out.pad();
      out.data += tensor.data;
    }
    if (o_.damage == GgufDamage::cut) {
      out.data.resize(out.data.size() - tensors_.back().data.size() / 2);
    }
    if (o_.damage == GgufDamage::cut_header) out.data.resize(metadata_end / 2);
    return std::move(out.data);
  }

 private:
  void vector(const std::string& name, std::size_t n, float center, float spread) {
    Bytes data;
    for (std::size_t i = 0; i < n; ++i) data.number(center + spread * random_.unit());
    tensors_.push_back({name, DType::f32, {n}, std::move(data.data)});
  }

  void matrix(const std::string& name, DType fallback, std::size_t n, std::size_t k, float scale) {
    const auto given = o_.types.find(name);
    const DType type = given != o_.types.end() ? given->second : fallback;
    if (k % kernels::block_size(type) != 0) {
      throw std::runtime_error("tiny GGUF: rows of " + name + " are no whole blocks");
    }
    Bytes data;
    for (std::size_t i = 0; i < n * k / kernels::block_size(type); ++i) {
      random_block(data, type, scale, random_);
    }
    tensors_.push_back({name, type, {k, n}, std::move(data.data)});
  }

  void add_tensors() {
    const std::size_t head_dim = o_.hidden / o_.heads;
    const std::size_t kv = o_.kv_heads * head_dim;
    const auto scale = [](std::size_t k) { return 2 / std::sqrt(static_cast<float>(k)); };
    matrix("token_embd.weight", o_.embedding, vocabulary(), o_.hidden, 1);
    for (std::size_t i = 0; i < o_.layers; ++i) {
      const std::string blk = "blk." + std::to_string(i) + ".";
      vector(blk + "attn_norm.weight", o_.hidden, 1, 0.3F);
      const bool short_q = o_.damage == GgufDamage::wrong_shape && i == 0;
      matrix(blk + "attn_q.weight", o_.matrices, o_.hidden - short_q, o_.hidden, scale(o_.hidden));
      matrix(blk + "attn_k.weight", o_.matrices, kv, o_.hidden, scale(o_.hidden));
      matrix(blk + "attn_v.weight", o_.matrices, kv, o_.hidden, scale(o_.hidden));
      matrix(blk + "attn_output.weight", o_.matrices, o_.hidden, o_.hidden, scale(o_.hidden));
      vector(blk + "ffn_norm.weight", o_.hidden, 1, 0.3F);
      matrix(blk + "ffn_gate.weight", o_.matrices, o_.ffn, o_.hidden, scale(o_.hidden));
      if (o_.damage != GgufDamage::missing_tensor || i != 0) {
        matrix(blk + "ffn_up.weight", o_.matrices, o_.ffn, o_.hidden, scale(o_.hidden));
      }
      matrix(blk + "ffn_down.weight", o_.matrices, o_.hidden, o_.ffn, scale(o_.ffn));
    }
    if (o_.damage == GgufDamage::extra_tensor) vector("blk.0.attn_q.bias", o_.hidden, 0, 1);
    vector("output_norm.weight", o_.hidden, 1, 0.3F);
    if (o_.damage == GgufDamage::not_finite) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(tensors_.back().data.data(), &nan, sizeof nan);
    }
    if (!o_.tied) matrix("output.weight", o_.embedding, vocabulary(), o_.hidden, scale(o_.hidden));
    if (o_.rope_factors) vector("rope_freqs.weight", head_dim / 2, 4, 3);
  }

  void key(std::string_view name, std::uint32_t type) {
    ++entries_;
    metadata_.string(name);
    metadata_.number(type);
  }
  void text(std::string_view name, std::string_view value) {
    key(name, kString);
    metadata_.string(value);
  }
  void number(std::string_view name, std::size_t value) {
    key(name, kU32);
    metadata_.number(static_cast<std::uint32_t>(value));
  }
  void array(std::string_view name, std::uint32_t type, std::uint64_t count) {
    key(name, kArray);
    metadata_.number(type);
    metadata_.number(count);
  }

  void add_metadata() {
    constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 60;
    text("general.architecture", o_.architecture);
    text("general.name", "tiny random model");
    const std::string prefix = o_.architecture + ".";
    number(prefix + "block_count", o_.layers);
    number(prefix + "context_length", o_.context);
    number(prefix + "embedding_length", o_.hidden);
    number(prefix + "feed_forward_length", o_.ffn);
    number(prefix + "attention.head_count", o_.heads);
    number(prefix + "attention.head_count_kv", o_.kv_heads);
    key(prefix + "attention.layer_norm_rms_epsilon", kF32);
    metadata_.number(1e-5F);
    key(prefix + "rope.freq_base", kF32);
    metadata_.number(10'000.0F);
    text("tokenizer.ggml.model", "gpt2");
    text("tokenizer.ggml.pre", o_.pre_tokenizer);
    add_vocabulary(o_.damage == GgufDamage::absurd_array ? kAbsurd : 0);
    if (o_.chat_template) text("tokenizer.chat_template", kChatMl);
    if (o_.damage == GgufDamage::absurd_string) {
      key("general.description", kString);
      metadata_.number(kAbsurd);
    }
  }

  void add_vocabulary(std::uint64_t claimed) {
    auto tokens = byte_tokens();
    for (const std::string_view merge : kMerges) {
      std::string token(merge);
      token.erase(token.find(' '), 1);
      tokens.push_back(token);
    }
    for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      tokens.emplace_back(special);
    }
    array("tokenizer.ggml.tokens", kString, claimed != 0 ? claimed : tokens.size());
    for (const std::string& token : tokens) metadata_.string(token);
    array("tokenizer.ggml.token_type", kI32, tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      metadata_.number<std::int32_t>(i + 3 >= tokens.size() ? 3 : 1);  // control, normal
    }
    array("tokenizer.ggml.merges", kString, kMerges.size());
    for (const std::string_view merge : kMerges) metadata_.string(merge);
    number("tokenizer.ggml.bos_token_id", tokens.size() - 2);
    number("tokenizer.ggml.eos_token_id", tokens.size() - 1);
    key("tokenizer.ggml.add_bos_token", kBool);
    metadata_.number<std::uint8_t>(0);
  }

  static std::size_t vocabulary() { return 256 + kMerges.size() + 3; }

  const TinyGgufOptions& o_;
  Random random_;
  std::vector<Tensor> tensors_;
  Bytes metadata_;
  std::uint64_t entries_ = 0;
};

}  // namespace

std::string write_tiny_gguf(const std::filesystem::path& path, const TinyGgufOptions& options) {
  const std::string bytes = Writer(options).file();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
  return path.string();
}

}  // namespace fixpoint::test
