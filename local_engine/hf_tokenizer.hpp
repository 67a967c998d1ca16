// What the files of a Hugging Face model folder say about text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "local_engine/model_text.hpp"
#include "local_engine/result.hpp"

namespace fixpoint::engine {

// The parsed files; null for one that is not there (tokenizer.json must be).
struct HfTextFiles {
  nlohmann::json tokenizer;          // tokenizer.json
  nlohmann::json tokenizer_config;   // tokenizer_config.json
  nlohmann::json config;             // config.json
  nlohmann::json generation_config;  // generation_config.json
  std::string chat_template;         // chat_template.jinja; empty: not there
};

// Byte-level BPE only; the pre-tokenizer is one of PreTokenizer's, recognised by its content. Ids
// of the model's `vocabulary` that the tokenizer does not have become hidden tokens. The ids that
// end a generation are generation_config.json's, else config.json's.
// Errors: bad_model_file for missing or inconsistent members; unsupported for a tokenizer, a
// normaliser, a pre-tokenizer or a post-processor that is not recognised.
Result<ModelText> read_hf_text(const HfTextFiles& files, std::size_t vocabulary);

}  // namespace fixpoint::engine
