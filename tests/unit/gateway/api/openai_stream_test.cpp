#include "gateway/api/openai_stream.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fixpoint {
namespace {

constexpr auto kChat = Endpoint::chat_completions;
constexpr auto kText = Endpoint::completions;

Json assemble(Endpoint endpoint, const std::vector<std::string>& chunks) {
  StreamAssembler assembler(endpoint);
  for (const auto& chunk : chunks) {
    const auto added = assembler.add(chunk);
    EXPECT_TRUE(added) << (added ? "" : added.error().message);
  }
  return assembler.assemble();
}

// Splitting an answer and putting it together again changes nothing.
void expect_round_trip(Endpoint endpoint, const Json& answer) {
  const auto whole = assemble(endpoint, split_answer(endpoint, answer));
  EXPECT_EQ(nlohmann::json(whole), nlohmann::json(answer)) << whole.dump(1);
}

Json chat_answer(Json message, Json logprobs = {}, const char* reason = "stop") {
  return {{"id", "x"},
          {"object", "chat.completion"},
          {"created", 1},
          {"model", "m"},
          {"system_fingerprint", "fp"},
          {"provider_extra", {{"a", 1}}},
          {"choices",
           {{{"index", 0},
             {"message", std::move(message)},
             {"logprobs", std::move(logprobs)},
             {"finish_reason", reason}}}},
          {"usage", {{"total_tokens", 3}}}};
}

TEST(OpenAiStream, RoundTripsPlainAnswers) {
  expect_round_trip(kChat, chat_answer({{"role", "assistant"}, {"content", "Hello, wörld 🙂"}}));
  expect_round_trip(kChat, chat_answer({{"role", "assistant"}, {"content", ""}}));
  expect_round_trip(kChat,
                    chat_answer({{"role", "assistant"}, {"content", nullptr}, {"refusal", "No."}}));
  expect_round_trip(
      kChat, chat_answer({{"role", "assistant"}, {"content", "x"}, {"reasoning_content", "why"}}));
}

TEST(OpenAiStream, RoundTripsToolCalls) {
  const Json call = {{"id", "c1"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", "{\"a\": 1}"}}}};
  expect_round_trip(
      kChat,
      chat_answer({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call, call}}}, {},
                  "tool_calls"));
}

TEST(OpenAiStream, RoundTripsLogprobs) {
  const auto token = [](const char* text) {
    return Json{
        {"token", text}, {"logprob", -0.25}, {"bytes", nullptr}, {"top_logprobs", Json::array()}};
  };
  expect_round_trip(kChat,
                    chat_answer({{"role", "assistant"}, {"content", "a b"}},
                                {{"content", {token("a"), token(" b")}}, {"refusal", nullptr}}));
  // Tokens that do not spell the text (half characters) still arrive, all in one chunk.
  expect_round_trip(kChat,
                    chat_answer({{"role", "assistant"}, {"content", "é"}},
                                {{"content", {token("bytes:\\xc3"), token("bytes:\\xa9")}}}));
  const Json text_logprobs = {{"tokens", {"a", "b"}},
                              {"token_logprobs", {-1, -2}},
                              {"top_logprobs", {{{"a", -1}}, {{"b", -2}}}},
                              {"text_offset", {0, 1}}};
  expect_round_trip(
      kText,
      {{"id", "x"},
       {"object", "text_completion"},
       {"created", 1},
       {"model", "m"},
       {"choices",
        {{{"index", 0}, {"text", "ab"}, {"logprobs", text_logprobs}, {"finish_reason", "length"}}}},
       {"usage", {{"total_tokens", 2}}}});
}

TEST(OpenAiStream, RoundTripsAnyText) {
  rc::check("any UTF-8 text", [] {
    const auto code_points = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::oneOf(
        rc::gen::inRange<std::uint32_t>(0x20, 0x7F), rc::gen::inRange<std::uint32_t>(0xA0, 0x800),
        rc::gen::inRange<std::uint32_t>(0x4E00, 0x9000),
        rc::gen::inRange<std::uint32_t>(0x1F300, 0x1F700)));
    std::string text;
    for (const auto c : code_points) {
      if (c < 0x80) {
        text += static_cast<char>(c);
      } else if (c < 0x800) {
        text += static_cast<char>(0xC0 | c >> 6);
        text += static_cast<char>(0x80 | (c & 63));
      } else if (c < 0x10000) {
        text += static_cast<char>(0xE0 | c >> 12);
        text += static_cast<char>(0x80 | (c >> 6 & 63));
        text += static_cast<char>(0x80 | (c & 63));
      } else {
        text += static_cast<char>(0xF0 | c >> 18);
        text += static_cast<char>(0x80 | (c >> 12 & 63));
        text += static_cast<char>(0x80 | (c >> 6 & 63));
        text += static_cast<char>(0x80 | (c & 63));
      }
    }
    const auto answer = chat_answer({{"role", "assistant"}, {"content", text}});
    const auto chunks = split_answer(kChat, answer);
    for (const auto& chunk : chunks) RC_ASSERT(Json::accept(chunk));  // no character was split
    const auto whole = assemble(kChat, chunks);
    RC_ASSERT(whole["choices"][0]["message"]["content"] == text);
  });
}

TEST(OpenAiStream, AssemblesRealChunks) {
  const auto whole = assemble(
      kChat,
      {
          R"({"id":"c","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":null,"obfuscation":"abc",
          "choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[
            {"index":0,"id":"call_1","type":"function","function":{"name":"get","arguments":""}}]},"finish_reason":null}]})",
          R"({"id":"c","system_fingerprint":"fp","choices":[{"index":0,"delta":{"tool_calls":[
            {"index":0,"function":{"arguments":"{\"city\""}}]},"finish_reason":null}],"usage":null})",
          R"({"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},
            {"index":1,"id":"call_2","type":"function","function":{"name":"put","arguments":"{}"}}]}}]})",
          R"({"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})",
          R"({"id":"c","choices":[],"usage":{"total_tokens":9}})"});
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["system_fingerprint"], "fp");
  EXPECT_FALSE(whole.contains("obfuscation"));
  EXPECT_EQ(whole["usage"]["total_tokens"], 9);
  const auto& message = whole["choices"][0]["message"];
  EXPECT_EQ(message["content"], nullptr);
  EXPECT_EQ(message["tool_calls"][0],
            (Json{{"id", "call_1"},
                  {"type", "function"},
                  {"function", {{"name", "get"}, {"arguments", "{\"city\":1}"}}}}));
  EXPECT_EQ(message["tool_calls"][1]["function"]["name"], "put");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "tool_calls");
}

TEST(OpenAiStream, JoinsTextAndReplacesTheRest) {
  const auto whole = assemble(
      kChat,
      {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"a","tool_calls":[{"index":0,"id":"c",
          "function":{"name":"f","arguments":"{"}}]},"content_filter_results":{"hate":{"severity":"safe"}}}]})",
       R"({"choices":[{"index":0,"delta":{"role":"","content":"b","tool_calls":[{"index":0,"id":"",
          "function":{"name":"f","arguments":"}"}}]},"content_filter_results":{"hate":{"severity":"safe"}},
          "stop_reason":"eos"}]})"});
  const auto& choice = whole["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "ab");
  EXPECT_EQ(choice["message"]["tool_calls"][0],
            (Json{{"id", "c"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}}));
  EXPECT_EQ(choice["content_filter_results"]["hate"]["severity"], "safe");
  // What a provider says of a choice beside its message is replayed too.
  EXPECT_EQ(assemble(kChat, split_answer(kChat, whole))["choices"][0]["stop_reason"], "eos");
}

TEST(OpenAiStream, RefusesWhatIsNoChunk) {
  StreamAssembler assembler(kChat);
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  EXPECT_FALSE(assembler.add(R"({"choices":[{"index":0,"delta":{"content":)" + deep + "}}]}"));
  EXPECT_FALSE(assembler.add(R"({"choices":[{"index":0,"delta":"boom","finish_reason":"stop"}]})"));
  EXPECT_FALSE(assembler.add(R"({"choices":[{"index":0,"delta":[1]}]})"));
  EXPECT_EQ(split_answer(kChat, Json::parse(R"({"choices":[{"message":null},1]})")).size(), 2u);
  for (const char* bad :
       {"", "x", "[]", R"({"choices":[1]})", R"({"choices":[{"index":-1}]})",
        R"({"choices":[{"index":4000000000}]})", R"({"choices":[{"index":"0"}]})"}) {
    EXPECT_FALSE(assembler.add(bad)) << bad;
  }
}

TEST(OpenAiStream, KnowsUsageChunks) {
  EXPECT_TRUE(is_usage_chunk(R"({"choices":[],"usage":{"total_tokens":1}})"));
  EXPECT_FALSE(is_usage_chunk(R"({"choices":[],"usage":null})"));
  EXPECT_FALSE(is_usage_chunk(
      R"({"choices":[{"index":0,"delta":{"content":"\"usage\""}}],"usage":{"x":1}})"));
  EXPECT_FALSE(is_usage_chunk(R"({"choices":[]})"));  // Azure's first chunk
}

}  // namespace
}  // namespace fixpoint
