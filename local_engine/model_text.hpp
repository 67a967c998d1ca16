// What a GGUF file says about text: vocabulary, special tokens, chat template.
#pragma once

#include <string>
#include <vector>

#include "local_engine/gguf.hpp"
#include "local_engine/result.hpp"
#include "local_engine/text/tokenizer.hpp"

namespace fixpoint::engine {

struct ModelText {
  TokenizerData tokenizer;
  std::vector<bool> is_control;  // by id: never shown. User-defined tokens are special, but shown.
  std::string chat_template;     // empty: the file has none
  std::string bos, eos;          // spellings, empty if the file has none: template variables
};

// Errors: bad_model_file for missing or inconsistent entries, unsupported for a tokenizer that is
// not byte-level BPE ("gpt2") or names no pre-tokenizer.
Result<ModelText> read_model_text(const GgufHeader& header);

}  // namespace fixpoint::engine
