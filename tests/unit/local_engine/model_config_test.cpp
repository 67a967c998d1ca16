#include "local_engine/model_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using ::testing::HasSubstr;

// The tiny model's header, to be changed.
GgufHeader tiny_header() {
  const test::TemporaryDirectory directory;
  return GgufFile::open(test::write_tiny_gguf(directory / "tiny.gguf")).value().header();
}

void set(GgufHeader& header, std::string_view key, GgufValue value) {
  std::erase_if(header.metadata, [&](const auto& entry) { return entry.first == key; });
  header.metadata.emplace_back(key, std::move(value));
}
GgufValue u32(std::uint64_t value) {
  return {GgufType::u32, value};
}
GgufValue f32(double value) {
  return {GgufType::f32, value};
}
GgufValue text(std::string value) {
  return {GgufType::string, std::move(value)};
}

Error error_with(std::string_view key, GgufValue value) {
  GgufHeader header = tiny_header();
  set(header, key, std::move(value));
  const auto config = read_model_config(header);
  return config ? Error{ErrorCode::io, "accepted"} : config.error();
}

TEST(ModelConfig, ReadsTheTinyModel) {
  const auto config = read_model_config(tiny_header()).value();
  EXPECT_EQ(config.layers, 2U);
  EXPECT_EQ(config.hidden, 64U);
  EXPECT_EQ(config.heads, 4U);
  EXPECT_EQ(config.kv_heads, 2U);
  EXPECT_EQ(config.head_dim, 16U);
  EXPECT_EQ(config.rotary_dim, 16U);
  EXPECT_EQ(config.ffn, 128U);
  EXPECT_EQ(config.vocabulary, 300U);
  EXPECT_EQ(config.context, 512U);
  EXPECT_EQ(config.rms_eps, 1e-5F);
  EXPECT_EQ(config.rope_base, 10'000);
}

TEST(ModelConfig, RefusesOtherArchitecturesAndSettings) {
  const auto unsupported = [](std::string_view key, GgufValue value) {
    const Error error = error_with(key, std::move(value));
    EXPECT_EQ(error.code, ErrorCode::unsupported) << key << ": " << error.message;
    return error.message;
  };
  EXPECT_THAT(unsupported("general.architecture", text("mamba")), HasSubstr("mamba"));
  EXPECT_THAT(unsupported("llama.rope.scaling.type", text("yarn")), HasSubstr("yarn"));
  EXPECT_THAT(unsupported("llama.rope.scaling.factor", f32(2)),
              HasSubstr("without a scaling type"));
  EXPECT_THAT(unsupported("llama.expert_count", u32(8)), HasSubstr("llama.expert_count"));
  EXPECT_THAT(unsupported("llama.attention.value_length", u32(8)), HasSubstr("values"));
  EXPECT_THAT(unsupported("llama.tensor_data_layout", text("other")), HasSubstr("layout"));
}

TEST(ModelConfig, RefusesAbsurdValues) {
  const auto bad = [](std::string_view key, GgufValue value) {
    const Error error = error_with(key, std::move(value));
    EXPECT_EQ(error.code, ErrorCode::bad_model_file) << key << ": " << error.message;
    return error.message;
  };
  EXPECT_THAT(bad("llama.block_count", u32(0)), HasSubstr("1 to 1024"));
  EXPECT_THAT(bad("llama.block_count", text("two")), HasSubstr("llama.block_count"));
  EXPECT_THAT(bad("llama.embedding_length", u32(4'000'000'000)), HasSubstr("65536"));
  EXPECT_THAT(bad("llama.attention.head_count", u32(3)), HasSubstr("head_count"));
  EXPECT_THAT(bad("llama.attention.head_count", u32(1024)), HasSubstr("heads of 0"));
  EXPECT_THAT(bad("llama.attention.head_count_kv", u32(3)), HasSubstr("does not divide"));
  EXPECT_THAT(bad("llama.rope.dimension_count", u32(7)), HasSubstr("even"));
  EXPECT_THAT(bad("llama.rope.dimension_count", u32(32)), HasSubstr("at most"));
  EXPECT_THAT(bad("llama.rope.freq_base", f32(-1)), HasSubstr("positive"));
  EXPECT_THAT(bad("llama.attention.layer_norm_rms_epsilon", f32(NAN)), HasSubstr("positive"));
  EXPECT_THAT(bad("tokenizer.ggml.tokens", u32(1)), HasSubstr("tokens"));
}

// Correctly rounded to fp32 for every base and width in use, so the same on every machine.
TEST(RopeFrequencies, AreCorrectlyRounded) {
  ModelConfig config;
  for (const double base : {10'000.0, 100'000.0, 500'000.0, 1e6, 1e12}) {
    for (const std::size_t dim : {16, 64, 80, 128, 256}) {
      config.rope_base = base;
      config.rotary_dim = dim;
      const auto frequency = rope_frequencies(config, {});
      ASSERT_EQ(frequency.size(), dim / 2);
      for (std::size_t i = 0; i < frequency.size(); ++i) {
        const long double exact =
            std::pow(static_cast<long double>(base), -2.0L * static_cast<long double>(i) / dim);
        EXPECT_EQ(frequency[i], static_cast<float>(exact)) << base << " " << dim << " " << i;
      }
    }
  }
}

TEST(RopeFrequencies, AreScaled) {
  ModelConfig config;
  config.rotary_dim = 4;
  config.rope_scale = 4;
  EXPECT_EQ(rope_frequencies(config, {}), (std::vector<float>{0.25F, 0.0025F}));
  const std::vector<float> factors = {1, 10};
  EXPECT_EQ(rope_frequencies(config, factors), (std::vector<float>{0.25F, 0.00025F}));
}

}  // namespace
}  // namespace fixpoint::engine
