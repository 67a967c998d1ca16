// The engine through its public face, on the small random model.
#include "local_engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "kernels/cpu.hpp"
#include "tests/unit/local_engine/engine_support.hpp"

namespace fixpoint::engine {
namespace {

using test::GgufDamage;
using ::testing::HasSubstr;

TEST_F(EngineTest, GeneratesUpToMaxTokens) {
  const auto engine = load().value();
  Collector c;
  run(*engine, request(10, 20), c);
  EXPECT_EQ(c.finish, FinishReason::length);
  EXPECT_FALSE(c.error);
  EXPECT_EQ(c.tokens.size(), 20U);
  EXPECT_EQ(c.visible_tokens, 20U);
  EXPECT_EQ(c.events, 20U);
  EXPECT_EQ(c.usage.prompt_tokens, 10U);
  EXPECT_EQ(c.usage.completion_tokens, 20U);
  for (const auto& token : c.tokens) {
    EXPECT_EQ(token.top.size(), 5U);
    EXPECT_EQ(token.top[0].id, token.id);
    EXPECT_EQ(token.top[0].logprob, token.logprob);
    EXPECT_GE(token.margin, 0);
  }
}

TEST_F(EngineTest, FillsTheContext) {
  const auto engine = load({.context = 100}).value();
  Collector c;
  run(*engine, request(60, std::nullopt), c);
  EXPECT_EQ(c.finish, FinishReason::length);
  EXPECT_EQ(c.tokens.size(), 40U);
}

TEST_F(EngineTest, StopsAtAnEndToken) {
  const auto engine = load().value();
  GenerateRequest r = request(10, 20);
  r.sampling.logit_bias = {{299, 100.0F}};
  Collector c;
  run(*engine, std::move(r), c);
  EXPECT_EQ(c.finish, FinishReason::stop);
  EXPECT_EQ(c.stopped_by, "");
  EXPECT_EQ(c.text, "");
  EXPECT_EQ(c.ids(), std::vector<TokenId>{299});
  EXPECT_EQ(c.visible_tokens, 0U);
  EXPECT_EQ(c.usage.completion_tokens, 1U);
}

TEST_F(EngineTest, ControlTokensAreNoText) {
  const auto engine = load().value();
  GenerateRequest r = request(10, 3);
  r.sampling.logit_bias = {{298, 100.0F}};  // <|im_start|> does not end a generation
  Collector c;
  run(*engine, std::move(r), c);
  EXPECT_EQ(c.finish, FinishReason::length);
  EXPECT_EQ(c.text, "");
  EXPECT_EQ(c.tokens.size(), 3U);
}

TEST_F(EngineTest, StopsAtAStopStringAcrossTokens) {
  const auto engine = load().value();
  GenerateRequest r = request(10, 30);
  for (TokenId id = 128; id < 256; ++id) r.sampling.logit_bias.emplace_back(id, -100.0F);  // ASCII
  Collector free_running;
  run(*engine, r, free_running);
  ASSERT_GT(free_running.tokens.size(), 10U);
  const auto& tokenizer = engine->tokenizer();
  std::string before, stop;
  const auto ids = free_running.ids();
  before = tokenizer.decode(std::span(ids).first(5));
  stop = tokenizer.decode(std::span(ids).subspan(5, 3));
  const std::size_t first = free_running.text.find(stop);

  r.stop = {"never in the text", stop};
  Collector c;
  run(*engine, r, c);
  EXPECT_EQ(c.finish, FinishReason::stop);
  EXPECT_EQ(c.stopped_by, stop);
  EXPECT_EQ(c.text, free_running.text.substr(0, first));
  EXPECT_LE(c.tokens.size(), 8U);
  EXPECT_LE(c.visible_tokens, c.tokens.size());
}

// The promise at the level of requests: alone, among others, in small chunks, with other thread
// counts, and after a neighbour was cancelled.
TEST_F(EngineTest, AnswersDoNotDependOnLoad) {
  std::vector<GenerateRequest> requests;
  for (std::size_t i = 0; i < 7; ++i) {
    GenerateRequest r = request(5 + i * 31, 25 + i, static_cast<TokenId>(i * 11));
    r.sampling.temperature = i % 2 ? 0.9F : 0.0F;
    r.sampling.top_p = i == 3 ? 0.7F : 1.0F;
    r.sampling.frequency_penalty = i == 5 ? 0.5F : 0.0F;
    r.sampling.seed = i;
    requests.push_back(r);
  }
  std::vector<Collector> alone(requests.size());
  {
    const auto engine = load({.threads = 1, .max_batch = 1}).value();
    for (std::size_t i = 0; i < requests.size(); ++i) run(*engine, requests[i], alone[i]);
  }
  for (const std::size_t chunk : {1, 16, 256}) {
    const auto engine =
        load({.threads = chunk == 16 ? 3 : 2, .max_batch = 4, .prefill_chunk = chunk}).value();
    std::vector<Collector> together(requests.size());
    Collector cancelled;
    const auto victim = engine->submit(request(40, 300), cancelled.callback()).value();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(engine->submit(requests[i], together[i].callback()));
    }
    cancelled.wait_for_tokens(3);
    engine->cancel(victim);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      together[i].wait();
      expect_same(alone[i], together[i]);
    }
    cancelled.wait();
    EXPECT_EQ(cancelled.error->code, ErrorCode::cancelled);
    Collector again;  // in the pages that the cancelled one left behind
    run(*engine, requests[6], again);
    expect_same(alone[6], again);
  }
}

TEST_F(EngineTest, SeedAndDrawAddressAnAnswer) {
  const auto engine = load().value();
  const auto answer = [&](std::uint64_t seed, std::uint32_t draw) {
    GenerateRequest r = request(8, 16);
    r.sampling.temperature = 1;
    r.sampling.seed = seed;
    r.sampling.draw = draw;
    Collector c;
    run(*engine, r, c);
    return c.ids();
  };
  const auto first = answer(1, 0);
  EXPECT_EQ(first, answer(1, 0));
  EXPECT_NE(first, answer(1, 1));
  EXPECT_NE(first, answer(2, 0));
}

TEST_F(EngineTest, QueuesWhatDoesNotFitAndRefusesTheRest) {
  // Pages for one sequence of 128 tokens: each request needs them all, so they run one by one.
  constexpr std::size_t kPage = 2 * 2 * 32 * kernels::kLeafTokens * sizeof(float);
  const std::size_t pages = (128 + kernels::kLeafTokens - 1) / kernels::kLeafTokens;
  const auto engine = load({.context = 128, .kv_bytes = pages * kPage, .max_queue = 3}).value();
  EXPECT_EQ(engine->info().context, 128U);
  Collector running;
  ASSERT_TRUE(engine->submit(request(10, 118), running.callback()));
  running.wait_for_tokens(1);
  std::vector<Collector> queued(8);
  std::size_t accepted = 0;
  for (Collector& c : queued) {
    const auto id = engine->submit(request(10, 118), c.callback());
    if (id) {
      ++accepted;
      continue;
    }
    EXPECT_EQ(id.error().code, ErrorCode::overloaded);
    EXPECT_THAT(id.error().message, HasSubstr("max_queue"));
    break;
  }
  // At least three wait; how many more found room depends on how fast the first one ran.
  EXPECT_GE(accepted, 3U);
  running.wait();
  for (std::size_t i = 0; i < accepted; ++i) {
    queued[i].wait();
    expect_same(running, queued[i]);
  }
}

TEST_F(EngineTest, CancelsRunningQueuedAndEnded) {
  const auto engine = load({.max_batch = 1}).value();
  Collector running, queued;
  const auto first = engine->submit(request(10, 450), running.callback()).value();
  const auto second = engine->submit(request(10, 450), queued.callback()).value();
  engine->cancel(second);
  queued.wait();
  EXPECT_EQ(queued.error->code, ErrorCode::cancelled);
  engine->cancel(first);
  running.wait();
  if (running.error) {
    EXPECT_EQ(running.error->code, ErrorCode::cancelled);
  }
  engine->cancel(first);   // has ended
  engine->cancel(12'345);  // never was
  Collector after;
  run(*engine, request(5, 5), after);
  EXPECT_EQ(after.tokens.size(), 5U);
}

TEST_F(EngineTest, ACallbackMayCancel) {
  const auto engine = load().value();
  Collector c;
  auto forward = c.callback();
  std::mutex mutex;
  std::optional<std::uint64_t> id;
  std::unique_lock lock(mutex);
  id = engine
           ->submit(request(10, 400),
                    [&](GenerateEvent event) {
                      const bool third = event.usage.completion_tokens == 3;
                      forward(std::move(event));
                      if (!third) return;
                      const std::lock_guard inner(mutex);
                      engine->cancel(*id);
                    })
           .value();
  lock.unlock();
  c.wait();
  ASSERT_TRUE(c.error);
  EXPECT_EQ(c.error->code, ErrorCode::cancelled);
  EXPECT_EQ(c.tokens.size(), 3U);
}

TEST_F(EngineTest, ItsEndCancelsWhatRuns) {
  Collector running, queued;
  {
    const auto engine = load({.max_batch = 1}).value();
    ASSERT_TRUE(engine->submit(request(10, 500), running.callback()));
    ASSERT_TRUE(engine->submit(request(10, 500), queued.callback()));
    running.wait_for_tokens(1);
  }
  ASSERT_TRUE(queued.error);
  EXPECT_EQ(queued.error->code, ErrorCode::cancelled);
}

TEST_F(EngineTest, RefusesBadRequestsAtOnce) {
  const auto engine = load().value();
  const auto code = [&](GenerateRequest r) {
    return engine->submit(std::move(r), [](GenerateEvent) { FAIL() << "called back"; })
        .error()
        .code;
  };
  EXPECT_EQ(code({}), ErrorCode::bad_request);
  EXPECT_EQ(code(request(512, 1)), ErrorCode::context_exceeded);
}

TEST_F(EngineTest, LogitsThatAreNotFiniteEndTheGenerationOnly) {
  const auto engine = load({}, {.damage = GgufDamage::not_finite}).value();
  for (int i = 0; i < 2; ++i) {
    Collector c;
    run(*engine, request(10, 5), c);
    ASSERT_TRUE(c.error);
    EXPECT_EQ(c.error->code, ErrorCode::bad_model_file);
    EXPECT_EQ(c.usage.completion_tokens, 0U);
  }
}

}  // namespace
}  // namespace fixpoint::engine
