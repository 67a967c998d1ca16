#include "local_engine/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cpu.hpp"
#include "local_engine/philox.hpp"

namespace fixpoint::engine {
namespace {

// Whether a stands before b in the ranking.
bool before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Up to here one pass with a heap is cheaper than a copy of all logits.
constexpr std::size_t kHeapSize = 64;

// The sum is finite exactly if every term is: inf and NaN never leave a sum again, and finite
// floats cannot overflow a double.
bool all_finite(std::span<const float> values) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane)
      sums[lane] += static_cast<double>(values[i + lane]);
  }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]);
  return std::all_of(std::begin(sums), std::end(sums), [](double s) { return std::isfinite(s); });
}

Result<void> check_finite(std::span<const float> logits, std::size_t position) {
  if (all_finite(logits)) return {};
  return fail(
      ErrorCode::bad_model_file,
      "the model gave a logit that is not a finite number at position " + std::to_string(position));
}

// Fills what is reported of a token whatever was chosen: the model's own distribution, before
// anything that a request changes. Writes it to `logprobs`, which may be the logits themselves.
// Returns the ranking's first candidates, two at least.
std::vector<Candidate> report(std::span<const float> logits, float* logprobs,
                              std::size_t top_logprobs, GeneratedToken& token) {
  auto ranking = top_candidates(logits, std::max<std::size_t>(top_logprobs, 2));
  kernels::log_softmax(logits.data(), logprobs, logits.size());
  token.margin = ranking.size() > 1 ? ranking[0].logit - ranking[1].logit : INFINITY;
  token.top.reserve(std::min(top_logprobs, ranking.size()));
  for (std::size_t i = 0; i < ranking.size() && i < top_logprobs; ++i) {
    token.top.push_back({ranking[i].id, logprobs[static_cast<std::size_t>(ranking[i].id)]});
  }
  return ranking;
}

}  // namespace

std::vector<Candidate> top_candidates(std::span<const float> logits, std::size_t n) {
  n = std::min(n, logits.size());
  std::vector<Candidate> top;
  if (n == 0) return top;
  if (n > kHeapSize) {
    top.reserve(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      top.push_back({logits[i], static_cast<TokenId>(i)});
    }
    std::nth_element(top.begin(), top.begin() + static_cast<std::ptrdiff_t>(n - 1), top.end(),
                     before);
    top.resize(n);
    std::sort(top.begin(), top.end(), before);
    return top;
  }
  // A heap whose front is the last of the ranking so far. Ids ascend, so an equal logit never
  // enters.
  top.reserve(n + 1);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (top.size() == n && !(logits[i] > top.front().logit)) continue;
    top.push_back({logits[i], static_cast<TokenId>(i)});
    std::push_heap(top.begin(), top.end(), before);
    if (top.size() > n) {
      std::pop_heap(top.begin(), top.end(), before);
      top.pop_back();
    }
  }
  std::sort_heap(top.begin(), top.end(), before);
  return top;
}

Result<GeneratedToken> score_token(std::span<float> logits, TokenId token, std::size_t position,
                                   std::size_t top_logprobs) {
  if (auto finite = check_finite(logits, position); !finite) {
    return tl::make_unexpected(finite.error());
  }
  GeneratedToken scored;
  scored.id = token;
  report(logits, logits.data(), top_logprobs, scored);
  scored.logprob = logits[static_cast<std::size_t>(token)];
  return scored;
}

Sampler::Sampler(SamplingParams params, int top_logprobs)
    : params_(std::move(params)), top_logprobs_(static_cast<std::size_t>(top_logprobs)) {}

Result<GeneratedToken> Sampler::sample(std::span<float> logits, std::size_t position) {
  if (auto finite = check_finite(logits, position); !finite) {
    return tl::make_unexpected(finite.error());
  }
  GeneratedToken token;
  logprobs_.resize(logits.size());
  const auto ranking = report(logits, logprobs_.data(), top_logprobs_, token);

  const bool adjusted = !params_.logit_bias.empty() || params_.presence_penalty != 0 ||
                        params_.frequency_penalty != 0;
  if (adjusted) adjust(logits);
  if (params_.temperature > 0) {
    token.id = draw(logits, position);
  } else {
    token.id = adjusted ? top_candidates(logits, 1)[0].id : ranking[0].id;
  }
  token.logprob = logprobs_[static_cast<std::size_t>(token.id)];
  if (adjusted) ++generated_[token.id];
  return token;
}

// logit -= count * frequency_penalty + (count > 0) * presence_penalty, then the bias, as OpenAI's
// API reference defines them. Counts are of generated tokens.
void Sampler::adjust(std::span<float> logits) const {
  for (const auto& [id, count] : generated_) {
    float& logit = logits[static_cast<std::size_t>(id)];
    logit =
        logit - static_cast<float>(count) * params_.frequency_penalty - params_.presence_penalty;
  }
  for (const auto& [id, bias] : params_.logit_bias) logits[static_cast<std::size_t>(id)] += bias;
}

// p[i] = exp(log_softmax(logits / temperature)[i]). Top-k keeps the first k of the ranking; top-p
// then the shortest prefix of those with at least top_p of their mass; min-p then those with p of
// at least min_p times the first one's. Each keeps a prefix of the ranking, so one walk along it
// does all. The draw takes the first token whose cumulative mass, summed along the ranking in
// double, exceeds u times the mass kept; the mass of the whole vocabulary is 1.
TokenId Sampler::draw(std::span<const float> logits, std::size_t position) {
  // The largest logit is moved to 0 first, so that a tiny temperature cannot overflow; e^-1000 is
  // 0.
  const float largest = *std::max_element(logits.begin(), logits.end());
  scaled_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    scaled_[i] = std::max((logits[i] - largest) / params_.temperature, -1000.0F);
  }
  kernels::log_softmax(scaled_.data(), scaled_.data(), scaled_.size());

  const double u = uniform_draw(params_.seed, position, params_.draw);
  const std::size_t most = params_.top_k > 0
                               ? std::min(static_cast<std::size_t>(params_.top_k), logits.size())
                               : logits.size();
  // Without top-k, rank more candidates until the walk ends inside them: few are needed as a rule.
  std::size_t ranked = params_.top_k > 0 ? most : std::min(most, kHeapSize);
  while (true) {
    const auto chosen = walk(top_candidates(logits, ranked), ranked == most, u);
    if (chosen) return *chosen;
    ranked = std::min(most, ranked * 16);
  }
}

// The draw among the first candidates of the ranking, of which `all` says whether more could
// follow. None if the answer lies beyond them.
std::optional<TokenId> Sampler::walk(const std::vector<Candidate>& candidates, bool all,
                                     double u) const {
  const auto probability = [this](const Candidate& c) {
    return static_cast<double>(kernels::exp_f32(scaled_[static_cast<std::size_t>(c.id)]));
  };
  double mass = 1;
  if (params_.top_k > 0) {
    mass = 0;
    for (const Candidate& c : candidates) mass += probability(c);
  }
  std::size_t kept = candidates.size();
  if (params_.top_p < 1 || params_.min_p > 0) {
    const double enough = static_cast<double>(params_.top_p) * mass;
    const double least = static_cast<double>(params_.min_p) * probability(candidates[0]);
    double sum = 0;
    bool cut = false;
    for (std::size_t i = 0; i < candidates.size() && !cut; ++i) {
      const double p = probability(candidates[i]);
      if (p < least) {
        kept = i;  // never 0: min_p < 1
        cut = true;
      } else {
        sum += p;
        cut = params_.top_p < 1 && sum >= enough;
        if (cut) kept = i + 1;
      }
    }
    if (!cut && !all) return std::nullopt;
    all = true;
    mass = sum;
  }
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    sum += probability(candidates[i]);
    if (sum > u * mass) return candidates[i].id;
  }
  // Rounding may leave the sum at or below its target: the last one kept takes the rest.
  if (all) return candidates[kept - 1].id;
  return std::nullopt;
}

}  // namespace fixpoint::engine
