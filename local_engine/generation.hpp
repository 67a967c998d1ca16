// One request on its way: its tokens, its sampler, its text and when it ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "local_engine/generate.hpp"
#include "local_engine/sampler.hpp"
#include "local_engine/text/text_stream.hpp"

namespace fixpoint::engine {

// Shared by all generations of an engine; outlives them.
struct Vocabulary {
  const Tokenizer* tokenizer = nullptr;
  std::vector<bool> is_control;  // by id: never shown as text
};

// Lives on the engine's thread, but sample() may run on any one thread of the team.
class Generation {
 public:
  // Precondition: `request` passed check_request() for `context`.
  Generation(std::uint64_t id, GenerateRequest request, GenerateCallback callback,
             std::size_t context, const Vocabulary& vocabulary);

  std::uint64_t id() const { return id_; }
  // Prompt and generated tokens so far.
  std::span<const TokenId> tokens() const { return tokens_; }
  // Positions that the generation may need, at most.
  std::size_t most_tokens() const { return prompt_tokens_ + max_tokens_; }

  // Chooses the next token from the logits behind the last one. Overwrites `logits`.
  void sample(std::span<float> logits);
  // Takes the chosen token in and tells the callback. False: that was the end.
  bool advance();
  // Ends with an error.
  void fail_with(Error error);

 private:
  GenerateEvent event() const;

  std::uint64_t id_;
  std::size_t prompt_tokens_, max_tokens_;
  std::vector<TokenId> tokens_;
  GenerateCallback callback_;
  const Vocabulary* vocabulary_;
  Sampler sampler_;
  TextStream text_;
  Result<GeneratedToken> next_;
};

}  // namespace fixpoint::engine
