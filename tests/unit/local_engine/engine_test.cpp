// The engine through its public face, on the small random model.
#include "local_engine/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "kernels/cpu.hpp"
#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using test::GgufDamage;
using test::TinyGgufOptions;
using ::testing::HasSubstr;

// Collects one generation's events and waits for its end.
class Collector {
 public:
  GenerateCallback callback() {
    return [this](GenerateEvent event) {
      const std::lock_guard lock(mutex_);
      text += event.text;
      tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
      visible_tokens = event.visible_tokens;
      usage = event.usage;
      finish = event.finish;
      error = event.error;
      ++events;
      ended_ = event.finish || event.error;
      changed_.notify_all();
    };
  }
  void wait() { wait_for([this] { return ended_; }); }
  void wait_for_tokens(std::size_t count) {
    wait_for([&] { return ended_ || tokens.size() >= count; });
  }
  std::vector<TokenId> ids() const {
    std::vector<TokenId> out;
    for (const auto& token : tokens) out.push_back(token.id);
    return out;
  }

  std::string text;
  std::vector<GeneratedToken> tokens;
  std::size_t visible_tokens = 0, events = 0;
  Usage usage;
  std::optional<FinishReason> finish;
  std::optional<Error> error;

 private:
  template <class Condition>
  void wait_for(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

// Everything that a client can see of two generations, logprobs bit for bit.
void expect_same(const Collector& a, const Collector& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish, b.finish);
  ASSERT_EQ(a.tokens.size(), b.tokens.size());
  for (std::size_t i = 0; i < a.tokens.size(); ++i) {
    EXPECT_EQ(a.tokens[i].id, b.tokens[i].id) << i;
    EXPECT_EQ(a.tokens[i].logprob, b.tokens[i].logprob) << i;
    EXPECT_EQ(a.tokens[i].margin, b.tokens[i].margin) << i;
    ASSERT_EQ(a.tokens[i].top.size(), b.tokens[i].top.size());
    for (std::size_t k = 0; k < a.tokens[i].top.size(); ++k) {
      EXPECT_EQ(a.tokens[i].top[k].id, b.tokens[i].top[k].id);
      EXPECT_EQ(a.tokens[i].top[k].logprob, b.tokens[i].top[k].logprob);
    }
  }
}

class EngineTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Engine>> load(EngineOptions options = {}, TinyGgufOptions model = {}) {
    if (options.threads == 0) options.threads = 2;
    return Engine::load(test::write_tiny_gguf(directory_ / "tiny.gguf", model), options);
  }

  static GenerateRequest request(std::size_t prompt_tokens, std::size_t max_tokens,
                                 TokenId first = 65) {
    GenerateRequest r;
    for (std::size_t i = 0; i < prompt_tokens; ++i) {
      r.prompt.push_back(static_cast<TokenId>((static_cast<std::size_t>(first) + i * 7) % 250));
    }
    r.max_tokens = max_tokens;
    // The end and the other control tokens never come, so that lengths are known.
    r.sampling.logit_bias = {{297, -100.0F}, {298, -100.0F}, {299, -100.0F}};
    return r;
  }

  static void run(Engine& engine, GenerateRequest r, Collector& collector) {
    const auto id = engine.submit(std::move(r), collector.callback());
    ASSERT_TRUE(id) << id.error().message;
    collector.wait();
  }

  const test::TemporaryDirectory directory_;
};

TEST_F(EngineTest, DescribesTheModel) {
  const auto engine = load({.name = "tiny"}).value();
  const ModelInfo& info = engine->info();
  EXPECT_EQ(info.name, "tiny");
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.weights_digest.size(), 64U);
  EXPECT_EQ(info.fingerprint.size(), 19U);
  EXPECT_TRUE(info.fingerprint.starts_with("fp-"));
  EXPECT_EQ(info.context, 512U);
  EXPECT_EQ(info.vocabulary, 300U);
  EXPECT_EQ(info.layers, 2U);
  EXPECT_EQ(info.parameters, 300U * 64 + 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128));
  EXPECT_TRUE(engine->tokenizer().ends_generation(299));
  ASSERT_NE(engine->chat_template(), nullptr);

  // Each part of what decides the bits moves the fingerprint; the engine's own settings do not.
  const auto fingerprint = [&](const TinyGgufOptions& model, EngineOptions options = {}) {
    return load(options, model).value()->info().fingerprint;
  };
  EXPECT_EQ(fingerprint({}, {.threads = 1, .max_batch = 3, .prefill_chunk = 7}), info.fingerprint);
  EXPECT_NE(fingerprint({.seed = 2}), info.fingerprint);
  EXPECT_NE(fingerprint({.pre_tokenizer = "gpt-2"}), info.fingerprint);
  EXPECT_NE(fingerprint({.chat_template = false}), info.fingerprint);
}

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
  run(*engine, request(60, 0), c);
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

TEST_F(EngineTest, KvMemoryBoundsTheContext) {
  constexpr std::size_t kPage = 2 * 2 * 32 * kernels::kLeafTokens * sizeof(float);
  EXPECT_EQ(load({.kv_bytes = 2 * kPage}).value()->info().context,
            std::min<std::size_t>(512, 2 * kernels::kLeafTokens));
  const auto none = load({.kv_bytes = kPage - 1});
  EXPECT_THAT(none.error().message, HasSubstr("kv_bytes"));
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
  engine->cancel(first);  // has ended
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
  id = engine->submit(request(10, 400), [&](GenerateEvent event) {
                 const bool third = event.usage.completion_tokens == 3;
                 forward(std::move(event));
                 if (!third) return;
                 const std::lock_guard inner(mutex);
                 engine->cancel(*id);
               }).value();
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
    return engine->submit(std::move(r), [](GenerateEvent) { FAIL() << "called back"; }).error().code;
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

TEST_F(EngineTest, RefusesBrokenFiles) {
  const auto error = [&](TinyGgufOptions model) { return load({}, model).error(); };
  using enum GgufDamage;
  for (const GgufDamage damage : {cut, cut_header, bad_magic, absurd_tensors, absurd_string,
                                  absurd_array, absurd_dims, tensor_outside}) {
    EXPECT_EQ(error({.damage = damage}).code, ErrorCode::bad_model_file)
        << static_cast<int>(damage);
  }
  EXPECT_THAT(error({.damage = missing_tensor}).message, HasSubstr("blk.0.ffn_up.weight"));
  EXPECT_THAT(error({.damage = wrong_shape}).message, HasSubstr("[64 x 63]"));
  EXPECT_EQ(error({.damage = extra_tensor}).code, ErrorCode::unsupported);
  EXPECT_EQ(error({.architecture = "gemma"}).code, ErrorCode::unsupported);
  EXPECT_EQ(error({.pre_tokenizer = "unheard-of"}).code, ErrorCode::unsupported);
  EXPECT_EQ(Engine::load(directory_ / "absent.gguf", {}).error().code, ErrorCode::io);
  EXPECT_EQ(load({.context = 1024}).error().code, ErrorCode::bad_request);
  EXPECT_EQ(load({.max_batch = 0}).error().code, ErrorCode::bad_request);
}

TEST_F(EngineTest, OtherShapesOfModelRun) {
  const std::vector<TinyGgufOptions> models = {
      {.matrices = kernels::DType::q4_0, .embedding = kernels::DType::f16, .tied = false},
      {.matrices = kernels::DType::q8_0, .rope_factors = true},
      {.types = {{"blk.0.attn_q.weight", kernels::DType::bf16}}},
      {.layers = 1, .hidden = 48, .heads = 3, .kv_heads = 1, .ffn = 72},
  };
  std::vector<std::vector<TokenId>> answers;
  for (const auto& model : models) {
    const auto engine = load({}, model).value();
    Collector c;
    run(*engine, request(10, 10), c);
    EXPECT_EQ(c.finish, FinishReason::length);
    EXPECT_EQ(c.tokens.size(), 10U);
  }
}

// After loading, nothing reads the file: it may be overwritten or cut.
TEST_F(EngineTest, TheFileMayGoAfterLoading) {
  const auto engine = load().value();
  Collector before, after;
  run(*engine, request(10, 10), before);
  std::filesystem::resize_file(directory_ / "tiny.gguf", 0);
  run(*engine, request(10, 10), after);
  expect_same(before, after);
}

}  // namespace
}  // namespace fixpoint::engine
