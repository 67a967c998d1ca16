// Log-probabilities of the engine's tokens in the forms of OpenAI's chat and completions.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "gateway/dialects/answer_form.hpp"
#include "local_engine/generate.hpp"
#include "local_engine/text/tokenizer.hpp"

namespace fixpoint {

// Characters that begin in these bytes of UTF-8: over the tokens of a text, those of the text.
std::size_t count_characters(std::string_view bytes);

// Chat's object: one entry a token, each with at most `top_logprobs` alternatives.
Json chat_logprobs(const engine::Tokenizer& tokenizer,
                   std::span<const engine::GeneratedToken> tokens, std::size_t top_logprobs);

// Completions' object: four arrays with one element a token. The tokenizer outlives it.
class TextLogprobs {
 public:
  TextLogprobs(const engine::Tokenizer& tokenizer, std::size_t top_logprobs)
      : tokenizer_(tokenizer), top_logprobs_(top_logprobs) {}

  // `offset`: the character of the choice's text that the token begins at.
  void add(const engine::GeneratedToken& token, std::size_t offset);
  // The first token of a prompt: nothing stands before it, so nothing is known of it.
  void add_first(engine::TokenId token, std::size_t offset);
  Json finish() &&;

 private:
  const engine::Tokenizer& tokenizer_;
  const std::size_t top_logprobs_;
  Json tokens_ = Json::array(), logprobs_ = Json::array(), tops_ = Json::array(),
       offsets_ = Json::array();
};

}  // namespace fixpoint
