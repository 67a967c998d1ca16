// Log-probabilities of prompts: the bits that a generation of the same tokens records.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/local_engine/engine_support.hpp"

namespace fixpoint::engine {
namespace {

class ScoringTest : public EngineTest {
 protected:
  static GenerateRequest scoring(std::vector<TokenId> prompt, std::size_t max_tokens = 0) {
    GenerateRequest r;
    r.prompt = std::move(prompt);
    r.max_tokens = max_tokens;
    r.prompt_logprobs = true;
    return r;
  }
  static std::vector<TokenId> whole(const GenerateRequest& r, const Collector& answer) {
    std::vector<TokenId> tokens = r.prompt;
    for (const TokenId id : answer.ids()) tokens.push_back(id);
    return tokens;
  }
  static std::vector<GeneratedToken> tail(const std::vector<GeneratedToken>& tokens,
                                          std::size_t count) {
    EXPECT_GE(tokens.size(), count);
    return {tokens.end() - static_cast<std::ptrdiff_t>(std::min(count, tokens.size())),
            tokens.end()};
  }
};

TEST_F(ScoringTest, EqualsWhatTheGenerationOfTheSameTokensRecorded) {
  const auto engine = load().value();
  GenerateRequest r = request(21, 150);  // over several leaves of the cache
  r.sampling.temperature = 1.2F;
  r.sampling.seed = 5;
  r.sampling.frequency_penalty = 0.3F;
  Collector generated, scored;
  run(*engine, r, generated);
  ASSERT_EQ(generated.tokens.size(), 150U);
  EXPECT_TRUE(generated.prompt.empty());

  run(*engine, scoring(whole(r, generated)), scored);
  ASSERT_EQ(scored.prompt.size(), 170U);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(scored.prompt[i].id, r.prompt[i + 1]);
  expect_same(tail(scored.prompt, 150), generated.tokens);
}

TEST_F(ScoringTest, DoesNotDependOnChunksThreadsOrLoad) {
  std::vector<GenerateRequest> requests;
  for (std::size_t i = 0; i < 6; ++i) {
    requests.push_back(request(1 + i * 37, i % 3 * 10, static_cast<TokenId>(i * 11)));
    requests.back().prompt_logprobs = i != 4;
    requests.back().top_logprobs = static_cast<int>(i);
  }
  requests[4].max_tokens = 30;
  std::vector<Collector> alone(requests.size());
  {
    const auto engine = load({.threads = 1, .max_batch = 1}).value();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      run(*engine, requests[i], alone[i]);
      EXPECT_EQ(alone[i].prompt.size(),
                requests[i].prompt_logprobs ? requests[i].prompt.size() - 1 : 0U);
      EXPECT_EQ(alone[i].tokens.size(), *requests[i].max_tokens);
    }
  }
  for (const std::size_t chunk : {1, 7, 65, 256}) {
    const auto engine =
        load({.threads = chunk == 7 ? 3 : 2, .max_batch = 4, .prefill_chunk = chunk}).value();
    std::vector<Collector> together(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(engine->submit(requests[i], together[i].callback()));
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      together[i].wait();
      expect_same(alone[i], together[i]);
    }
  }
}

TEST_F(ScoringTest, ChangesNoGeneratedToken) {
  const auto engine = load().value();
  GenerateRequest r = request(70, 20);
  r.sampling.temperature = 1;
  Collector plain, scored;
  run(*engine, r, plain);
  r.prompt_logprobs = true;
  run(*engine, r, scored);
  EXPECT_EQ(scored.prompt.size(), 69U);
  EXPECT_EQ(scored.events, 20U);
  scored.prompt.clear();
  expect_same(plain, scored);
}

TEST_F(ScoringTest, GeneratesNothingForMaxTokens0) {
  const auto engine = load().value();
  for (const std::size_t length : {1, 2, 65, 512}) {  // 512: the whole context
    Collector c;
    run(*engine, scoring(request(length, 0).prompt), c);
    EXPECT_EQ(c.finish, FinishReason::length);
    EXPECT_EQ(c.events, 1U);
    EXPECT_EQ(c.prompt.size(), length - 1);
    EXPECT_TRUE(c.tokens.empty());
    EXPECT_EQ(c.text, "");
    EXPECT_EQ(c.usage.prompt_tokens, length);
    EXPECT_EQ(c.usage.completion_tokens, 0U);
  }
  Collector unscored;
  run(*engine, request(10, 0), unscored);
  EXPECT_EQ(unscored.finish, FinishReason::length);
  EXPECT_TRUE(unscored.tokens.empty());
}

TEST_F(ScoringTest, ACancelledOrBrokenScoreIsAnError) {
  {
    const auto engine = load({.max_batch = 1}).value();
    Collector blocker, c;
    const auto first = engine->submit(request(10, 400), blocker.callback()).value();
    const auto second = engine->submit(scoring(request(300, 0).prompt), c.callback()).value();
    engine->cancel(second);
    engine->cancel(first);
    c.wait();
    ASSERT_TRUE(c.error);
    EXPECT_EQ(c.error->code, ErrorCode::cancelled);
  }
  const auto engine = load({}, {.damage = test::GgufDamage::not_finite}).value();
  Collector c;
  run(*engine, scoring(request(100, 0).prompt), c);
  ASSERT_TRUE(c.error);
  EXPECT_EQ(c.error->code, ErrorCode::bad_model_file);
  EXPECT_FALSE(c.finish);
}

}  // namespace
}  // namespace fixpoint::engine
