// Cuts text into the words inside which byte-pair merges may happen.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "local_engine/result.hpp"

namespace fixpoint::engine {

// One of the published pre-tokenizers, by the name that GGUF files give it. Immutable; split() is
// safe from any thread.
class PreTokenizer {
 public:
  // Errors: unsupported for an unknown name; the message lists the known ones.
  static Result<std::unique_ptr<PreTokenizer>> create(std::string_view name);
  ~PreTokenizer();

  // Calls `word` for each piece in order; joined, the pieces are the (normalised) text. A byte that
  // is not part of valid UTF-8 is a piece of its own and ends the piece before it, as if the text
  // ended. A piece is valid during the call only.
  using Word = std::function<void(std::string_view)>;
  void split(std::string_view text, const Word& word) const;

  // A word that is in the vocabulary is one token, even if no merge leads to it (Llama 3).
  bool whole_words_first() const;
  // Names the Unicode data that decides where words end; part of the tokenizer's digest.
  std::string unicode_versions() const;

 private:
  struct Impl;
  explicit PreTokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The name of the pre-tokenizer whose published pattern is `pattern`, character for character;
// empty if there is none.
std::string_view pre_tokenizer_with_pattern(std::string_view pattern);

}  // namespace fixpoint::engine
