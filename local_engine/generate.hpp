// What a generation is asked for and what it gives: the engine's requests, events and tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "local_engine/result.hpp"
#include "local_engine/text/tokenizer.hpp"

namespace fixpoint::engine {

struct SamplingParams {
  float temperature = 0;  // 0: greedy; else in (0, 2]
  int top_k = 0;          // 0: off
  float top_p = 1;        // 1: off
  float min_p = 0;        // 0: off
  float presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added in this order
  std::uint64_t seed = 0;                                  // Philox key
  std::uint32_t draw = 0;  // sample index: the draw-th answer to the same prompt and seed
};

struct GenerateRequest {
  std::vector<TokenId> prompt;  // never empty
  SamplingParams sampling;
  // None: up to the end of the context. 0: nothing is generated.
  std::optional<std::size_t> max_tokens = std::nullopt;
  std::vector<std::string> stop;  // at most 16 of at most 256 bytes, none empty
  // Alternatives recorded per token, 0 .. 20. The margin is always computed.
  int top_logprobs = 5;
  // Score the prompt, too. This changes no generated token and no bit of its log-probability.
  bool prompt_logprobs = false;
};

struct TokenAlternative {
  TokenId id;
  float logprob;
};

// A token that was chosen, or one of a prompt that was scored.
struct GeneratedToken {
  TokenId id = 0;
  float logprob = 0;  // of the model's own distribution: temperature 1, no penalties or bias
  float margin = 0;   // top-1 minus top-2 log-probability, taken from the logits and rounded once
  std::vector<TokenAlternative> top;  // by descending logit, ties to the lower id
};

enum class FinishReason { stop, length };

struct Usage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
};

// One step of one generation. Text is whole UTF-8 and safe to show. `tokens` are those sampled
// since the last event, each given exactly once; the first `visible_tokens` of ALL tokens of the
// generation stand behind the text shown so far. Tokens after a stop string's start never become
// visible.
struct GenerateEvent {
  // Of a request with prompt_logprobs, on its first event: the prompt's tokens but the first, which
  // has nothing before it. Each has the bits that a generation would record for choosing it there.
  std::vector<GeneratedToken> prompt_logprobs;
  std::string text;
  std::vector<GeneratedToken> tokens;
  std::size_t visible_tokens = 0;
  std::optional<FinishReason> finish;  // set on the last event of a success
  std::string stopped_by;              // then: the stop string that ended it; empty: none did
  std::optional<Error> error;          // set on the last event of a failure
  Usage usage;                         // counts so far
};

// Called on the engine's thread; must not block and must not call back into the engine except
// cancel().
using GenerateCallback = std::function<void(GenerateEvent)>;

}  // namespace fixpoint::engine
