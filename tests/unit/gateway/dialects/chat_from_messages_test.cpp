#include "tests/unit/gateway/dialects/translate_support.hpp"

namespace fixpoint {
namespace {

using namespace test;

TEST(ChatFromMessages, TranslatesAnAnswer) {
  const auto answer = plain(kChat, kMessages, claude(everything(), "tool_use"));
  EXPECT_GT(answer["created"].get<std::int64_t>(), 1'700'000'000);
  expect_same(without(answer, {"created"}),
              {{"id", "chatcmpl-01"},
               {"object", "chat.completion"},
               {"model", "claude-x"},
               {"choices",
                {{{"index", 0},
                  {"message",
                   {{"role", "assistant"},
                    {"content", "I will call two tools, one after the other."},
                    {"refusal", nullptr},
                    {"reasoning_content", "Hm."},
                    {"tool_calls", {call("t1", "f", "{\"a\":\"Köln\"}"), call("t2", "g", "{}")}}}},
                  {"logprobs", nullptr},
                  {"finish_reason", "tool_calls"}}}},
               {"usage",
                {{"prompt_tokens", 17},
                 {"completion_tokens", 7},
                 {"total_tokens", 24},
                 {"prompt_tokens_details", {{"cached_tokens", 5}, {"cache_write_tokens", 2}}}}}});
}

TEST(ChatFromMessages, StreamsTheSame) {
  const auto answer = claude(everything(), "tool_use");
  std::vector<SseEvent> sent;
  const auto whole = streamed(kChat, kMessages, split_answer(kMessages, answer, true), &sent);
  expect_same(without(whole, {"created"}), without(plain(kChat, kMessages, answer), {"created"}));
  EXPECT_EQ(sent.back().data, "[DONE]");
  EXPECT_TRUE(is_usage_chunk(kChat, sent[sent.size() - 2].data));
  const auto first = Json::parse(sent[0].data);
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"]["role"], "assistant");
  // finish_reason is there in every chunk, null until the last (clients check).
  for (std::size_t i = 0; i + 2 < sent.size(); ++i) {
    const auto choice = Json::parse(sent[i].data)["choices"][0];
    EXPECT_EQ(choice.at("finish_reason").is_null(), i + 3 < sent.size());
  }
}

TEST(ChatFromMessages, Reasons) {
  const auto reason = [](const char* stop) {
    return plain(kChat, kMessages,
                 claude({{{"type", "text"}, {"text", "x"}}}, stop))["choices"][0]["finish_reason"];
  };
  EXPECT_EQ(reason("end_turn"), "stop");
  EXPECT_EQ(reason("stop_sequence"), "stop");
  EXPECT_EQ(reason("max_tokens"), "length");
  EXPECT_EQ(reason("model_context_window_exceeded"), "length");
  EXPECT_EQ(reason("refusal"), "content_filter");
  EXPECT_NE(failure(kChat, kMessages, claude(Json::array(), "pause_turn")), "");
  EXPECT_NE(failure(kChat, kMessages, claude(Json::array(), "")), "");
  EXPECT_NE(failure(kChat, kMessages, claude({{{"type", "server_tool_use"}}})), "");
}

TEST(ChatFromMessages, AnEmptyAnswerHasNoContent) {
  const auto message = plain(kChat, kMessages, claude(Json::array()))["choices"][0]["message"];
  EXPECT_EQ(message["content"], "");
  EXPECT_FALSE(message.contains("tool_calls"));
}

}  // namespace
}  // namespace fixpoint
