// A folder in Hugging Face's form: fixpoint-tiny's files, whole and changed.
#include "local_engine/model_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "local_engine/engine.hpp"
#include "local_engine/hf_config.hpp"
#include "local_engine/hf_json.hpp"
#include "local_engine/hf_tokenizer.hpp"
#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path kTiny = FIXPOINT_SOURCE_DIR "/local_engine/models/tiny";

Json read_json(const char* name) {
  std::ifstream in(kTiny / name);
  return Json::parse(in);
}

// A copy of the folder, to be changed.
class ModelFolder : public ::testing::Test {
 protected:
  ModelFolder() {
    fs::create_directory(folder_);
    for (const char* name : {"config.json", "generation_config.json", "model.safetensors",
                             "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
      fs::copy_file(kTiny / name, folder_ / name);
    }
  }
  void change(const char* name, const std::function<void(Json&)>& edit) {
    Json value = read_json(name);
    edit(value);
    std::ofstream(folder_ / name) << value;
  }
  void restore(const char* name) {
    fs::copy_file(kTiny / name, folder_ / name, fs::copy_options::overwrite_existing);
  }
  Result<ModelFiles> load() { return load_model_files(folder_.string()); }
  std::string fingerprint() {
    return Engine::load(folder_.string(), {.threads = 1}).value()->info().fingerprint;
  }

  const test::TemporaryDirectory directory_;
  const fs::path folder_ = directory_ / "model";
};

TEST_F(ModelFolder, IsReadWhole) {
  const auto files = load().value();
  EXPECT_EQ(files.config.layers, 8U);
  EXPECT_EQ(files.config.hidden, 192U);
  EXPECT_EQ(files.config.heads, 6U);
  EXPECT_EQ(files.config.kv_heads, 2U);
  EXPECT_EQ(files.config.head_dim, 32U);
  EXPECT_EQ(files.config.rotary_dim, 32U);
  EXPECT_EQ(files.config.ffn, 512U);
  EXPECT_EQ(files.config.vocabulary, 2048U);
  EXPECT_EQ(files.config.context, 2048U);
  EXPECT_EQ(files.config.rms_eps, 1e-5F);
  EXPECT_EQ(files.config.rope_pairing, kernels::RopePairing::halves);
  EXPECT_EQ(files.weights.dtypes, "bf16:74");
  EXPECT_EQ(files.weights.parameters, 3'542'208U);
  EXPECT_EQ(files.text.tokenizer.pre_tokenizer, "smollm");
  EXPECT_EQ(files.text.tokenizer.tokens[2], "<|im_end|>");
  EXPECT_TRUE(files.text.tokenizer.is_special[2] && files.text.is_control[2]);
  EXPECT_FALSE(files.text.tokenizer.is_special[3] || files.text.is_control[3]);
  EXPECT_EQ(files.text.tokenizer.eos, 2);
  EXPECT_EQ(files.text.tokenizer.bos, 1);
  EXPECT_FALSE(files.text.tokenizer.add_bos);
  EXPECT_EQ(files.text.eos, "<|im_end|>");
  EXPECT_THAT(files.text.chat_template, HasSubstr("tool_call"));
  EXPECT_EQ(files.weights_digest.size(), 64U);
}

TEST_F(ModelFolder, TheOptionalFilesMayBeMissing) {
  for (const char* name :
       {"tokenizer_config.json", "generation_config.json", "chat_template.jinja"}) {
    fs::remove(folder_ / name);
  }
  const auto text = load().value().text;
  EXPECT_EQ(text.tokenizer.eos, 2);  // config.json's
  EXPECT_EQ(text.chat_template, "");
  change("tokenizer_config.json", [](Json& value) { value["chat_template"] = "older"; });
  EXPECT_EQ(load().value().text.chat_template, "older");
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    fs::remove(folder_ / name);
    EXPECT_THAT(load().error().message, HasSubstr(name));
    restore(name);
  }
  fs::remove(folder_ / "model.safetensors");
  std::ofstream(folder_ / "model.safetensors.index.json") << "{}";
  EXPECT_EQ(load().error().code, ErrorCode::unsupported);
}

TEST_F(ModelFolder, EachFileMovesTheFingerprint) {
  const std::string original = fingerprint();
  const auto moves = [&](const char* name) {
    EXPECT_NE(fingerprint(), original) << name;
    restore(name);
    EXPECT_EQ(fingerprint(), original) << name;
  };
  const std::string digest = load().value().weights_digest;
  change("config.json", [](Json& value) { value["rope_theta"] = 10'001; });
  EXPECT_NE(load().value().weights_digest, digest);
  moves("config.json");
  {
    std::fstream weights(folder_ / "model.safetensors", std::ios::in | std::ios::out);
    weights.seekp(-1, std::ios::end);
    weights.put('\x3c');
  }
  EXPECT_NE(load().value().weights_digest, digest);
  moves("model.safetensors");
  change("tokenizer.json",
         [](Json& value) { std::swap(value["model"]["merges"][0], value["model"]["merges"][1]); });
  moves("tokenizer.json");
  change("generation_config.json", [](Json& value) { value["eos_token_id"] = {2, 0}; });
  moves("generation_config.json");
  std::ofstream(folder_ / "chat_template.jinja", std::ios::app) << "more";
  moves("chat_template.jinja");
}

TEST_F(ModelFolder, WeightsMustFitTheConfiguration) {
  change("config.json", [](Json& value) { value["num_hidden_layers"] = 7; });
  EXPECT_THAT(load().error().message, HasSubstr("model.layers.7."));
  change("config.json", [](Json& value) { value["num_hidden_layers"] = 9; });
  EXPECT_THAT(load().error().message, HasSubstr("\"model.layers.8.input_layernorm.weight\""));
  change("config.json", [](Json& value) { value["intermediate_size"] = 511; });
  EXPECT_THAT(load().error().message, HasSubstr("mlp.gate_proj.weight"));
  change("config.json", [](Json& value) { value["tie_word_embeddings"] = false; });
  EXPECT_THAT(load().error().message, HasSubstr("\"lm_head.weight\" is missing"));
  restore("config.json");
  fs::resize_file(folder_ / "model.safetensors", 7'000'000);
  EXPECT_EQ(load().error().code, ErrorCode::bad_model_file);
}

TEST(HfJson, IsLimited) {
  EXPECT_THAT(parse_hf_json("f", "[1", 9).error().message, HasSubstr("f is not JSON"));
  EXPECT_THAT(parse_hf_json("f", "[1, 2, 3]", 8).error().message, HasSubstr("the limit is 8"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(parse_hf_json("f", deep, 1 << 20).error().message, HasSubstr("nested deeper"));
}

// As a parser gives it: C++ literals are signed, numbers in a file are not.
Result<HfConfig> read_config(const Json& config) {
  return read_hf_config(Json::parse(config.dump()));
}

struct Change {
  const char* key;
  Json value;
  const char* message;
};

TEST(HfConfig, RefusesWhatWouldChangeTheForwardPass) {
  const std::vector<Change> changes = {
      {"architectures", {"Qwen3ForCausalLM"}, "Qwen3ForCausalLM"},
      {"architectures", {"LlamaForCausalLM", "Other"}, "architectures"},
      {"hidden_act", "gelu", "gelu"},
      {"attention_bias", true, "attention_bias"},
      {"mlp_bias", true, "mlp_bias"},
      {"rope_scaling", {{"rope_type", "llama3"}}, "llama3"},
      {"rope_parameters", {{"rope_type", "yarn"}}, "yarn"},
      {"partial_rotary_factor", 0.5, "partial_rotary_factor"},
      {"quantization_config", {{"bits", 4}}, "quantization_config"},
  };
  for (const auto& [key, value, message] : changes) {
    Json config = read_json("config.json");
    config[key] = value;
    const auto read = read_config(config);
    ASSERT_FALSE(read) << key;
    EXPECT_EQ(read.error().code, ErrorCode::unsupported) << read.error().message;
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
}

TEST(HfConfig, RefusesAbsurdValues) {
  const std::vector<Change> changes = {
      {"architectures", nullptr, "is missing"},
      {"hidden_size", nullptr, "\"hidden_size\" is missing"},
      {"hidden_size", -5, "-5; it must be 1 to 65536"},
      {"hidden_size", 1e30, "hidden_size"},
      {"num_hidden_layers", 0, "1 to 1024"},
      {"num_hidden_layers", "8", "num_hidden_layers"},
      {"vocab_size", 1ULL << 60, "vocab_size"},
      {"num_key_value_heads", 4, "does not divide"},
      {"head_dim", 33, "even numbers"},
      {"head_dim", 512, "head_dim"},
      {"rms_norm_eps", 0, "rms_norm_eps"},
      {"rope_theta", "big", "rope_theta"},
      {"rope_theta", -1, "positive"},
      {"tie_word_embeddings", 1, "true or false"},
      {"hidden_act", 1, "must be a text"},
  };
  for (const auto& [key, value, message] : changes) {
    Json config = read_json("config.json");
    config[key] = value;
    const auto read = read_config(config);
    ASSERT_FALSE(read) << key << " " << value;
    EXPECT_EQ(read.error().code, ErrorCode::bad_model_file);
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
  EXPECT_FALSE(read_config(Json::array()));
  Json config = read_json("config.json");
  config["head_dim"] = nullptr;
  config["num_attention_heads"] = 7;
  EXPECT_THAT(read_config(config).error().message, HasSubstr("does not divide"));
}

TEST(HfConfig, RopeBaseMayStandInItsOwnObject) {
  Json config = read_json("config.json");
  config.erase("rope_theta");
  config.erase("head_dim");
  EXPECT_EQ(read_config(config).value().model.rope_base, 10'000);
  EXPECT_EQ(read_config(config).value().model.head_dim, 32U);
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500'000.0}};
  EXPECT_EQ(read_config(config).value().model.rope_base, 500'000);
}

}  // namespace
}  // namespace fixpoint::engine
