#include "gateway/api/local_request.hpp"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_gguf.hpp"

namespace fixpoint {
namespace {

class LocalRequestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = load("tiny", 2048); }
  static std::unique_ptr<engine::Engine> load(const char* name, std::size_t context) {
    const test::TempDir folder;
    engine::EngineOptions options;
    options.name = name;
    options.threads = 1;
    options.context = context;
    options.kv_bytes = std::size_t{8} << 20;
    auto loaded = engine::Engine::load(
        test::write_tiny_gguf(folder.file("tiny.gguf"), {.context = 2048}), options);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? std::move(*loaded) : nullptr;
  }
  static void TearDownTestSuite() { engine_.reset(); }

  // A chat request with further members, given as JSON text that begins with a comma.
  static ApiResult<LocalRequest> build(const std::string& extra, bool tagged = false,
                                       std::uint32_t sample = 0, const std::string& text = "Hi",
                                       const engine::Engine* engine = nullptr) {
    const auto body = Json::parse(R"({"model":"tiny","messages":[{"role":"user","content":")" +
                                  text + "\"}]" + extra + "}");
    LocalContext context{engine ? *engine : *engine_};
    context.tagged = tagged;
    context.sample = sample;
    return build_local_request(Endpoint::chat_completions, body, context);
  }
  static std::string key(const std::string& extra, bool tagged = false, std::uint32_t sample = 0) {
    const auto built = build(extra, tagged, sample);
    EXPECT_TRUE(built) << extra << ": " << (built ? "" : built.error().message);
    return built ? built->key.hex : "";
  }

  static std::unique_ptr<engine::Engine> engine_;
};
std::unique_ptr<engine::Engine> LocalRequestTest::engine_;

TEST_F(LocalRequestTest, EveryParameterThatReachesTheSamplerOrTheShapeIsInTheKey) {
  std::vector<std::string> keys = {key(R"(,"seed":1)")};
  for (const char* extra :
       {R"("temperature":0)", R"("temperature":0.5)", R"("top_p":0.5)", R"("top_k":3)",
        R"("min_p":0.1)", R"("presence_penalty":1)", R"("frequency_penalty":1)",
        R"("logit_bias":{"5":1})", R"("logit_bias":{"5":2})", R"("max_tokens":7)", R"("stop":"x")",
        R"("stop":["x","y"])", R"("n":2)", R"("logprobs":true)",
        R"("logprobs":true,"top_logprobs":2)"}) {
    keys.push_back(key(std::string(R"(,"seed":1,)") + extra));
  }
  keys.push_back(key(R"(,"seed":2)"));
  keys.push_back(key(R"(,"seed":1)", false, 1));
  keys.push_back(key(""));        // a random seed
  keys.push_back(key("", true));  // the prompt's own
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST_F(LocalRequestTest, TheContextIsInTheKeyWhereItMayEndTheAnswer) {
  const auto shorter = load("tiny", 1024);
  const auto key_of = [](const char* extra, const engine::Engine* engine) {
    return build(extra, false, 0, "Hi", engine)->key.hex;
  };
  EXPECT_NE(key_of(R"(,"temperature":0)", nullptr), key_of(R"(,"temperature":0)", shorter.get()));
  EXPECT_EQ(key_of(R"(,"temperature":0,"max_tokens":7)", nullptr),
            key_of(R"(,"temperature":0,"max_tokens":7)", shorter.get()));
}

TEST_F(LocalRequestTest, ALimitBeyondTheContextIsNoneWhereClientsMustSendOne) {
  const auto ask = [](std::size_t limit, bool loose, const std::string& text = "Hi") {
    const auto body =
        Json::parse(R"({"model":"m","temperature":0,"max_tokens":)" + std::to_string(limit) +
                    R"(,"messages":[{"role":"user","content":")" + text + "\"}]}");
    LocalContext context{*engine_};
    context.loose_limit = loose;
    return build_local_request(Endpoint::chat_completions, body, context);
  };
  const auto room = engine_->info().context - build("")->choices[0].prompt.size();
  EXPECT_FALSE(ask(room + 1, false));
  const auto left_out = ask(room + 1, true);
  ASSERT_TRUE(left_out) << left_out.error().message;
  EXPECT_EQ(left_out->choices[0].max_tokens, std::nullopt);
  EXPECT_TRUE(left_out->limit_left_out);
  EXPECT_EQ(left_out->key.hex, ask(8192, true)->key.hex) << "the answers are the same";

  const auto fits = ask(room, true);
  EXPECT_EQ(fits->choices[0].max_tokens, room);
  EXPECT_FALSE(fits->limit_left_out);
  EXPECT_NE(fits->key.hex, left_out->key.hex) << "they end for another reason";
  EXPECT_EQ(fits->key.hex, ask(room, false)->key.hex);
  std::string whole;
  while (whole.size() < 4 * engine_->info().context) whole += "word ";
  EXPECT_EQ(ask(4096, true, whole).error().code, "context_length_exceeded");
}

TEST_F(LocalRequestTest, TheNameThatTheAnswerHasIsInTheKey) {
  const auto renamed = load("renamed", 2048);
  EXPECT_NE(build("", true)->key.hex, build("", true, 0, "Hi", renamed.get())->key.hex);
}

TEST_F(LocalRequestTest, WhatCannotMatterIsNotInTheKey) {
  const auto base = key(R"(,"temperature":0)");
  EXPECT_EQ(base, key(R"(,"temperature":0,"verbosity":"medium")"));
  EXPECT_EQ(base, key(R"(,"temperature":0.0,"user":"u","metadata":{"a":"b"},"stream":true)"));
  EXPECT_EQ(base, key(R"(,"temperature":0,"seed":9)"));  // nothing is drawn
  EXPECT_EQ(base,
            key(R"(,"temperature":0,"stop":null,"tools":[],"response_format":{"type":"text"})"));
  EXPECT_EQ(key(R"(,"temperature":0,"max_tokens":7)"),
            key(R"(,"temperature":0,"max_completion_tokens":7)"));
  EXPECT_EQ(key(R"(,"temperature":0,"logit_bias":{"5":1,"6":2})"),
            key(R"(,"temperature":0,"logit_bias":{"6":2,"5":1})"));
}

TEST_F(LocalRequestTest, SeedsComeFromTheRequestThePromptOrNowhere) {
  EXPECT_EQ(build(R"(,"seed":42)")->choices[0].sampling.seed, 42u);
  const auto tagged = build("", true);
  EXPECT_FALSE(tagged->random_seed);
  EXPECT_EQ(tagged->choices[0].sampling.seed, build("", true)->choices[0].sampling.seed);
  EXPECT_NE(tagged->choices[0].sampling.seed, build("", true, 0, "Ho")->choices[0].sampling.seed);
  const auto random = build("");
  EXPECT_TRUE(random->random_seed);
  EXPECT_NE(random->choices[0].sampling.seed, build("")->choices[0].sampling.seed);
}

TEST_F(LocalRequestTest, ChoicesAreConsecutiveDraws) {
  const auto request = build(R"(,"n":3,"seed":1)", true, 4);
  ASSERT_EQ(request->choices.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(request->choices[i].sampling.draw, 4 + i);
}

TEST_F(LocalRequestTest, WhatTheEngineDoesNotDoIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(,"tools":[{"type":"function"}])", "tools"},
      {R"(,"response_format":{"type":"json_object"})", "response_format"},
      {R"(,"brand_new":1)", "brand_new"},
      {R"(,"temperature":2.5)", "temperature"},
      {R"(,"top_k":-1)", "top_k"},
      {R"(,"n":0)", "n"},
      {R"(,"n":18446744073709551615)", "n"},
      {R"(,"max_tokens":0)", "max_tokens"},
      {R"(,"max_completion_tokens":1.5)", "max_completion_tokens"},
      {R"(,"top_logprobs":2)", "top_logprobs"},
      {R"(,"logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"(,"stop":[1])", "stop"},
      {R"(,"logit_bias":[1])", "logit_bias"},
      {R"(,"logit_bias":{"one":1})", "logit_bias"}};
  for (const auto& [extra, param] : cases) {
    const auto request = build(extra);
    ASSERT_FALSE(request) << extra;
    EXPECT_EQ(request.error().status, 400) << extra;
    EXPECT_EQ(request.error().param, param) << extra;
  }
}

TEST_F(LocalRequestTest, ContentPartsAreJoinedAndImagesRefused) {
  const auto ask = [](const std::string& content) {
    const auto body =
        Json::parse(R"({"model":"m","temperature":0,"messages":[{"role":"developer","content":)" +
                    content + "}]}");
    return build_local_request(Endpoint::chat_completions, body, LocalContext{*engine_});
  };
  const auto whole = ask(R"("ab")");
  const auto parts = ask(R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])");
  ASSERT_TRUE(whole);
  ASSERT_TRUE(parts);
  EXPECT_EQ(whole->key.hex, parts->key.hex);
  EXPECT_NE(whole->prompt_text.find("system"), std::string::npos);  // developer is OpenAI's system
  EXPECT_FALSE(ask(R"([{"type":"image_url","image_url":{"url":"x"}}])"));
  EXPECT_FALSE(ask("7"));
}

// An answer that is sent back has members that say nothing.
TEST_F(LocalRequestTest, EmptyMembersOfMessagesAreAbsent) {
  const auto ask = [](const std::string& extra) {
    const auto body = Json::parse(
        R"({"model":"m","temperature":0,"messages":[{"role":"user","content":"a"},
            {"role":"assistant","content":"b")" +
        extra + R"(},{"role":"user","content":"c"}]})");
    return build_local_request(Endpoint::chat_completions, body, LocalContext{*engine_});
  };
  const auto bare = ask("");
  const auto echoed = ask(R"(,"refusal":null,"annotations":[],"audio":null,"tool_calls":[])");
  ASSERT_TRUE(bare);
  ASSERT_TRUE(echoed) << echoed.error().message;
  EXPECT_EQ(bare->key.hex, echoed->key.hex);
  EXPECT_EQ(ask(R"(,"annotations":[1])").error().param, "messages[1].annotations");
  // What an SDK has parsed is the content once more.
  const auto parsed = ask(R"(,"parsed":{"a":1})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(bare->key.hex, parsed->key.hex);
}

TEST_F(LocalRequestTest, MessagesAreChecked) {
  for (const char* messages :
       {"[1]", "[{}]", R"([{"role":1,"content":"x"}])", R"([{"role":"wizard","content":"x"}])"}) {
    const auto body = Json::parse(std::string(R"({"model":"m","messages":)") + messages + "}");
    const auto built =
        build_local_request(Endpoint::chat_completions, body, LocalContext{*engine_});
    ASSERT_FALSE(built) << messages;
    EXPECT_TRUE(built.error().param.starts_with("messages[0]")) << built.error().param;
  }
}

// A request of completions with further members, given as JSON text that begins with a comma.
ApiResult<LocalRequest> complete(const engine::Engine& engine, const std::string& prompt,
                                 const std::string& extra = R"(,"temperature":0)",
                                 bool tagged = false) {
  const auto body = Json::parse(R"({"model":"m","prompt":)" + prompt + extra + "}");
  LocalContext context{engine};
  context.tagged = tagged;
  return build_local_request(Endpoint::completions, body, context);
}

std::string ids_json(const std::vector<engine::TokenId>& ids) {
  return Json(ids).dump();
}

TEST_F(LocalRequestTest, PromptsOfCompletions) {
  const auto ask = [](const std::string& prompt) { return complete(*engine_, prompt); };
  const auto text = ask(R"("ab")");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->choices[0].max_tokens, 16u);
  EXPECT_FALSE(text->choices[0].prompt_logprobs);
  EXPECT_TRUE(text->echoes.empty());
  EXPECT_EQ(text->key.hex, ask(R"(["ab"])")->key.hex);
  const auto ids = ids_json(text->choices[0].prompt);
  EXPECT_EQ(text->key.hex, ask(ids)->key.hex);
  EXPECT_EQ(text->key.hex, ask("[" + ids + "]")->key.hex);
  for (const char* bad : {"[]", "[[]]", R"([""])", R"(["a",1])", R"([1,"a"])", "[[1],[-1]]", "[-1]",
                          "[100000]", "[1.5]", "[true]", "[[[1]]]"}) {
    const auto refused = ask(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().param, "prompt") << bad;
  }
}

TEST_F(LocalRequestTest, SeveralPromptsMakeChoicesPromptByPrompt) {
  const auto two = complete(*engine_, R"(["ab",[65,66,67]])", R"(,"n":2,"seed":3)");
  ASSERT_TRUE(two) << two.error().message;
  ASSERT_EQ(two->choices.size(), 4u);
  EXPECT_EQ(two->n, 2u);
  EXPECT_EQ(two->choices[0].prompt, two->choices[1].prompt);
  EXPECT_EQ(two->choices[2].prompt, (std::vector<engine::TokenId>{65, 66, 67}));
  EXPECT_EQ(two->choices[2].prompt, two->choices[3].prompt);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(two->choices[i].sampling.draw, i % 2);

  // A tagged prompt's own seed, whatever stands next to it; without a tag, one for each.
  const auto tagged = complete(*engine_, "[[65,66],[67]]", "", true);
  EXPECT_EQ(tagged->choices[1].sampling.seed,
            complete(*engine_, "[67]", "", true)->choices[0].sampling.seed);
  const auto free = complete(*engine_, "[[67],[67]]", "");
  EXPECT_NE(free->choices[0].sampling.seed, free->choices[1].sampling.seed);
}

TEST_F(LocalRequestTest, EveryTokenOfEveryPromptIsInTheKey) {
  std::vector<std::string> keys;
  for (const char* prompt : {"[1,2,3]", "[[1,2],[3]]", "[[1],[2,3]]", "[[1],[2],[3]]",
                             "[[3],[1,2]]", "[[1,2],[4]]", "[[1,2,3],[1,2,3]]"}) {
    keys.push_back(complete(*engine_, prompt)->key.hex);
    keys.push_back(complete(*engine_, prompt, R"(,"temperature":0,"echo":true)")->key.hex);
    keys.push_back(
        complete(*engine_, prompt, R"(,"temperature":0,"echo":true,"max_tokens":0)")->key.hex);
    keys.push_back(complete(*engine_, prompt, R"(,"temperature":0,"n":3)")->key.hex);
  }
  // Equal seeds of the first prompt must not hide those of the second.
  const auto tagged = complete(*engine_, "[[65,66],[67]]", "", true);
  keys.push_back(tagged->key.hex);
  const auto first = static_cast<std::int64_t>(tagged->choices[0].sampling.seed);
  keys.push_back(
      complete(*engine_, "[[65,66],[67]]", R"(,"seed":)" + std::to_string(first))->key.hex);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  EXPECT_EQ(complete(*engine_, "[1,2]")->key.hex,
            complete(*engine_, "[1,2]", R"(,"temperature":0,"echo":false)")->key.hex);
}

TEST_F(LocalRequestTest, Echo) {
  const auto scored = complete(*engine_, R"(["ab",[65,200]])",
                               R"(,"temperature":0,"echo":true,"logprobs":1,"max_tokens":1)");
  ASSERT_TRUE(scored) << scored.error().message;
  ASSERT_EQ(scored->echoes.size(), 2u);
  EXPECT_EQ(scored->echoes[0].text, "ab");
  EXPECT_TRUE(scored->choices[0].prompt_logprobs && scored->choices[1].prompt_logprobs);
  EXPECT_EQ(scored->choices[0].max_tokens, 1u);
  // Bytes that are no character: the text that the answer shows is valid UTF-8.
  EXPECT_NO_THROW(Json(scored->echoes[1].text).dump());

  const auto only = complete(*engine_, R"("ab")", R"(,"temperature":0,"echo":true,"max_tokens":0)");
  ASSERT_TRUE(only) << only.error().message;
  EXPECT_EQ(only->choices[0].max_tokens, 0u);
  EXPECT_FALSE(only->choices[0].prompt_logprobs);  // nobody asked for them
}

TEST_F(LocalRequestTest, LimitsOfCompletionsAreNamed) {
  std::string many = "[[1]";
  for (int i = 1; i < 128; ++i) many += ",[1]";
  EXPECT_TRUE(complete(*engine_, many + "]"));
  std::string whole = "[1";  // the context without one token
  for (std::size_t i = 2; i < engine_->info().context; ++i) whole += ",1";
  struct Case {
    std::string prompt, extra, param, says;
  };
  const std::string echo = R"(,"echo":true,"logprobs":1,"max_tokens":1)";
  const Case cases[] = {{many + ",[1]]", "", "prompt", "128"},
                        {many + "]", R"(,"n":2)", "prompt", "128"},
                        {"[1]", R"(,"n":129)", "n", "128"},
                        {"[1]", R"(,"max_tokens":0)", "max_tokens", "1"},
                        {"[1]", R"(,"echo":1)", "echo", "true or false"},
                        {"[1]", R"(,"best_of":2)", "best_of", "not supported"},
                        {"[1]", R"(,"suffix":"x")", "suffix", "not supported"},
                        {whole + ",1,1]", R"(,"echo":true,"max_tokens":0)", "prompt", "context"},
                        {"[" + whole + "],[1,1]]", R"(,"n":64)" + echo, "prompt", "131072"},
                        {"[[1]," + whole + ",1,1]]", R"(,"max_tokens":1)", "prompt", "context"}};
  for (const auto& one : cases) {
    const auto request = complete(*engine_, one.prompt, R"(,"temperature":0)" + one.extra);
    ASSERT_FALSE(request) << one.extra;
    EXPECT_EQ(request.error().status, 400);
    EXPECT_EQ(request.error().param, one.param);
    EXPECT_NE(request.error().message.find(one.says), std::string::npos) << request.error().message;
  }
  const auto most = "[" + whole + "],[1]]";  // 64 * 2,048 tokens
  EXPECT_TRUE(complete(*engine_, most, R"(,"n":64,"temperature":0)" + echo));
  EXPECT_TRUE(complete(*engine_, "[" + whole + "],[1,1]]", R"(,"n":64,"max_tokens":1)"));
}

TEST_F(LocalRequestTest, EchoIsOfCompletionsOnly) {
  const auto chat = build(R"(,"echo":true)");
  ASSERT_FALSE(chat);
  EXPECT_EQ(chat.error().param, "echo");
}

}  // namespace
}  // namespace fixpoint
