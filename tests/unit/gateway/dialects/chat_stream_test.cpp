#include "tests/unit/gateway/dialects/dialect_support.hpp"

namespace fixpoint {
namespace {

using test::assemble;
using test::chunks;
using test::expect_round_trip;
using test::is_faithful;
using test::problem_in;

constexpr auto kChat = Endpoint::chat_completions;
constexpr auto kText = Endpoint::completions;

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

TEST(ChatStream, RoundTripsPlainAnswers) {
  expect_round_trip(kChat, chat_answer({{"role", "assistant"}, {"content", "Hello, wörld 🙂"}}));
  expect_round_trip(kChat, chat_answer({{"role", "assistant"}, {"content", ""}}));
  expect_round_trip(kChat,
                    chat_answer({{"role", "assistant"}, {"content", nullptr}, {"refusal", "No."}}));
  expect_round_trip(
      kChat, chat_answer({{"role", "assistant"}, {"content", "x"}, {"reasoning_content", "why"}}));
}

TEST(ChatStream, RoundTripsToolCalls) {
  const Json call = {{"id", "c1"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", "{\"a\": 1}"}}}};
  expect_round_trip(
      kChat,
      chat_answer({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call, call}}}, {},
                  "tool_calls"));
}

TEST(ChatStream, RoundTripsLogprobs) {
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

TEST(ChatStream, RoundTripsAnyText) {
  EXPECT_TRUE(rc::check("any UTF-8 text", [] {
    const auto text = *test::any_text();
    const auto answer = chat_answer({{"role", "assistant"}, {"content", text}});
    const auto events = split_answer(kChat, answer, true);
    for (const auto& event : events) {  // no character was split
      RC_ASSERT(event.data == "[DONE]" || Json::accept(event.data));
    }
    const auto whole = assemble(kChat, events);
    RC_ASSERT(whole["choices"][0]["message"]["content"] == text);
  }));
}

TEST(ChatStream, AssemblesRealChunks) {
  const auto whole = assemble(
      kChat,
      chunks({
          R"({"id":"c","object":"chat.completion.chunk","created":5,"model":"m","system_fingerprint":null,"obfuscation":"abc",
          "choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[
            {"index":0,"id":"call_1","type":"function","function":{"name":"get","arguments":""}}]},"finish_reason":null}]})",
          R"({"id":"c","system_fingerprint":"fp","choices":[{"index":0,"delta":{"tool_calls":[
            {"index":0,"function":{"arguments":"{\"city\""}}]},"finish_reason":null}],"usage":null})",
          R"({"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},
            {"index":1,"id":"call_2","type":"function","function":{"name":"put","arguments":"{}"}}]}}]})",
          R"({"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})",
          R"({"id":"c","choices":[],"usage":{"total_tokens":9}})"}),
      false);
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

TEST(ChatStream, JoinsTextAndReplacesTheRest) {
  const auto whole = assemble(
      kChat,
      chunks(
          {R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"a","tool_calls":[{"index":0,"id":"c",
          "function":{"name":"f","arguments":"{"}}]},"content_filter_results":{"hate":{"severity":"safe"}}}]})",
           R"({"choices":[{"index":0,"delta":{"role":"","content":"b","tool_calls":[{"index":0,"id":"",
          "function":{"name":"f","arguments":"}"}}]},"content_filter_results":{"hate":{"severity":"safe"}},
          "stop_reason":"eos"}]})"}),
      false);
  const auto& choice = whole["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], "ab");
  EXPECT_EQ(choice["message"]["tool_calls"][0],
            (Json{{"id", "c"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}}));
  EXPECT_EQ(choice["content_filter_results"]["hate"]["severity"], "safe");
  // What a provider says of a choice beside its message is replayed too.
  EXPECT_EQ(assemble(kChat, split_answer(kChat, whole, false))["choices"][0]["stop_reason"], "eos");
}

std::vector<SseEvent> deltas(const std::vector<std::string>& each) {
  std::vector<std::string> datas;
  for (const auto& delta : each) {
    datas.push_back(R"({"choices":[{"index":0,"delta":)" + delta + "}]}");
  }
  return chunks(datas);
}

TEST(ChatStream, JoinsAudioAndReasoningDetails) {
  const auto audio = deltas({R"({"role":"assistant","audio":{"id":"a","transcript":"Hel"}})",
                             R"({"audio":{"transcript":"lo","data":"AAAA"}})",
                             R"({"audio":{"id":"a","data":"BBBB"}})",
                             R"({"audio":{"data":"CC==","expires_at":9}})"});
  EXPECT_TRUE(is_faithful(kChat, audio));
  const auto heard = assemble(kChat, audio, false);
  EXPECT_EQ(
      heard["choices"][0]["message"]["audio"],
      (Json{{"id", "a"}, {"transcript", "Hello"}, {"data", "AAAABBBBCC=="}, {"expires_at", 9}}));
  expect_round_trip(kChat, heard);

  const auto reasons = deltas(
      {R"({"reasoning":"a ","reasoning_details":[{"type":"s","summary":"a ","format":"f","index":0}]})",
       R"({"reasoning":"b","reasoning_details":[{"type":"s","summary":"b","format":"f","index":0}]})",
       R"({"reasoning_details":[{"type":"e","data":"xx","format":"f","index":1}]})",
       R"({"content":"c"})"});
  EXPECT_TRUE(is_faithful(kChat, reasons));
  const auto reasoned = assemble(kChat, reasons, false);
  // Their indices stay: clients join by them, and a plain answer has them too.
  EXPECT_EQ(reasoned["choices"][0]["message"]["reasoning_details"],
            (Json{{{"type", "s"}, {"summary", "a b"}, {"format", "f"}, {"index", 0}},
                  {{"type", "e"}, {"data", "xx"}, {"format", "f"}, {"index", 1}}}));
  expect_round_trip(kChat, reasoned);
}

// OpenRouter's are all of index 0.
TEST(ChatStream, JoinsItemsOfOneIndexByTheirType) {
  const auto reasons =
      deltas({R"({"reasoning_details":[{"type":"s","summary":"a ","index":0}]})",
              R"({"reasoning_details":[{"type":"s","summary":"b","index":0}]})",
              R"({"reasoning_details":[{"type":"e","data":"gAAA","id":"rs","index":0}]})"});
  EXPECT_TRUE(is_faithful(kChat, reasons));
  const auto whole = assemble(kChat, reasons, false);
  EXPECT_EQ(whole["choices"][0]["message"]["reasoning_details"],
            (Json{{{"type", "s"}, {"summary", "a b"}, {"index", 0}},
                  {{"type", "e"}, {"data", "gAAA"}, {"id", "rs"}, {"index", 0}}}));
  expect_round_trip(kChat, whole);
}

// What would be stored lacks something that the client of the stream had.
TEST(ChatStream, KnowsWhatItCannotPutTogether) {
  const auto faithful = [](const std::vector<std::string>& each) {
    return is_faithful(kChat, deltas(each));
  };
  EXPECT_FALSE(faithful({R"({"future":"a"})", R"({"future":"b"})"}));
  EXPECT_FALSE(faithful({R"({"future":{"x":"a"}})", R"({"future":{"x":"b"}})"}));
  EXPECT_FALSE(faithful({R"({"content":[{"type":"thinking"}]})", R"({"content":"b"})"}));
  EXPECT_FALSE(faithful({R"({"content":"a"})", R"({"content":[{"type":"thinking"}]})"}));
  EXPECT_FALSE(faithful({R"({"audio":{"data":"AA=="}})", R"({"audio":{"data":"BBBB"}})"}));
  EXPECT_FALSE(faithful(
      {R"({"tool_calls":[{"index":0,"id":"a"}]})", R"({"tool_calls":[{"index":0,"id":"b"}]})"}));
  EXPECT_TRUE(faithful(
      {R"({"future":"a"})", R"({"future":"a"})", R"({"future":""})", R"({"future":null})"}));
  EXPECT_TRUE(faithful({R"({"content":""})", R"({"content":[{"type":"thinking"}]})",
                        R"({"content":[{"type":"thinking"}]})"}));
  EXPECT_TRUE(faithful({R"({"n":1})", R"({"n":2})", R"({"n":2.5})"}));
  EXPECT_TRUE(faithful({R"({"filters":{"hate":{"filtered":false,"severity":"safe"}}})",
                        R"({"filters":{"hate":{"filtered":true,"severity":"low"}}})"}));
  EXPECT_TRUE(is_faithful(
      kText, chunks({R"({"choices":[{"index":0,"text":"a","logprobs":{"tokens":["a"]}}]})",
                     R"({"choices":[{"index":0,"text":"b","logprobs":{"tokens":["b"]}}]})"})));
}

TEST(ChatStream, KnowsWhatChunksSayBesideTheirChoices) {
  const auto faithful = [](const std::vector<std::string>& members) {
    std::vector<std::string> each;
    for (const auto& one : members) each.push_back(R"({"choices":[],)" + one + "}");
    return is_faithful(kChat, chunks(each));
  };
  EXPECT_FALSE(faithful({R"("thought":"Let me ")", R"("thought":"think")"}));
  EXPECT_FALSE(faithful({R"("events":[{"a":1}])", R"("events":[{"b":2}])"}));
  EXPECT_FALSE(faithful({R"("x":{"id":"a"})", R"("x":{"usage":1})"}));
  EXPECT_FALSE(faithful({R"("x":[1])", R"("x":"a")"}));
  EXPECT_TRUE(faithful({R"("thought":"a")", R"("thought":null)", R"("thought":"a")"}));
  EXPECT_TRUE(faithful({R"("citations":["a"])", R"("citations":["a","b"])"}));
  EXPECT_TRUE(faithful({R"("x":{"id":"a"})", R"("x":{"id":"a","usage":{"n":1}})",
                        R"("x":{"id":"a","usage":{"n":2}})"}));
  EXPECT_TRUE(faithful({R"("id":"","model":"","created":0)", R"("id":"a","model":"m","created":1)",
                        R"("id":"b","usage":{"a":1})", R"("usage":{"b":1})"}));
  const std::vector<std::string> padded = {R"("p":"abc","obfuscation":"x")", R"("p":"ab")"};
  EXPECT_TRUE(faithful(padded));
  EXPECT_FALSE(assemble(kChat, chunks({"{" + padded[0] + "}"}), false).contains("p"));
}

// Which JSON's grammar allows.
TEST(ChatStream, TakesHalfASurrogatePair) {
  const auto halves = deltas({R"({"content":"\ud83d"})", R"({"content":"\ude00!"})"});
  EXPECT_EQ(problem_in(kChat, halves), "");
  EXPECT_FALSE(is_faithful(kChat, halves));
  EXPECT_TRUE(is_faithful(kChat, deltas({R"({"content":"\ud83d\ude00"})"})));
}

TEST(ChatStream, RefusesWhatIsNoChunk) {
  const auto assembler = make_assembler(kChat);
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  EXPECT_FALSE(
      assembler->add({{}, R"({"choices":[{"index":0,"delta":{"content":)" + deep + "}}]}"}));
  EXPECT_FALSE(
      assembler->add({{}, R"({"choices":[{"index":0,"delta":"boom","finish_reason":"stop"}]})"}));
  EXPECT_FALSE(assembler->add({{}, R"({"choices":[{"index":0,"delta":[1]}]})"}));
  EXPECT_EQ(split_answer(kChat, Json::parse(R"({"choices":[{"message":null},1]})"), true).size(),
            3u);
  for (const char* bad :
       {"", "x", "[]", R"({"choices":[1]})", R"({"choices":[{"index":-1}]})",
        R"({"choices":[{"index":4000000000}]})", R"({"choices":[{"index":"0"}]})"}) {
    EXPECT_FALSE(assembler->add({{}, bad})) << bad;
  }
}

TEST(ChatStream, KnowsUsageChunks) {
  EXPECT_TRUE(is_usage_chunk(kChat, R"({"choices":[],"usage":{"total_tokens":1}})"));
  EXPECT_FALSE(is_usage_chunk(kChat, R"({"choices":[],"usage":null})"));
  EXPECT_FALSE(is_usage_chunk(
      kChat, R"({"choices":[{"index":0,"delta":{"content":"\"usage\""}}],"usage":{"x":1}})"));
  EXPECT_FALSE(is_usage_chunk(kChat, R"({"choices":[]})"));  // Azure's first chunk
}

TEST(ChatStream, KnowsTheEndAndErrors) {
  const auto assembler = make_assembler(kChat);
  const auto step = [&](const char* data, const char* name = "") {
    const auto taken = assembler->add({name, data});
    return taken ? *taken : StreamStep::more;
  };
  EXPECT_EQ(step(R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]})"),
            StreamStep::more);
  EXPECT_EQ(step(R"({"error":null,"choices":[]})"), StreamStep::more);
  EXPECT_EQ(step(R"({"error":{"message":"boom"}})"), StreamStep::error);
  EXPECT_EQ(step(R"({"message":"boom"})", "error"), StreamStep::error);
  EXPECT_EQ(step("[DONE]"), StreamStep::end);
  EXPECT_EQ(assembler->assemble()["error"], nullptr);  // the failure is not part of the answer
  EXPECT_EQ(assembler->assemble()["choices"][0]["message"]["content"], "a");
}

TEST(ChatStream, SendsUsageOnlyIfAsked) {
  const auto answer = chat_answer({{"role", "assistant"}, {"content", "x"}});
  const auto with = split_answer(kChat, answer, true);
  const auto without = split_answer(kChat, answer, false);
  EXPECT_EQ(with.size(), without.size() + 1);
  EXPECT_TRUE(is_usage_chunk(kChat, with[with.size() - 2].data));
  EXPECT_EQ(Json::parse(with.front().data)["usage"], nullptr);
  EXPECT_FALSE(Json::parse(without.front().data).contains("usage"));
  EXPECT_EQ(without.back().data, "[DONE]");
}

// A large answer makes no huge stream.
TEST(ChatStream, SaysOnceWhatBelongsToTheWhole) {
  auto answer = chat_answer({{"role", "assistant"}, {"content", std::string(2400, 'x')}});
  answer["prompt_logprobs"] = Json::array({std::string(1000, 'y')});
  answer["service_tier"] = std::string(1000, 'z');
  const auto events = split_answer(kChat, answer, true);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const auto chunk = Json::parse(events[i].data);
    EXPECT_EQ(chunk.contains("prompt_logprobs"), i == 0);
    EXPECT_EQ(chunk.contains("service_tier"), i == 0);
    for (const char* name : {"id", "object", "created", "model", "system_fingerprint"}) {
      EXPECT_TRUE(chunk.contains(name)) << name;
    }
    bytes += events[i].data.size();
  }
  EXPECT_GT(events.size(), 100u);
  EXPECT_LT(bytes, 40'000u);
  expect_round_trip(kChat, answer);
  answer["choices"] = Json::array();
  expect_round_trip(kChat, answer);
  answer.erase("usage");
  expect_round_trip(kChat, answer);
}

TEST(ChatStream, ReasonsBeforeItSpeaks) {
  const auto events = split_answer(
      kChat,
      chat_answer({{"role", "assistant"}, {"content", "so"}, {"reasoning_content", "because"}}),
      false);
  EXPECT_EQ(Json::parse(events[1].data)["choices"][0]["delta"]["reasoning_content"], "because");
  EXPECT_EQ(Json::parse(events[2].data)["choices"][0]["delta"]["content"], "so");
}

// Chunks that repeat the one before but for their text take a short way; white space that differs
// from chunk to chunk keeps the same chunks from taking it.
TEST(ChatStream, TheShortWayLeadsToTheSameAnswer) {
  EXPECT_TRUE(rc::check("with any texts, escapes, calls and extras", [] {
    struct Piece {
      std::string text;
      int shape;
    };
    const auto pieces = *rc::gen::container<std::vector<Piece>>(
        rc::gen::construct<Piece>(test::any_text(), rc::gen::inRange(0, 12)));
    const auto quick = make_assembler(kChat);
    const auto slow = make_assembler(kChat);
    std::string spaces;
    for (const auto& [text, shape] : pieces) {
      Json chunk = {{"id", "x"}, {"obfuscation", text}};
      Json delta = {{"content", text}};
      if (shape == 1) delta = {{"role", "assistant"}, {"content", text}};
      if (shape == 2) delta = {{"reasoning_content", text}};
      if (shape == 3 || shape == 4) {
        Json call = {{"index", shape - 3}, {"function", {{"arguments", text}}}};
        if (text.empty()) call["id"] = "c";
        delta = {{"tool_calls", Json::array({std::move(call)})}};
      }
      if (shape == 5) delta["refusal"] = text;
      Json choice = {{"index", shape == 6 ? 1 : 0}, {"delta", std::move(delta)}};
      choice["finish_reason"] = shape == 7 ? Json("stop") : Json();
      if (shape == 8) choice["logprobs"] = {{"content", {{{"token", text}}}}};
      chunk["choices"] = Json::array({std::move(choice)});
      if (shape == 9) chunk["system_fingerprint"] = text;
      const std::string data = chunk.dump(-1, ' ', shape == 10);  // 10: \\u escapes
      spaces += spaces.size() < 3 ? " " : "";
      if (spaces.size() == 3) spaces.clear();
      RC_ASSERT(quick->add({{}, data}).has_value());
      RC_ASSERT(slow->add({{}, spaces + data}).has_value());
    }
    RC_ASSERT(quick->assemble() == slow->assemble());
  }));
}

TEST(ChatStream, TheShortWayChecksWhatItTakes) {
  const std::string head = R"({"choices":[{"index":0,"delta":{"content":")";
  const std::string tail = R"("},"finish_reason":null}]})";
  const auto assembler = make_assembler(kChat);
  for (const char* text : {"a", "b", "", "\\n\\\"\\\\\\/", "\\u00e9", "\xc3\xa9"}) {
    EXPECT_TRUE(assembler->add({{}, head + text + tail})) << text;
  }
  // A failure ends the short way: each bad chunk meets an assembler that has just learned.
  const auto takes = [&](const std::string& chunk) {
    const auto fresh = make_assembler(kChat);
    EXPECT_TRUE(fresh->add({{}, head + "a" + tail}));
    EXPECT_TRUE(fresh->add({{}, head + "b" + tail}));
    return fresh->add({{}, chunk}).has_value();
  };
  for (const char* text : {"\n", "\xc3", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\\x", "\\", "\xff"}) {
    EXPECT_FALSE(takes(head + text + tail)) << text;
  }
  EXPECT_FALSE(takes(head + "a" + tail + "x"));
  EXPECT_FALSE(takes(head));
  EXPECT_TRUE(takes(head + "a" + tail));
  EXPECT_EQ(assembler->assemble()["choices"][0]["message"]["content"], "ab\n\"\\/éé");
}

TEST(ChatStream, BoundsWhatAStreamMayBuild) {
  const auto assembler = make_assembler(kChat);
  bool refused = false;
  for (int i = 0; i < 2000 && !refused; ++i) {
    const std::string n = std::to_string(i);
    refused = !assembler->add(
        {{}, R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":)" + n + "}]}}]}"});
  }
  EXPECT_TRUE(refused);
  refused = false;
  for (int i = 0; i < 2000 && !refused; ++i) {
    refused = !assembler->add({{}, R"({"x)" + std::to_string(i) + R"(":1})"});
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace fixpoint
