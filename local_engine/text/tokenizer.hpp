// Byte-level BPE with the vocabulary, merges and pre-tokenizer of a model file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "local_engine/result.hpp"

namespace fixpoint::engine {

using TokenId = std::int32_t;

// What a model file says about its tokenizer, independent of the file's format.
struct TokenizerData {
  std::vector<std::string> tokens;  // by id, in byte-level ("Ġ") spelling
  std::vector<std::string> merges;  // "left right", by rank
  std::vector<bool> is_special;     // by id: control and user-defined tokens
  std::string pre_tokenizer;        // smollm, gpt-2, llama-bpe, qwen2
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_of_turn;  // further ids that end a generation (eot, eom)
  bool add_bos = false;
};

// Immutable; every method is safe to call from any thread.
class Tokenizer {
 public:
  // Errors: unsupported for an unknown pre-tokenizer; bad_model_file for a merge of unknown tokens,
  // duplicate or empty tokens, a token that is not in byte-level spelling, or ids out of range.
  static Result<std::unique_ptr<Tokenizer>> create(TokenizerData data);
  ~Tokenizer();

  // Text to ids. With parse_special, special tokens spelled out in the text become their ids
  // (rendered templates); without, they are ordinary text (a user's content). Never adds BOS. A
  // byte that is not part of valid UTF-8 becomes the token of that byte alone, and so round-trips.
  // Two things do not round-trip, both as Hugging Face's tokenizers do it: a byte that the
  // vocabulary lacks gives no token (SmolLM2 lacks 21: six control characters, the others appear
  // only in invalid text and unassigned planes), and qwen2 composes text to NFC first.
  std::vector<TokenId> encode(std::string_view text, bool parse_special) const;
  // The bytes of one token. Special tokens give their spelling. This and the methods below take ids
  // of this vocabulary only, 0 to size() - 1; another id is the caller's bug (std::out_of_range).
  std::string_view bytes(TokenId id) const;
  std::string decode(std::span<const TokenId> ids) const;

  bool is_special(TokenId id) const;
  bool ends_generation(TokenId id) const;  // eos or one of end_of_turn
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool add_bos() const;
  std::size_t size() const;
  // SHA-256 (hex) over everything that decides ids, the version of the Unicode tables included:
  // part of system_fingerprint.
  const std::string& digest() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::engine
