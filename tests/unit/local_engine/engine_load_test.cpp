// What loading gives and refuses, through the engine's public face.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cpu.hpp"
#include "local_engine/engine.hpp"
#include "tests/unit/local_engine/engine_support.hpp"

namespace fixpoint::engine {
namespace {

using test::GgufDamage;
using test::TinyGgufOptions;
using ::testing::HasSubstr;

class EngineLoadTest : public EngineTest {};

TEST_F(EngineLoadTest, DescribesTheModel) {
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
  EXPECT_EQ(info.parameters,
            300U * 64 + 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128));
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

TEST_F(EngineLoadTest, KvMemoryBoundsTheContext) {
  constexpr std::size_t kPage = 2 * 2 * 32 * kernels::kLeafTokens * sizeof(float);
  EXPECT_EQ(load({.kv_bytes = 2 * kPage}).value()->info().context,
            std::min<std::size_t>(512, 2 * kernels::kLeafTokens));
  const auto none = load({.kv_bytes = kPage - 1});
  EXPECT_THAT(none.error().message, HasSubstr("kv_bytes"));
}

TEST_F(EngineLoadTest, RefusesBrokenFiles) {
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

TEST_F(EngineLoadTest, OtherShapesOfModelRun) {
  const std::vector<TinyGgufOptions> models = {
      {.matrices = kernels::DType::q4_0, .embedding = kernels::DType::f16, .tied = false},
      {.matrices = kernels::DType::q8_0, .rope_factors = true},
      {.types = {{"blk.0.attn_q.weight", kernels::DType::bf16}}},
      {.layers = 1, .hidden = 48, .heads = 3, .kv_heads = 1, .ffn = 72},
  };
  for (const auto& model : models) {
    const auto engine = load({}, model).value();
    Collector c;
    run(*engine, request(10, 10), c);
    EXPECT_EQ(c.finish, FinishReason::length);
    EXPECT_EQ(c.tokens.size(), 10U);
  }
}

// After loading, nothing reads the file: it may be overwritten or cut.
TEST_F(EngineLoadTest, TheFileMayGoAfterLoading) {
  const auto engine = load().value();
  Collector before, after;
  run(*engine, request(10, 10), before);
  std::filesystem::resize_file(directory_ / "tiny.gguf", 0);
  run(*engine, request(10, 10), after);
  expect_same(before, after);
}

}  // namespace
}  // namespace fixpoint::engine
