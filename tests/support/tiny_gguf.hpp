// Writes a small random model in GGUF, so that tests need no download. Its text is nonsense, but
// every part of the engine works on it: byte-level BPE, chat template, grouped-query attention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "kernels/cpu.hpp"

namespace fixpoint::test {

// How to damage the file.
enum class GgufDamage {
  none,
  cut,         // the last tensor's second half is missing
  cut_header,  // ends inside the metadata
  bad_magic,
  absurd_tensors,  // the tensor count is 2^62
  absurd_string,   // a metadata string claims 2^60 bytes
  absurd_array,    // the token list claims 2^60 entries
  absurd_dims,     // a dimension whose product with the others overflows
  tensor_outside,  // a tensor's offset lies beyond the file
  missing_tensor,  // no blk.0.ffn_up.weight
  wrong_shape,     // blk.0.attn_q.weight has a row too few
  extra_tensor,    // a bias that the architecture does not use
  not_finite,      // output_norm holds a NaN: loads, but gives no usable logits
};

struct TinyGgufOptions {
  std::uint64_t seed = 1;
  std::string architecture = "llama";
  std::string pre_tokenizer = "smollm";
  std::size_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, ffn = 128, context = 512;
  kernels::DType matrices = kernels::DType::f32;     // q, k, v, o, gate, up, down
  kernels::DType embedding = kernels::DType::f32;    // also the head where it is tied
  std::map<std::string, kernels::DType> types = {};  // by full tensor name, before the two above
  bool tied = true;                                  // false: a separate output.weight
  bool rope_factors = false;                         // a rope_freqs.weight, as Llama 3 has
  bool chat_template = true;                         // ChatML
  GgufDamage damage = GgufDamage::none;
};

// Writes the file and returns its path. The same options give the same bytes on every machine.
// Tokens: 256 bytes, then merges, then <|endoftext|>, <|im_start|> (BOS) and <|im_end|> (EOS): 300
// in all. Throws std::runtime_error if the file cannot be written.
std::string write_tiny_gguf(const std::filesystem::path& path, const TinyGgufOptions& options = {});

}  // namespace fixpoint::test
