#include "gateway/dialects/left_out.hpp"
#include "tests/unit/gateway/dialects/translate_support.hpp"

namespace fixpoint {
namespace {

using namespace test;

TEST(MessagesFromChat, TranslatesAnAnswer) {
  const auto answer =
      plain(kMessages, kChat,
            gpt({{"content", "Calling."},
                 {"reasoning_content", "Hm."},
                 {"tool_calls", {call("c1", "f", "{\"a\": 1}"), call("c2", "g", "")}}},
                "tool_calls"));
  expect_same(answer,
              {{"id", "msg_01"},
               {"type", "message"},
               {"role", "assistant"},
               {"model", "gpt-x"},
               {"content",
                {{{"type", "thinking"}, {"thinking", "Hm."}, {"signature", ""}},
                 {{"type", "text"}, {"text", "Calling."}},
                 {{"type", "tool_use"}, {"id", "c1"}, {"name", "f"}, {"input", {{"a", 1}}}},
                 {{"type", "tool_use"}, {"id", "c2"}, {"name", "g"}, {"input", Json::object()}}}},
               {"stop_reason", "tool_use"},
               {"stop_sequence", nullptr},
               {"usage",
                {{"input_tokens", 10},
                 {"cache_creation_input_tokens", 2},
                 {"cache_read_input_tokens", 5},
                 {"output_tokens", 7}}}});
}

TEST(MessagesFromChat, Reasons) {
  const auto stop = [](const char* finish) {
    return plain(kMessages, kChat, gpt({{"content", "x"}}, finish))["stop_reason"];
  };
  EXPECT_EQ(stop("stop"), "end_turn");
  EXPECT_EQ(stop("length"), "max_tokens");
  EXPECT_EQ(stop("model_context_window_exceeded"), "model_context_window_exceeded");
  EXPECT_EQ(stop("content_filter"), "refusal");
  EXPECT_EQ(
      plain(kMessages, kChat,
            gpt({{"content", nullptr}, {"tool_calls", {call("c", "f", "{}")}}}))["stop_reason"],
      "tool_use");
  EXPECT_EQ(plain(kMessages, kChat, gpt({{"content", nullptr}, {"refusal", "No."}}))["stop_reason"],
            "refusal");
  EXPECT_NE(failure(kMessages, kChat, gpt({{"content", "x"}}, "abort")), "");
  auto named = gpt({{"content", "x"}});
  named["choices"][0]["stop_reason"] = "END";
  EXPECT_EQ(plain(kMessages, kChat, named)["stop_reason"], "stop_sequence");
  EXPECT_EQ(plain(kMessages, kChat, named)["stop_sequence"], "END");
  // A call that a limit cut stays recognisable; one that is simply broken is a failure.
  const Json broken = {{"content", nullptr}, {"tool_calls", {call("c", "f", "{\"a\":")}}};
  EXPECT_EQ(plain(kMessages, kChat, gpt(broken, "length"))["content"][0]["input"],
            (Json{{"INVALID_JSON", "{\"a\":"}}));
  EXPECT_NE(failure(kMessages, kChat, gpt(broken, "tool_calls")), "");
}

std::string piece(const std::string& delta, const char* finish = "null") {
  return R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":)" +
         delta + R"(,"finish_reason":)" + finish + "}]}";
}
std::string call_start(int index, const char* id) {
  return piece(R"({"tool_calls":[{"index":)" + std::to_string(index) + R"(,"id":")" + id +
               R"(","type":"function","function":{"name":"f","arguments":""}}]})");
}
std::string call_piece(int index, const std::string& arguments) {
  Json one = {{"index", index}, {"function", {{"arguments", arguments}}}};
  return piece(Json({{"tool_calls", Json::array({std::move(one)})}}).dump());
}

// Text, and two calls whose arguments arrive in turns.
std::vector<SseEvent> interleaved() {
  return chunks(
      {R"({"id":"","choices":[],"prompt_filter_results":[]})",
       piece(R"({"role":"assistant","content":""})"), piece(R"({"content":"Now"})"),
       call_start(0, "c0"), call_piece(0, "{\"a\":"), call_start(1, "c1"),
       call_piece(1, "{\"b\":{"), call_piece(0, "\"}\\\"\""), call_piece(1, "}"),
       piece(R"({"content":"then"})"), call_piece(0, "}"), call_piece(1, "}"), call_piece(0, " \n"),
       piece("{}", "\"tool_calls\""),
       R"({"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
       "[DONE]"});
}

TEST(MessagesFromChat, StreamsBlocksOneAfterTheOther) {
  std::vector<SseEvent> sent;
  const auto whole = streamed(kMessages, kChat, interleaved(), &sent);
  expect_same(
      whole["content"],
      {{{"type", "text"}, {"text", "Now"}},
       {{"type", "tool_use"}, {"id", "c0"}, {"name", "f"}, {"input", {{"a", "}\""}}}},
       {{"type", "tool_use"}, {"id", "c1"}, {"name", "f"}, {"input", {{"b", Json::object()}}}},
       {{"type", "text"}, {"text", "then"}}});
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  EXPECT_EQ(whole["usage"]["input_tokens"], 3);
  EXPECT_EQ(whole["id"], "msg_1");
  // One block is open at a time, and their indices count up.
  int open = -1, next = 0;
  for (const auto& event : sent) {
    const auto body = Json::parse(event.data);
    if (event.event == "content_block_start") {
      EXPECT_EQ(open, -1);
      open = body["index"];
      EXPECT_EQ(open, next++);
    } else if (event.event == "content_block_delta") {
      EXPECT_EQ(open, body["index"]);
    } else if (event.event == "content_block_stop") {
      EXPECT_EQ(open, body["index"]);
      open = -1;
    }
  }
  EXPECT_EQ(sent.front().event, "message_start");
  EXPECT_EQ(sent.back().event, "message_stop");
}

// vLLM says what it thinks under two names.
TEST(MessagesFromChat, ThinksOnce) {
  const auto answer =
      plain(kMessages, kChat,
            gpt({{"reasoning_content", "Hm."}, {"reasoning", "Hm."}, {"content", "x"}}));
  ASSERT_EQ(answer["content"].size(), 2u);
  EXPECT_EQ(answer["content"][0]["thinking"], "Hm.");
  const auto other = plain(
      kMessages, kChat, gpt({{"reasoning_content", ""}, {"reasoning", "Hm."}, {"content", "x"}}));
  EXPECT_EQ(other["content"][0]["thinking"], "Hm.");
}

TEST(MessagesFromChat, AnInputIsAnObject) {
  const auto input = [](const std::vector<std::string>& pieces) {
    std::vector<std::string> datas = {call_start(0, "c0")};
    for (const auto& each : pieces) datas.push_back(call_piece(0, each));
    datas.push_back(piece("{}", "\"tool_calls\""));
    datas.emplace_back("[DONE]");
    return streamed(kMessages, kChat, chunks(datas))["content"][0]["input"];
  };
  EXPECT_EQ(input({"null"}), Json::object());
  EXPECT_EQ(input({"n", "ull"}), Json::object());
  EXPECT_EQ(input({"{\"a\":", "nu", "ll}"}), (Json{{"a", nullptr}}));
  EXPECT_EQ(plain(kMessages, kChat,
                  gpt({{"content", nullptr}, {"tool_calls", {call("c", "f", "null")}}},
                      "tool_calls"))["content"][0]["input"],
            Json::object());
  EXPECT_EQ(input({" "}), Json::object());
  // Made a string twice.
  EXPECT_EQ(input({"\"{\\\"a", "\\\": 1}\""}), (Json{{"a", 1}}));
  for (const char* wrong : {"[1]", "5", "\"{\"", "\"5\"", "{\"a\":}", "f(1)"}) {
    const Json message = {{"content", nullptr}, {"tool_calls", {call("c", "f", wrong)}}};
    EXPECT_NE(failure(kMessages, kChat, gpt(message, "tool_calls")), "") << wrong;
  }
}

// As some servers send them.
TEST(TranslateAnswer, ArgumentsMayBeAnObject) {
  const auto with = [](Json arguments) {
    Json one = call("c", "f", "");
    one["function"]["arguments"] = std::move(arguments);
    return gpt({{"content", nullptr}, {"tool_calls", Json::array({std::move(one)})}}, "tool_calls");
  };
  EXPECT_EQ(plain(kMessages, kChat, with({{"a", 1}}))["content"][0]["input"], (Json{{"a", 1}}));
  EXPECT_EQ(plain(kResponses, kChat, with({{"a", 1}}))["output"][0]["arguments"], "{\"a\":1}");
  for (const Endpoint client : {kMessages, kResponses}) {
    EXPECT_NE(failure(client, kChat, with(Json::array({1}))), "");
    EXPECT_NE(failure(client, kChat, with(5)), "");
  }
}

TEST(TranslateAnswer, PicturesAndSoundsAreNotLeftOut) {
  for (const Endpoint client : {kMessages, kResponses}) {
    for (const char* name : {"images", "audio"}) {
      Json message = {{"content", "x"}, {name, Json::array()}};
      EXPECT_EQ(failure(client, kChat, gpt(message)), "");
      message[name] = {{"data", "QUJD"}};
      EXPECT_NE(failure(client, kChat, gpt(message)).find(name), std::string::npos);
    }
  }
}

TEST(TranslateAnswer, WhatIsLeftOutHasNames) {
  using Names = std::vector<std::string>;
  const Json note = Json::array({{{"type", "url_citation"}}});
  Json message = {{"content", "x"}, {"annotations", Json::array()}, {"reasoning_details", nullptr}};
  EXPECT_EQ(left_out_members(kChat, gpt(message)), Names());
  message["annotations"] = note;
  Json answer = gpt(message);
  answer["choices"].push_back(answer["choices"][0]);
  EXPECT_EQ(left_out_members(kChat, answer), Names{"choices[].message.annotations"});
  answer["choices"][1]["message"]["reasoning_details"] = note;
  EXPECT_EQ(left_out_members(kChat, answer),
            (Names{"choices[].message.annotations", "choices[].message.reasoning_details"}));
  answer = {{"content", {{{"type", "text"}, {"text", "x"}, {"citations", note}}}},
            {"stop_details", {{"type", "refusal"}}}};
  EXPECT_EQ(left_out_members(kMessages, answer), (Names{"content[].citations", "stop_details"}));
  answer["content"][0]["citations"] = answer["stop_details"] = nullptr;
  EXPECT_EQ(left_out_members(kMessages, answer), Names());
  EXPECT_EQ(left_out_members(kChat, Json(5)), Names());
}

TEST(TranslateAnswer, HalfASurrogatePairIsReplaced) {
  const auto half = chunks({piece(R"({"content":"\ud83d!"})"), piece("{}", "\"stop\""), "[DONE]"});
  EXPECT_EQ(streamed(kMessages, kChat, half)["content"][0]["text"], "\uFFFD!");
}

// Some servers end with a chunk of usage that has an empty reason.
TEST(MessagesFromChat, AnEmptyReasonIsNone) {
  auto events =
      chunks({piece(R"({"content":"x"})"), piece("{}", "\"stop\""), piece("{}", "\"\""), "[DONE]"});
  EXPECT_EQ(streamed(kMessages, kChat, events)["stop_reason"], "end_turn");
  EXPECT_EQ(assemble(kChat, events)["choices"][0]["finish_reason"], "stop");
}

TEST(ResponsesFromChat, StreamsItemsOneAfterTheOther) {
  const auto whole = streamed(kResponses, kChat, interleaved());
  ASSERT_EQ(whole["output"].size(), 4u);
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "Now");
  EXPECT_EQ(whole["output"][1]["arguments"], "{\"a\":\"}\\\"\"}");
  EXPECT_EQ(whole["output"][2]["call_id"], "c1");
  EXPECT_EQ(whole["output"][3]["content"][0]["text"], "then");
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["usage"]["total_tokens"], 5);
}

TEST(TranslateAnswer, WithoutWaitingForOneCallAtATime) {
  const auto translator = make_translator(kMessages, kChat, Json::object());
  std::size_t events = 0;
  for (const auto& event :
       chunks({piece(R"({"content":"a"})"), call_start(0, "c0"), call_piece(0, "{"),
               call_piece(0, "}"), call_start(1, "c1"), call_piece(1, "{\"x\":")})) {
    const auto sent = translator->event(event);
    ASSERT_TRUE(sent);
    EXPECT_FALSE(sent->empty()) << event.data;
    events += sent->size();
  }
  EXPECT_EQ(events, 2u + 1 + 2 + 1 + 1 + 2 + 1);
}

TEST(TranslateAnswer, NoFalseEnds) {
  const auto fails = [](Endpoint client, Endpoint maker, const std::vector<SseEvent>& events) {
    const auto translator = make_translator(client, maker, Json::object());
    for (const auto& event : events) {
      if (!translator->event(event)) return true;
    }
    return false;
  };
  for (const Endpoint client : {kMessages, kResponses}) {
    EXPECT_TRUE(fails(client, kChat, chunks({piece(R"({"content":"a"})"), "[DONE]"})));
    EXPECT_TRUE(fails(client, kChat, chunks({"[DONE]"})));
    EXPECT_TRUE(fails(client, kChat, chunks({R"({"error":{"message":"x"}})"})));
    EXPECT_TRUE(fails(client, kChat, chunks({R"({"choices":[{"index":1,"delta":{}}]})"})));
    EXPECT_TRUE(fails(client, kChat, chunks({piece(R"({"content":[1]})")})));
    EXPECT_TRUE(fails(client, kChat, chunks({call_piece(0, "{}")})));
    EXPECT_TRUE(fails(client, kChat,
                      chunks({call_start(0, "a"), call_piece(0, "{}"), call_start(1, "b"),
                              call_piece(0, "{}")})));
  }
  for (const Endpoint client : {kChat, kResponses}) {
    EXPECT_TRUE(fails(client, kMessages, named({R"({"type":"message_stop"})"})));
    EXPECT_TRUE(fails(
        client, kMessages,
        named({R"({"type":"message_start","message":{"id":"m"}})", R"({"type":"message_stop"})"})));
    EXPECT_TRUE(fails(client, kMessages, named({R"({"type":"error","error":{}})"})));
  }
}

TEST(ResponsesFromChat, TranslatesAnAnswer) {
  const Json request = {{"instructions", "s"},
                        {"temperature", 0.5},
                        {"metadata", {{"a", "b"}}},
                        {"tools", {{{"type", "function"}, {"name", "f"}}}},
                        {"reasoning", {{"effort", "low"}}}};
  auto chat = gpt({{"content", "ab"},
                   {"reasoning_content", "Hm."},
                   {"tool_calls", {call("c1", "f", "{\"a\": 1}")}}},
                  "tool_calls");
  const Json entries = {{{"token", "a"}, {"logprob", -1}, {"bytes", {97}}, {"top_logprobs", {1}}},
                        {{"token", "b"}, {"logprob", -2}, {"bytes", {98}}, {"top_logprobs", {1}}}};
  chat["choices"][0]["logprobs"] = {{"content", entries}};
  const auto answer = plain(kResponses, kChat, chat, request);
  EXPECT_EQ(answer["id"], "resp_01");
  EXPECT_EQ(answer["object"], "response");
  EXPECT_EQ(answer["created_at"], 5);
  EXPECT_EQ(answer["status"], "completed");
  EXPECT_EQ(answer["model"], "gpt-x");
  EXPECT_EQ(answer["instructions"], "s");
  EXPECT_EQ(answer["temperature"], 0.5);
  EXPECT_EQ(answer["metadata"]["a"], "b");
  EXPECT_EQ(answer["tools"], request["tools"]);
  EXPECT_EQ(answer["reasoning"]["effort"], "low");
  EXPECT_EQ(answer["store"], false);
  EXPECT_EQ(answer["tool_choice"], "auto");
  expect_same(answer["usage"],
              {{"input_tokens", 17},
               {"input_tokens_details", {{"cached_tokens", 5}, {"cache_write_tokens", 2}}},
               {"output_tokens", 7},
               {"output_tokens_details", {{"reasoning_tokens", 3}}},
               {"total_tokens", 24}});
  expect_same(answer["output"], {{{"id", "rs_01_0"},
                                  {"type", "reasoning"},
                                  {"status", "completed"},
                                  {"summary", Json::array()},
                                  {"content", {{{"type", "reasoning_text"}, {"text", "Hm."}}}}},
                                 {{"id", "msg_01_1"},
                                  {"type", "message"},
                                  {"status", "completed"},
                                  {"role", "assistant"},
                                  {"content",
                                   {{{"type", "output_text"},
                                     {"text", "ab"},
                                     {"annotations", Json::array()},
                                     {"logprobs", entries}}}}},
                                 {{"id", "fc_01_2"},
                                  {"type", "function_call"},
                                  {"status", "completed"},
                                  {"call_id", "c1"},
                                  {"name", "f"},
                                  {"arguments", "{\"a\": 1}"}}});
  EXPECT_TRUE(summarize(kResponses, answer).whole);
  EXPECT_EQ(summarize(kResponses, answer).tokens.size(), 2u);
}

TEST(ResponsesFromChat, CutAnswersAreIncomplete) {
  const auto cut = plain(kResponses, kChat, gpt({{"content", "x"}}, "length"));
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
  EXPECT_TRUE(summarize(kResponses, cut).length);
  const auto filtered = plain(kResponses, kChat, gpt({{"content", "x"}}, "content_filter"));
  EXPECT_EQ(filtered["incomplete_details"]["reason"], "content_filter");
  const auto refusal = plain(kResponses, kChat, gpt({{"content", nullptr}, {"refusal", "No."}}));
  EXPECT_EQ(refusal["output"][0]["content"][0], (Json{{"type", "refusal"}, {"refusal", "No."}}));
}

TEST(ResponsesFromMessages, GoesByWayOfChat) {
  const auto answer = claude(everything(), "tool_use");
  const auto whole = plain(kResponses, kMessages, answer);
  EXPECT_EQ(whole["id"], "resp_01");
  ASSERT_EQ(whole["output"].size(), 4u);
  EXPECT_EQ(whole["output"][1]["content"][0]["text"],
            "I will call two tools, one after the other.");
  EXPECT_EQ(whole["output"][2]["arguments"], "{\"a\":\"Köln\"}");
  EXPECT_EQ(whole["output"][3]["arguments"], "{}");
  EXPECT_EQ(whole["usage"]["input_tokens"], 17);
  const auto same = streamed(kResponses, kMessages, split_answer(kMessages, answer, true));
  expect_same(without(same, {"created_at"}), without(whole, {"created_at"}));
}

// Both forms of an answer are translated alike, whatever it says.
TEST(TranslateAnswer, BothFormsSayTheSame) {
  EXPECT_TRUE(rc::check("any texts", [] {
    const auto text = *test::any_text();
    Json message = {{"content", text}, {"reasoning_content", text}};
    const std::string arguments = Json({{text, text}}).dump();
    message["tool_calls"] = Json::array({call("c", "f", arguments.c_str())});
    const auto chat = gpt(message, "tool_calls");
    for (const Endpoint client : {kMessages, kResponses}) {
      const auto whole = plain(client, kChat, chat);
      RC_ASSERT(nlohmann::json(streamed(client, kChat, split_answer(kChat, chat, true))) ==
                nlohmann::json(whole));
    }
  }));
}

}  // namespace
}  // namespace fixpoint
