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

// Lives on the engine's thread, but read() may run on any of the team.
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

  bool scores_prompt() const { return scores_prompt_; }
  // Whether the logits behind the token at `position` are read. Those of the last token always are,
  // unless nothing is to be generated.
  bool wants_logits(std::size_t position) const;

  // From the logits behind the token at `position`: the prompt's next token as the model rates it,
  // or a newly chosen one. Overwrites `logits`. Different positions may be read at the same time.
  Result<GeneratedToken> read(std::span<float> logits, std::size_t position);
  // Takes in what read() gave, by ascending position.
  void take(Result<GeneratedToken> token, std::size_t position);
  // The step that ran the last token is over: appends the chosen token and tells the callback.
  // False: that was the end.
  bool advance();
  // Ends with an error.
  void fail_with(Error error);

 private:
  GenerateEvent event();

  std::uint64_t id_;
  std::size_t prompt_tokens_, max_tokens_;
  std::size_t top_logprobs_;
  bool scores_prompt_;
  std::vector<TokenId> tokens_;
  GenerateCallback callback_;
  const Vocabulary* vocabulary_;
  Sampler sampler_;
  TextStream text_;
  std::vector<GeneratedToken> prompt_logprobs_;  // that no event has given yet
  Result<GeneratedToken> next_;                  // or the first error
};

}  // namespace fixpoint::engine
