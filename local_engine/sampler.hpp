// From one row of logits to one token.
//
// The token is a pure function of the logits, the sampling parameters, the tokens generated before
// it and its position. Order: penalties, logit bias, temperature, top-k, top-p, min-p, draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "local_engine/generate.hpp"

namespace fixpoint::engine {

struct Candidate {
  float logit;
  TokenId id;
};

// The min(n, logits.size()) largest logits, descending; equal logits in the order of their ids: the
// fixed order in which everything here ranks tokens. Precondition: no NaN.
std::vector<Candidate> top_candidates(std::span<const float> logits, std::size_t n);

// `token` as the model rates it at `position`, with `top_logprobs` alternatives: bit for bit what a
// Sampler that chooses it from these logits reports. Overwrites `logits`. Errors: bad_model_file if
// a logit is not finite.
Result<GeneratedToken> score_token(std::span<float> logits, TokenId token, std::size_t position,
                                   std::size_t top_logprobs);

// One generation. Not thread-safe; different samplers may run at the same time.
class Sampler {
 public:
  // Precondition: the parameters passed check_request(). At least two alternatives are computed for
  // the margin, and `top_logprobs` are reported; the choice of the token does not depend on it.
  Sampler(SamplingParams params, int top_logprobs);

  // Chooses the token at `position` (0 is the prompt's first token) and counts it for the
  // penalties. Overwrites `logits`. Errors: bad_model_file if a logit is not finite.
  Result<GeneratedToken> sample(std::span<float> logits, std::size_t position);

 private:
  void adjust(std::span<float> logits) const;
  TokenId draw(std::span<const float> logits, std::size_t position);
  std::optional<TokenId> walk(const std::vector<Candidate>& candidates, bool all, double u) const;

  SamplingParams params_;
  std::size_t top_logprobs_;
  std::unordered_map<TokenId, std::uint32_t> generated_;  // how often, for the penalties
  std::vector<float> logprobs_;  // [vocabulary] of the model's own distribution
  std::vector<float> scaled_;    // [vocabulary] of the one drawn from
};

}  // namespace fixpoint::engine
