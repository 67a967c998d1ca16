#include "local_engine/sampler.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "local_engine/philox.hpp"

namespace fixpoint::engine {
namespace {

// Known answers of the authors' Random123 library (kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox_4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedPositionAndDrawEachChangeTheNumber) {
  const double u = uniform_draw(1, 2, 3);
  EXPECT_EQ(u, uniform_draw(1, 2, 3));
  EXPECT_NE(u, uniform_draw(2, 2, 3));
  EXPECT_NE(u, uniform_draw(std::uint64_t{1} << 32 | 1, 2, 3));
  EXPECT_NE(u, uniform_draw(1, 3, 3));
  EXPECT_NE(u, uniform_draw(1, 2, 4));
}

TEST(TopCandidates, EqualsAFullSort) {
  EXPECT_TRUE(rc::check("top", [] {
    // Few distinct values, so that ties are common.
    const auto logits = *rc::gen::container<std::vector<float>>(
        rc::gen::map(rc::gen::inRange(0, 20), [](int v) { return static_cast<float>(v); }));
    const auto n = *rc::gen::inRange<std::size_t>(0, 200);
    std::vector<TokenId> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    const auto top = top_candidates(logits, n);
    RC_ASSERT(top.size() == std::min(n, logits.size()));
    for (std::size_t i = 0; i < top.size(); ++i) RC_ASSERT(top[i].id == ids[i]);
  }));
}

GeneratedToken sample(const SamplingParams& params, std::vector<float> logits,
                      std::size_t position = 0, int top_logprobs = 3) {
  Sampler sampler(params, top_logprobs);
  return sampler.sample(logits, position).value();
}

TEST(ScoreToken, EqualsTheReportOfASamplerThatChoosesIt) {
  EXPECT_TRUE(rc::check("score", [] {
    auto logits = *rc::gen::container<std::vector<float>>(rc::gen::map(
        rc::gen::inRange(-300, 300), [](int v) { return static_cast<float>(v) / 16; }));
    RC_PRE(!logits.empty());
    const auto id = static_cast<TokenId>(*rc::gen::inRange<std::size_t>(0, logits.size()));
    const auto top = *rc::gen::inRange(0, 21);
    SamplingParams params;
    params.logit_bias = {{id, 100.0F}};
    const auto chosen = sample(params, logits, 7, top);
    RC_ASSERT(chosen.id == id);
    const auto scored = score_token(logits, id, 7, static_cast<std::size_t>(top)).value();
    RC_ASSERT(scored.id == id);
    RC_ASSERT(scored.logprob == chosen.logprob);
    RC_ASSERT(scored.margin == chosen.margin);
    RC_ASSERT(scored.top.size() == chosen.top.size());
    for (std::size_t i = 0; i < scored.top.size(); ++i) {
      RC_ASSERT(scored.top[i].id == chosen.top[i].id);
      RC_ASSERT(scored.top[i].logprob == chosen.top[i].logprob);
    }
  }));
  std::vector<float> broken = {0, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(score_token(broken, 0, 1, 1).error().code, ErrorCode::bad_model_file);
}

TEST(Sampler, GreedyTakesTheLowerIdOfATie) {
  const auto token = sample({}, {1, 3, 3, 2});
  EXPECT_EQ(token.id, 1);
  EXPECT_EQ(token.margin, 0);
  ASSERT_EQ(token.top.size(), 3U);
  EXPECT_EQ(token.top[0].id, 1);
  EXPECT_EQ(token.top[1].id, 2);
  EXPECT_EQ(token.top[2].id, 3);
}

TEST(Sampler, ReportsTheModelsOwnDistribution) {
  SamplingParams params;
  params.logit_bias = {{0, 100.0F}};
  params.temperature = 0.5F;
  const auto token = sample(params, {0, 1, 2});
  EXPECT_EQ(token.id, 0);  // the bias decides
  const double z = std::log(1 + std::exp(1.0) + std::exp(2.0));
  EXPECT_NEAR(static_cast<double>(token.logprob), -z, 1e-6);
  EXPECT_EQ(token.top[0].id, 2);
  EXPECT_NEAR(static_cast<double>(token.top[0].logprob), 2 - z, 1e-6);
  EXPECT_EQ(token.margin, 1);
}

TEST(Sampler, MarginNeedsNoLogprobs) {
  const auto token = sample({}, {0, 5, 3}, 0, 0);
  EXPECT_TRUE(token.top.empty());
  EXPECT_EQ(token.margin, 2);
}

TEST(Sampler, PenaltiesCountGeneratedTokens) {
  SamplingParams params;
  params.presence_penalty = 0.5F;
  params.frequency_penalty = 1;
  Sampler sampler(params, 0);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < 5; ++i) {
    std::vector<float> logits = {4, 3, 0};
    ids.push_back(sampler.sample(logits, i).value().id);
  }
  // 4 | 4-1.5 < 3 | 2.5 > 3-1.5 | 4-2.5 = 3-1.5, the lower id | 4-3.5 < 1.5
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1, 0, 0, 1}));
}

TEST(Sampler, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::vector<float> logits(20, 1.0F);
      logits[at] = bad;
      EXPECT_EQ(Sampler({}, 5).sample(logits, 0).error().code, ErrorCode::bad_model_file);
    }
  }
}

// The distribution that the parameters define, straight from the definition.
std::vector<double> expected_distribution(const SamplingParams& params,
                                          const std::vector<float>& logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (params.top_k > 0) {
    order.resize(std::min(order.size(), static_cast<std::size_t>(params.top_k)));
  }
  std::vector<double> p(logits.size(), 0);
  double mass = 0;
  for (const std::size_t i : order) {
    p[i] = std::exp(static_cast<double>(logits[i] / params.temperature));
    mass += p[i];
  }
  const double first = p[order[0]];
  double before = 0, kept = 0;
  for (const std::size_t i : order) {
    const bool in_mass = params.top_p >= 1 || before < static_cast<double>(params.top_p) * mass;
    const bool in_tail = p[i] >= static_cast<double>(params.min_p) * first;
    before += p[i];
    if (!in_mass || !in_tail) p[i] = 0;
    kept += p[i];
  }
  for (double& value : p) value /= kept;
  return p;
}

// Draws are counters, so this runs the same each time: it cannot fail by chance.
TEST(Sampler, FrequenciesFollowTheDistribution) {
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i) logits.push_back(static_cast<float>((i * 37 % 101) % 23) / 6);
  std::vector<SamplingParams> cases(6);
  for (auto& params : cases) params.temperature = 0.8F;
  cases[1].top_k = 7;
  cases[2].top_p = 0.6F;
  cases[3].min_p = 0.4F;
  cases[4] = {.temperature = 1.3F, .top_k = 120, .top_p = 0.9F, .min_p = 0.05F};
  cases[5].temperature = 0.05F;
  for (auto& params : cases) {
    const auto expected = expected_distribution(params, logits);
    constexpr int kDraws = 6'000;
    std::vector<double> seen(logits.size(), 0);
    for (int i = 0; i < kDraws; ++i) {
      params.seed = static_cast<std::uint64_t>(i);
      ++seen[static_cast<std::size_t>(sample(params, logits, 17, 0).id)];
    }
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double deviation = std::sqrt(kDraws * expected[i] * (1 - expected[i]));
      EXPECT_NEAR(seen[i], kDraws * expected[i], 5 * deviation + 1e-9)
          << "token " << i << ", case " << &params - cases.data();
    }
  }
}

TEST(Sampler, LogprobsDoNotChangeTheToken) {
  EXPECT_TRUE(rc::check("logprobs", [] {
    const auto logits = *rc::gen::container<std::vector<float>>(
        100, rc::gen::map(rc::gen::inRange(-500, 500),
                          [](int v) { return static_cast<float>(v) / 50; }));
    SamplingParams params;
    params.temperature = *rc::gen::element(0.0F, 0.3F, 1.0F, 2.0F);
    params.top_p = *rc::gen::element(0.5F, 1.0F);
    params.seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto without = sample(params, logits, 3, 0);
    const auto with = sample(params, logits, 3, 20);
    RC_ASSERT(without.id == with.id);
    RC_ASSERT(without.logprob == with.logprob);
    RC_ASSERT(without.margin == with.margin);
  }));
}

TEST(Sampler, ATinyTemperatureIsGreedy) {
  SamplingParams params;
  params.temperature = std::numeric_limits<float>::min();
  EXPECT_EQ(sample(params, {-3e38F, 1, 2, 1.999F}).id, 2);
}

}  // namespace
}  // namespace fixpoint::engine
