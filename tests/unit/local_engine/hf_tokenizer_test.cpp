// tokenizer.json and its neighbours, from a small vocabulary made here.
#include "local_engine/hf_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace fixpoint::engine {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kLlamaPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}
Json sequence(Json first) {
  return {{"type", "Sequence"}, {"pretokenizers", {std::move(first), byte_level(false)}}};
}
Json split(const char* pattern) {
  return sequence({{"type", "Split"},
                   {"pattern", {{"Regex", pattern}}},
                   {"behavior", "Isolated"},
                   {"invert", false}});
}

HfTextFiles files() {
  HfTextFiles out;
  out.tokenizer = {{"added_tokens",
                    {{{"id", 4}, {"content", "<|end|>"}, {"special", true}},
                     {{"id", 5}, {"content", "<tool>"}, {"special", false}}}},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", byte_level(true)},
                   {"model",
                    {{"type", "BPE"},
                     {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}}},
                     {"merges", {"a b"}}}}};
  out.generation_config = {{"eos_token_id", 4}};
  return out;
}

constexpr std::size_t kVocabulary = 6;
Result<ModelText> read(const std::function<void(HfTextFiles&)>& edit,
                       std::size_t vocabulary = kVocabulary) {
  HfTextFiles changed = files();
  edit(changed);
  // As a parser gives them: C++ literals are signed, numbers in a file are not.
  for (Json* file : {&changed.tokenizer, &changed.tokenizer_config, &changed.config,
                     &changed.generation_config}) {
    *file = Json::parse(file->dump());
  }
  return read_hf_text(changed, vocabulary);
}
std::string refusal(ErrorCode code, const std::function<void(HfTextFiles&)>& edit) {
  const auto text = read(edit);
  if (text) return "accepted";
  EXPECT_EQ(text.error().code, code) << text.error().message;
  return text.error().message;
}

TEST(HfTokenizer, ReadsTokensMergesAndRoles) {
  const auto text = read([](HfTextFiles&) {}, 8).value();
  EXPECT_EQ(text.tokenizer.tokens, (std::vector<std::string>{"a", "b", "c", "ab", "<|end|>",
                                                             "<tool>", "[PAD6]", "[PAD7]"}));
  EXPECT_EQ(text.tokenizer.merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(text.tokenizer.is_special,
            (std::vector<bool>{false, false, false, false, true, true, false, false}));
  EXPECT_EQ(text.is_control,
            (std::vector<bool>{false, false, false, false, true, false, true, true}));
  EXPECT_EQ(text.eos, "<|end|>");
  EXPECT_TRUE(Tokenizer::create(text.tokenizer));
  // The newer spelling of merges says the same.
  const auto pairs = read([](HfTextFiles& f) {
    f.tokenizer["model"]["merges"] = Json::array({Json::array({"a", "b"})});
  });
  EXPECT_EQ(pairs->tokenizer.merges, text.tokenizer.merges);
}

TEST(HfTokenizer, RecognisesPreTokenizersByContent) {
  const auto name = [](Json pre, Json normaliser, bool ignore_merges) -> std::string {
    const auto text = read([&](HfTextFiles& f) {
      f.tokenizer["pre_tokenizer"] = pre;
      f.tokenizer["normalizer"] = normaliser;
      f.tokenizer["model"]["ignore_merges"] = ignore_merges;
    });
    return text ? text->tokenizer.pre_tokenizer : text.error().message;
  };
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json smollm = {{"type", "Sequence"}, {"pretokenizers", {digits, byte_level(true)}}};
  const Json nfc = {{"type", "NFC"}};
  EXPECT_EQ(name(byte_level(true), nullptr, false), "gpt-2");
  EXPECT_EQ(name(smollm, nullptr, false), "smollm");
  EXPECT_EQ(name(split(kLlamaPattern), nullptr, true), "llama-bpe");
  EXPECT_EQ(name(split(kQwenPattern), nfc, false), "qwen2");

  // Each of these would give other ids.
  const auto none = HasSubstr("is none of those implemented");
  EXPECT_THAT(name(nullptr, nullptr, false), none);
  EXPECT_THAT(name(byte_level(false), nullptr, false), none);
  EXPECT_THAT(name({{"type", "ByteLevel"}}, nullptr, false), none);  // adds a space by default
  EXPECT_THAT(name(split("\\s+"), nullptr, false), none);
  EXPECT_THAT(name(sequence(digits), nullptr, false), none);
  EXPECT_THAT(name({{"type", "Metaspace"}}, nullptr, false), HasSubstr("Metaspace"));
  Json inverted = split(kQwenPattern);
  inverted["pretokenizers"][0]["invert"] = true;
  EXPECT_THAT(name(inverted, nfc, false), none);
  EXPECT_THAT(name(split(kQwenPattern), nullptr, false), HasSubstr("normalizer"));
  EXPECT_THAT(name(byte_level(true), nfc, false), HasSubstr("normalizer"));
  EXPECT_THAT(name(byte_level(true), {{"type", "Lowercase"}}, false), HasSubstr("Lowercase"));
  EXPECT_THAT(name(split(kLlamaPattern), nullptr, false), HasSubstr("ignore_merges"));
  EXPECT_THAT(name(smollm, nullptr, true), HasSubstr("ignore_merges"));
}

TEST(HfTokenizer, RefusesOtherTokenizers) {
  const auto model = [](const char* key, Json value) {
    return refusal(ErrorCode::unsupported,
                   [&](HfTextFiles& f) { f.tokenizer["model"][key] = value; });
  };
  EXPECT_THAT(model("type", "Unigram"), HasSubstr("Unigram"));
  EXPECT_THAT(model("dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(model("unk_token", "a"), HasSubstr("unk_token"));
  EXPECT_THAT(model("continuing_subword_prefix", "##"), HasSubstr("##"));
  EXPECT_THAT(model("byte_fallback", true), HasSubstr("byte_fallback"));
  EXPECT_THAT(refusal(ErrorCode::unsupported,
                      [](HfTextFiles& f) { f.tokenizer["added_tokens"][0]["lstrip"] = true; }),
              HasSubstr("lstrip"));
  EXPECT_THAT(refusal(ErrorCode::unsupported,
                      [](HfTextFiles& f) { f.tokenizer_config["chat_template"] = Json::array(); }),
              HasSubstr("chat_template"));
  EXPECT_THAT(refusal(ErrorCode::unsupported, [](HfTextFiles& f) { f.tokenizer = 5; }),
              HasSubstr("model type null"));
}

TEST(HfTokenizer, RefusesInconsistentFiles) {
  const auto bad = [](const std::function<void(Json&)>& edit) {
    return refusal(ErrorCode::bad_model_file, [&](HfTextFiles& f) { edit(f.tokenizer); });
  };
  EXPECT_THAT(bad([](Json& t) { t["model"]["vocab"] = {1}; }), HasSubstr("vocab"));
  EXPECT_THAT(bad([](Json& t) { t["model"]["vocab"]["z"] = 6; }), HasSubstr("ids below 6"));
  EXPECT_THAT(bad([](Json& t) { t["model"]["vocab"]["z"] = -1; }), HasSubstr("-1"));
  EXPECT_THAT(bad([](Json& t) { t["model"]["vocab"]["z"] = 0; }), HasSubstr("is both"));
  EXPECT_THAT(bad([](Json& t) { t["model"]["vocab"][""] = 5; }), HasSubstr("empty"));
  EXPECT_THAT(bad([](Json& t) { t["added_tokens"][0]["id"] = 0; }), HasSubstr("is both"));
  EXPECT_THAT(bad([](Json& t) { t["added_tokens"][0].erase("content"); }), HasSubstr("content"));
  EXPECT_THAT(bad([](Json& t) { t["added_tokens"] = "x"; }), HasSubstr("added_tokens"));
  EXPECT_THAT(bad([](Json& t) { t["model"]["merges"] = 5; }), HasSubstr("merges"));
  EXPECT_THAT(bad([](Json& t) { t["model"]["merges"][0] = {"a"}; }), HasSubstr("merge 0"));
  EXPECT_THAT(refusal(ErrorCode::bad_model_file,
                      [](HfTextFiles& f) { f.generation_config["eos_token_id"] = 6; }),
              HasSubstr("eos_token_id"));
  EXPECT_THAT(refusal(ErrorCode::bad_model_file,
                      [](HfTextFiles& f) { f.tokenizer_config["bos_token"] = "<s>"; }),
              HasSubstr("<s>"));
}

TEST(HfTokenizer, EndsAreTheGenerationConfigsElseTheModels) {
  const auto ends = [](Json generation, Json config) {
    const auto text = read([&](HfTextFiles& f) {
      f.generation_config = {{"eos_token_id", generation}};
      f.config = {{"eos_token_id", config}};
    });
    std::vector<TokenId> ids = text->tokenizer.end_of_turn;
    if (text->tokenizer.eos) ids.insert(ids.begin(), *text->tokenizer.eos);
    return ids;
  };
  EXPECT_EQ(ends({4, 5}, 2), (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(ends(nullptr, 2), std::vector<TokenId>{2});
  EXPECT_EQ(ends(nullptr, nullptr), std::vector<TokenId>{});
}

TEST(HfTokenizer, ThePostProcessorSaysWhetherTextsBeginWithBos) {
  const auto with = [](Json post) {
    return read([&](HfTextFiles& f) {
      f.tokenizer["post_processor"] = post;
      f.tokenizer_config = {{"bos_token", {{"content", "<|end|>"}}}};
    });
  };
  const Json text_part = {{"Sequence", {{"id", "A"}}}};
  const auto part = [](const char* token) { return Json{{"SpecialToken", {{"id", token}}}}; };
  const auto templated = [](Json single) {
    return Json{{"type", "TemplateProcessing"}, {"single", single}};
  };
  const Json moves_offsets = {{"type", "ByteLevel"}};
  EXPECT_FALSE(with(nullptr)->tokenizer.add_bos);
  EXPECT_FALSE(with(moves_offsets)->tokenizer.add_bos);
  EXPECT_FALSE(with(templated(Json::array({text_part})))->tokenizer.add_bos);
  const auto begins =
      with({{"type", "Sequence"},
            {"processors", {moves_offsets, templated({part("<|end|>"), text_part})}}});
  ASSERT_TRUE(begins) << begins.error().message;
  EXPECT_TRUE(begins->tokenizer.add_bos);
  EXPECT_EQ(begins->tokenizer.bos, 4);
  EXPECT_THAT(with(templated({part("a"), text_part})).error().message, HasSubstr("bos_token"));
  EXPECT_THAT(with(templated({text_part, part("<|end|>")})).error().message,
              HasSubstr("post_processor"));
  EXPECT_THAT(with({{"type", "BertProcessing"}}).error().message, HasSubstr("BertProcessing"));
}

}  // namespace
}  // namespace fixpoint::engine
