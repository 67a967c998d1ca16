#include "tests/unit/gateway/dialects/dialect_support.hpp"

namespace fixpoint {
namespace {

using test::assemble;
using test::expect_round_trip;
using test::expect_same;
using test::is_faithful;
using test::named;
using test::problem_in;

constexpr auto kMessages = Endpoint::messages;

Json message(Json content, const char* stop = "end_turn") {
  return {{"id", "msg_1"},
          {"type", "message"},
          {"role", "assistant"},
          {"model", "claude-x"},
          {"content", std::move(content)},
          {"stop_reason", stop},
          {"stop_sequence", nullptr},
          {"usage",
           {{"input_tokens", 9},
            {"cache_read_input_tokens", 4},
            {"output_tokens", 5},
            {"service_tier", "standard"}}}};
}

constexpr const char* kStart =
    R"({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x",
    "content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"cache_read_input_tokens":4,
    "output_tokens":1,"service_tier":"standard"}}})";
constexpr const char* kStop = R"({"type":"message_stop"})";

std::string start_block(int index, const std::string& block) {
  return R"({"type":"content_block_start","index":)" + std::to_string(index) +
         R"(,"content_block":)" + block + "}";
}
std::string delta(int index, const std::string& body) {
  return R"({"type":"content_block_delta","index":)" + std::to_string(index) + R"(,"delta":)" +
         body + "}";
}
std::string stop_block(int index) {
  return R"({"type":"content_block_stop","index":)" + std::to_string(index) + "}";
}
std::string input(int index, const std::string& json) {
  return delta(index, Json({{"type", "input_json_delta"}, {"partial_json", json}}).dump());
}
std::string finish(const char* reason, int tokens = 5) {
  return Json({{"type", "message_delta"},
               {"delta", {{"stop_reason", reason}, {"stop_sequence", nullptr}}},
               {"usage", {{"output_tokens", tokens}}}})
      .dump();
}

TEST(MessagesStream, AssemblesARecordedStream) {
  const auto whole = assemble(
      kMessages,
      named(
          {kStart,
           R"({"type":"ping"})",
           start_block(0, R"({"type":"thinking","thinking":"","signature":""})"),
           delta(0, R"({"type":"thinking_delta","thinking":"Let me "})"),
           delta(0, R"({"type":"thinking_delta","thinking":"see."})"),
           delta(0, R"({"type":"signature_delta","signature":"EqQB=="})"),
           stop_block(0),
           start_block(1, R"({"type":"text","text":"","citations":[]})"),
           delta(1, R"({"type":"text_delta","text":"The weather"})"),
           delta(1, R"({"type":"text_delta","text":" in \"Köln\"\n"})"),
           delta(
               1,
               R"({"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}})"),
           stop_block(1),
           start_block(2, R"({"type":"tool_use","id":"toolu_1","name":"get","input":{}})"),
           input(2, ""),
           input(2, "{\"city\": \"Kö"),
           input(2, "ln\"}"),
           stop_block(2),
           start_block(
               3, R"({"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}})"),
           input(3, "{\"query\":1}"),
           stop_block(3),
           start_block(
               4,
               R"({"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"url":"u"}]})"),
           stop_block(4),
           R"({"type":"some_future_event","x":1})",
           finish("tool_use"),
           kStop}));
  auto expected = message(
      {{{"type", "thinking"}, {"thinking", "Let me see."}, {"signature", "EqQB=="}},
       {{"type", "text"},
        {"text", "The weather in \"Köln\"\n"},
        {"citations", {{{"type", "char_location"}, {"cited_text", "x"}}}}},
       {{"type", "tool_use"}, {"id", "toolu_1"}, {"name", "get"}, {"input", {{"city", "Köln"}}}},
       {{"type", "server_tool_use"},
        {"id", "srvtoolu_1"},
        {"name", "web_search"},
        {"input", {{"query", 1}}}},
       {{"type", "web_search_tool_result"},
        {"tool_use_id", "srvtoolu_1"},
        {"content", {{{"url", "u"}}}}}},
      "tool_use");
  expect_same(whole, expected);
  expect_round_trip(kMessages, expected);
}

TEST(MessagesStream, SplitsInTheOfficialOrder) {
  const auto events = split_answer(
      kMessages,
      message({{{"type", "text"}, {"text", "Hi"}},
               {{"type", "tool_use"}, {"id", "t"}, {"name", "f"}, {"input", Json::object()}}}),
      true);
  std::string names;
  for (const auto& event : events) {
    names += event.event + " ";
    EXPECT_EQ(Json::parse(event.data)["type"], event.event);
  }
  EXPECT_EQ(names,
            "message_start content_block_start content_block_delta content_block_stop "
            "content_block_start content_block_stop message_delta message_stop ");
  const auto start = Json::parse(events[0].data)["message"];
  EXPECT_EQ(start["stop_reason"], nullptr);
  EXPECT_EQ(start["content"], Json::array());
  EXPECT_EQ(start["usage"]["output_tokens"], 0);
  EXPECT_EQ(Json::parse(events[6].data)["delta"]["stop_reason"], "end_turn");
  EXPECT_EQ(Json::parse(events[6].data)["usage"]["output_tokens"], 5);
}

TEST(MessagesStream, RoundTripsAnyAnswer) {
  EXPECT_TRUE(rc::check("any texts and inputs", [] {
    Json content = Json::array();
    const auto texts = *rc::gen::container<std::vector<std::string>>(test::any_text());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& text = texts[i];
      if (i % 4 == 0) content.push_back({{"type", "text"}, {"text", text}});
      if (i % 4 == 1) {
        content.push_back({{"type", "thinking"}, {"thinking", text}, {"signature", text}});
      }
      if (i % 4 == 2) {
        content.push_back(
            {{"type", "tool_use"}, {"id", text}, {"name", "f"}, {"input", {{text, {text, -1.5}}}}});
      }
      if (i % 4 == 3) content.push_back({{"type", "future"}, {"data", text}, {"n", nullptr}});
    }
    const auto answer = message(content, "max_tokens");
    const auto whole = assemble(kMessages, split_answer(kMessages, answer, true));
    RC_ASSERT(nlohmann::json(whole) == nlohmann::json(answer));
  }));
}

TEST(MessagesStream, KeepsWhatItDoesNotKnow) {
  const auto whole = assemble(
      kMessages,
      named({kStart, start_block(0, R"({"type":"future","text":"a","list":[1]})"),
             delta(0, R"({"type":"future_delta","text":"b","list":[2],"flag":true})"),
             stop_block(0),
             R"({"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c"}},
                          "usage":{"output_tokens":7,"server_tool_use":{"web_search_requests":1}},
                          "context_management":{"applied_edits":[]}})",
             kStop}));
  expect_same(whole["content"][0],
              {{"type", "future"}, {"text", "ab"}, {"list", {1, 2}}, {"flag", true}});
  EXPECT_EQ(whole["container"]["id"], "c");
  EXPECT_EQ(whole["context_management"]["applied_edits"], Json::array());
  EXPECT_EQ(whole["usage"]["input_tokens"], 9);
  EXPECT_EQ(whole["usage"]["output_tokens"], 7);
  EXPECT_EQ(whole["usage"]["server_tool_use"]["web_search_requests"], 1);
}

TEST(MessagesStream, KnowsWhatItCannotPutTogether) {
  const auto faithful = [](const char* block, const std::vector<std::string>& deltas) {
    std::vector<std::string> datas = {kStart, start_block(0, block)};
    for (const auto& each : deltas) datas.push_back(delta(0, each));
    return is_faithful(kMessages, named(datas));
  };
  const auto label = R"({"type":"future_delta","label":"x"})";
  EXPECT_FALSE(faithful(R"({"type":"future"})", {label, label}));
  EXPECT_FALSE(faithful(R"({"type":"future","label":[1]})", {label}));
  EXPECT_TRUE(faithful(R"({"type":"future","label":""})", {label}));
  EXPECT_TRUE(faithful(R"({"type":"compaction","content":null})",
                       {R"({"type":"compaction_delta","content":"x"})"}));
  EXPECT_TRUE(faithful(R"({"type":"text","text":""})", {R"({"type":"text_delta","text":"a"})",
                                                        R"({"type":"text_delta","text":"b"})"}));
}

// Counts that Anthropic's message_delta has; the rest is in message_start.
TEST(MessagesStream, SplitsItsUsage) {
  auto answer = message({{{"type", "text"}, {"text", "Hi"}}});
  answer["usage"]["cache_creation"] = {{"ephemeral_5m_input_tokens", 0}};
  answer["usage"]["server_tool_use"] = {{"web_search_requests", 1}};
  const auto events = split_answer(kMessages, answer, true);
  const auto late = Json::parse(events[events.size() - 2].data)["usage"];
  expect_same(late, {{"input_tokens", 9},
                     {"cache_read_input_tokens", 4},
                     {"output_tokens", 5},
                     {"server_tool_use", {{"web_search_requests", 1}}}});
  const auto early = Json::parse(events[0].data)["message"]["usage"];
  EXPECT_EQ(early["service_tier"], "standard");
  expect_round_trip(kMessages, answer);
}

TEST(MessagesStream, RefusesWhatBreaksTheForm) {
  const auto problem = [](std::vector<std::string> datas) {
    return problem_in(kMessages, named(datas));
  };
  const std::string text = start_block(0, R"({"type":"text","text":""})");
  EXPECT_NE(problem({kStop}), "");
  EXPECT_NE(problem({text}), "");
  EXPECT_NE(problem({kStart, kStart}), "");
  EXPECT_NE(problem({kStart, start_block(1, "{}")}), "");
  EXPECT_NE(problem({kStart, text, text}), "");
  EXPECT_NE(problem({kStart, text, delta(1, "{}")}), "");
  EXPECT_NE(problem({kStart, text, stop_block(0), delta(0, "{}")}), "");
  EXPECT_NE(problem({kStart, text, stop_block(0), stop_block(0)}), "");
  EXPECT_NE(problem({kStart, R"({"type":"content_block_stop"})"}), "");
  EXPECT_NE(problem({R"({"type":"message_start"})"}), "");
  EXPECT_NE(problem_in(kMessages, {{"", "[DONE]"}}), "");
  EXPECT_NE(problem_in(kMessages, {{"message_start", "[]"}}), "");
}

// Of a tool with eager_input_streaming, whose pieces come as the model writes them.
TEST(MessagesStream, AnInputThatIsNoJsonIsNoFailure) {
  const auto events = [](const char* reason) {
    return named({kStart, start_block(0, R"({"type":"tool_use","input":{}})"), input(0, "{\"a\":"),
                  input(0, "}"), stop_block(0), finish(reason), kStop});
  };
  EXPECT_EQ(problem_in(kMessages, events("tool_use")), "");
  EXPECT_FALSE(is_faithful(kMessages, events("tool_use")));
  EXPECT_TRUE(is_faithful(kMessages, events("max_tokens")));  // which has cut it
  EXPECT_EQ(assemble(kMessages, events("max_tokens"))["content"][0]["input"],
            (Json{{"INVALID_JSON", "{\"a\":}"}}));
}

TEST(MessagesStream, TakesHalfASurrogatePair) {
  const auto faithful = [](const std::string& block, const std::string& change) {
    return is_faithful(kMessages, test::chunks({kStart, start_block(0, block), delta(0, change)}));
  };
  const std::string text = R"({"type":"text","text":""})";
  EXPECT_FALSE(faithful(text, R"({"type":"text_delta","text":"\ud83d"})"));
  EXPECT_TRUE(faithful(text, R"({"type":"text_delta","text":"\ud83d\ude00"})"));
  EXPECT_FALSE(
      is_faithful(kMessages, test::chunks({kStart, start_block(0, R"({"type":"tool_use"})"),
                                           input(0, R"({"a":"\ud83d"})"), stop_block(0)})));
}

TEST(MessagesStream, KnowsErrors) {
  const auto assembler = make_assembler(kMessages);
  EXPECT_EQ(*assembler->add({"ping", "{}"}), StreamStep::more);
  EXPECT_EQ(*assembler->add({"error", "no JSON"}), StreamStep::error);
  EXPECT_EQ(*assembler->add({"", R"({"type":"error","error":{"type":"overloaded_error"}})"}),
            StreamStep::error);
}

TEST(MessagesStream, BoundsTheBlocks) {
  const auto assembler = make_assembler(kMessages);
  ASSERT_TRUE(assembler->add({"", kStart}));
  int i = 0;
  while (i < 2000 && assembler->add({"", start_block(i, "{}")})) ++i;
  EXPECT_EQ(i, 1024);
}

}  // namespace
}  // namespace fixpoint
