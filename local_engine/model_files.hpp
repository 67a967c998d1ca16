// A model's files, whatever their format, as what an engine is made of.
#pragma once

#include <string>

#include "local_engine/model_config.hpp"
#include "local_engine/model_text.hpp"
#include "local_engine/result.hpp"
#include "local_engine/weights.hpp"

namespace fixpoint::engine {

// Owns copies of everything: the files may change or go.
struct ModelFiles {
  ModelConfig config;
  ModelText text;
  Weights weights;
  // SHA-256 (hex): of a GGUF file's bytes; of a folder, over its config.json and its
  // model.safetensors, each after its length.
  std::string weights_digest;
};

// `path` is a GGUF file, or a folder in Hugging Face's form: config.json, model.safetensors,
// tokenizer.json and, where they are there, tokenizer_config.json, generation_config.json and
// chat_template.jinja. Errors: io, bad_model_file, unsupported.
Result<ModelFiles> load_model_files(const std::string& path);

}  // namespace fixpoint::engine
