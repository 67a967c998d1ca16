#include "tests/unit/gateway/dialects/dialect_support.hpp"

namespace fixpoint {
namespace {

AnswerSummary summary(Endpoint endpoint, const char* json) {
  return summarize(endpoint, Json::parse(json));
}

std::string problem(Endpoint endpoint, const char* json) {
  return problem_of(endpoint, Json::parse(json));
}

TEST(AnswerSummaries, Chat) {
  const auto s = summary(Endpoint::chat_completions, R"({"model":"m","system_fingerprint":"fp",
    "choices":[{"index":0,"message":{"content":"ab"},"finish_reason":"stop","logprobs":{"content":[
       {"token":"a","bytes":[97],"logprob":-0.5,"top_logprobs":[{"token":"b","logprob":-2},{"token":"a","logprob":-0.5}]},
       {"token":"b","logprob":-1,"bytes":null,"top_logprobs":[]}]}}],
    "usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}})");
  EXPECT_EQ(s.model, "m");
  EXPECT_EQ(s.fingerprint, "fp");
  EXPECT_EQ(s.finish_reason, "stop");
  EXPECT_TRUE(s.whole);
  EXPECT_FALSE(s.length);
  EXPECT_EQ(s.prompt_tokens, 7u);
  EXPECT_EQ(s.completion_tokens, 2u);
  EXPECT_EQ(s.cached_tokens, 3u);
  ASSERT_EQ(s.tokens.size(), 2u);
  EXPECT_EQ(s.tokens[0].bytes, "a");
  EXPECT_EQ(s.tokens[0].top[0].bytes, "a");  // descending
  EXPECT_FLOAT_EQ(s.tokens[0].margin.value_or(0), 1.5f);
  EXPECT_EQ(s.tokens[1].position, 1u);
  EXPECT_FALSE(s.tokens[1].margin);
}

TEST(AnswerSummaries, CompletionTokensStartWithoutALogprob) {
  const auto s =
      summary(Endpoint::completions, R"({"choices":[{"text":"ab","finish_reason":"length",
    "logprobs":{"tokens":["a","b"],"token_logprobs":[null,-1],"top_logprobs":[null,{"b":-1,"c":-3}]}}]})");
  EXPECT_TRUE(s.length);
  ASSERT_EQ(s.tokens.size(), 1u);
  EXPECT_EQ(s.tokens[0].position, 1u);
  EXPECT_FLOAT_EQ(s.tokens[0].margin.value_or(0), 2.0f);
}

TEST(AnswerSummaries, AnEchoedPromptWasNotGenerated) {
  const auto s = summary(Endpoint::completions, R"({"choices":[
    {"text":"abc","finish_reason":"stop","logprobs":{"tokens":["a","b","c"],"token_logprobs":[null,-1,-2]}},
    {"text":"abd","finish_reason":"stop","logprobs":{"tokens":["a","b","d"],"token_logprobs":[null,-1,-3]}}],
    "usage":{"prompt_tokens":2,"completion_tokens":2}})");
  ASSERT_EQ(s.tokens.size(), 2u);
  EXPECT_EQ(s.tokens[0].bytes, "c");
  EXPECT_EQ(s.tokens[1].bytes, "d");
  EXPECT_EQ(s.tokens[1].choice, 1u);
}

TEST(AnswerSummaries, TextIsWhatWasGenerated) {
  EXPECT_EQ(
      summary(
          Endpoint::chat_completions,
          R"({"id":"long id","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",
                    "content":"1234","tool_calls":[{"id":"call","type":"function","function":{"name":"f","arguments":"{}"}}]}}]})")
          .text_bytes,
      7u);
  EXPECT_EQ(
      summary(Endpoint::messages, R"({"content":[{"type":"text","text":"12345"}]})").text_bytes,
      5u);
  EXPECT_EQ(
      summary(
          Endpoint::responses,
          R"({"output":[{"type":"message","id":"x","content":[{"type":"output_text","text":"123"}]}]})")
          .text_bytes,
      3u);
}

TEST(AnswerSummaries, WholeMeansEveryChoice) {
  const auto of = [](const std::string& a, const std::string& b) {
    return summary(Endpoint::chat_completions, (R"({"choices":[{"finish_reason":")" + a +
                                                R"("},{"finish_reason":")" + b + R"("}]})")
                                                   .c_str());
  };
  EXPECT_TRUE(of("stop", "tool_calls").whole);
  EXPECT_TRUE(of("function_call", "stop").whole);
  EXPECT_FALSE(of("stop", "length").whole);
  EXPECT_TRUE(of("stop", "length").length);
  EXPECT_FALSE(of("length", "content_filter").length);
  EXPECT_FALSE(of("stop", "").whole);
  EXPECT_FALSE(of("stop", "eos").whole);
  EXPECT_FALSE(summary(Endpoint::chat_completions, R"({"choices":[]})").whole);
  EXPECT_FALSE(summary(Endpoint::chat_completions,
                       R"({"choices":[{"message":{"refusal":"No."},"finish_reason":"stop"}]})")
                   .whole);
  EXPECT_FALSE(
      summary(Endpoint::chat_completions, R"({"error":{},"choices":[{"finish_reason":"stop"}]})")
          .whole);
  EXPECT_FALSE(summarize(Endpoint::chat_completions, Json("x")).whole);
}

TEST(AnswerSummaries, Messages) {
  const auto of = [](const std::string& reason) {
    return summary(Endpoint::messages, (R"({"model":"c","content":[],"stop_reason":")" + reason +
                                        R"(","usage":{"input_tokens":5,"cache_read_input_tokens":3,
                      "cache_creation_input_tokens":2,"output_tokens":4}})")
                                           .c_str());
  };
  for (const char* reason : {"end_turn", "stop_sequence", "tool_use"}) {
    EXPECT_TRUE(of(reason).whole) << reason;
  }
  for (const char* reason : {"pause_turn", "refusal", "", "future"}) {
    EXPECT_FALSE(of(reason).whole || of(reason).length) << reason;
  }
  EXPECT_TRUE(of("max_tokens").length);
  EXPECT_TRUE(of("model_context_window_exceeded").length);
  const auto s = of("end_turn");
  EXPECT_EQ(s.finish_reason, "end_turn");
  EXPECT_EQ(s.prompt_tokens, 10u);
  EXPECT_EQ(s.cached_tokens, 3u);
  EXPECT_EQ(s.completion_tokens, 4u);
}

TEST(AnswerSummaries, Responses) {
  const auto s = summary(Endpoint::responses, R"({"status":"completed","model":"m","output":[
    {"type":"message","content":[
      {"type":"output_text","logprobs":[{"token":"a","logprob":-1,"bytes":[97]}]},
      {"type":"output_text","logprobs":[{"token":"b","logprob":-2,"bytes":[98]}]}]}],
    "usage":{"input_tokens":3,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}})");
  EXPECT_TRUE(s.whole);
  EXPECT_EQ(s.finish_reason, "completed");
  EXPECT_EQ(s.prompt_tokens, 3u);
  EXPECT_EQ(s.cached_tokens, 1u);
  ASSERT_EQ(s.tokens.size(), 2u);
  EXPECT_EQ(s.tokens[1].position, 1u);
  EXPECT_EQ(s.tokens[1].bytes, "b");
  const auto cut = [](const std::string& reason) {
    return summary(Endpoint::responses,
                   (R"({"status":"incomplete","output":[],"incomplete_details":{"reason":")" +
                    reason + R"("}})")
                       .c_str());
  };
  EXPECT_TRUE(cut("max_output_tokens").length);
  EXPECT_EQ(cut("max_output_tokens").finish_reason, "max_output_tokens");
  EXPECT_FALSE(cut("content_filter").length || cut("content_filter").whole);
  EXPECT_FALSE(summary(Endpoint::responses, R"({"status":"failed","output":[]})").whole);
  EXPECT_FALSE(summary(Endpoint::responses, R"({"status":"completed","output":[
    {"type":"message","content":[{"type":"refusal","refusal":"No."}]}]})")
                   .whole);
}

TEST(AnswerSummaries, TheOthers) {
  EXPECT_TRUE(summary(Endpoint::embeddings, R"({"data":[{}],"usage":{"prompt_tokens":4}})").whole);
  EXPECT_EQ(summary(Endpoint::embeddings, R"({"usage":{"prompt_tokens":4}})").prompt_tokens, 4u);
  EXPECT_FALSE(summary(Endpoint::embeddings, R"({"data":[]})").whole);
  EXPECT_TRUE(summary(Endpoint::count_tokens, R"({"input_tokens":4})").whole);
  EXPECT_FALSE(summary(Endpoint::count_tokens, R"({"input_tokens":"4"})").whole);
}

TEST(AnswerProblems, OfEachEndpoint) {
  EXPECT_EQ(problem(Endpoint::chat_completions, R"({"choices":[{"message":{}}]})"), "");
  EXPECT_EQ(problem(Endpoint::completions, R"({"choices":[{"text":""}],"error":null})"), "");
  EXPECT_EQ(problem(Endpoint::responses, R"({"output":[{}],"error":{"code":"x"}})"), "");
  EXPECT_EQ(problem(Endpoint::messages, R"({"content":[{}]})"), "");
  EXPECT_EQ(problem(Endpoint::embeddings, R"({"data":[{}]})"), "");
  EXPECT_EQ(problem(Endpoint::count_tokens, R"({"input_tokens":1})"), "");
  for (const Endpoint endpoint :
       {Endpoint::chat_completions, Endpoint::completions, Endpoint::responses, Endpoint::messages,
        Endpoint::embeddings, Endpoint::count_tokens}) {
    EXPECT_NE(problem(endpoint, "{}"), "");
    EXPECT_EQ(problem(endpoint, "[]"), "is not a JSON object");
    EXPECT_EQ(problem(endpoint, R"({"error":{"message":"m"}})"), kErrorProblem);
    EXPECT_EQ(problem(endpoint, R"({"type":"error","error":{}})"), kErrorProblem);
  }
  EXPECT_EQ(problem(Endpoint::chat_completions, "{}"), "has no array 'choices'");
  EXPECT_NE(problem(Endpoint::chat_completions, R"({"choices":[{"text":"x"}]})"), "");
  EXPECT_NE(problem(Endpoint::completions, R"({"choices":[1]})"), "");
  EXPECT_NE(problem(Endpoint::messages, R"({"content":["x"]})"), "");
}

}  // namespace
}  // namespace fixpoint
