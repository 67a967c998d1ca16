#include "tests/unit/gateway/dialects/dialect_support.hpp"

namespace fixpoint {
namespace {

using test::assemble;
using test::expect_round_trip;
using test::expect_same;
using test::is_faithful;
using test::named;
using test::problem_in;

constexpr auto kResponses = Endpoint::responses;

Json entry(const char* token) {
  return {{"token", token}, {"logprob", -0.5}, {"bytes", {97}}, {"top_logprobs", Json::array()}};
}

Json text_part(Json text, Json logprobs = Json::array()) {
  return {{"type", "output_text"},
          {"text", std::move(text)},
          {"annotations", Json::array()},
          {"logprobs", std::move(logprobs)}};
}

Json output_message(Json content) {
  return {{"id", "msg_1"},
          {"type", "message"},
          {"status", "completed"},
          {"role", "assistant"},
          {"content", std::move(content)}};
}

Json response(Json output, const char* status = "completed") {
  return {{"id", "resp_1"},
          {"object", "response"},
          {"created_at", 5},
          {"status", status},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"model", "m"},
          {"output", std::move(output)},
          {"tools", Json::array()},
          {"usage", {{"input_tokens", 1}, {"output_tokens", 2}, {"total_tokens", 3}}}};
}

Json every_item() {
  Json cited = text_part("see here");
  cited["annotations"] = {{{"type", "url_citation"}, {"url", "u"}}};
  return {{{"id", "rs_1"},
           {"type", "reasoning"},
           {"summary", {{{"type", "summary_text"}, {"text", "I think of a long story"}}}},
           {"content", {{{"type", "reasoning_text"}, {"text", "hm"}}}},
           {"encrypted_content", "zzz"},
           {"status", "completed"}},
          output_message({text_part("ab", {entry("a"), entry("b")}), cited,
                          Json{{"type", "refusal"}, {"refusal", "no"}}, Json{{"type", "future"}}}),
          {{"id", "fc_1"},
           {"type", "function_call"},
           {"status", "completed"},
           {"call_id", "call_1"},
           {"name", "get"},
           {"arguments", "{\"city\":\"Köln\"}"}},
          {{"id", "ctc_1"},
           {"type", "custom_tool_call"},
           {"status", "completed"},
           {"call_id", "call_2"},
           {"name", "run"},
           {"input", "ls"}},
          {{"id", "ws_1"}, {"type", "web_search_call"}, {"action", {{"query", "q"}}}}};
}

TEST(ResponsesStream, RoundTrips) {
  expect_round_trip(kResponses, response(every_item()));
  expect_round_trip(kResponses, response(Json::array()));
  // An array by name: a brace around one Json is a copy of it to clang and an array to GCC.
  auto cut =
      response(Json::array({output_message(Json::array({text_part("half")}))}), "incomplete");
  cut["incomplete_details"] = {{"reason", "max_output_tokens"}};
  const auto events = split_answer(kResponses, cut, true);
  EXPECT_EQ(events.back().event, "response.incomplete");
  expect_round_trip(kResponses, cut);
}

// The events alone tell the output: a stream that breaks off before its last one has it all.
TEST(ResponsesStream, EventsTellTheWholeOutput) {
  EXPECT_TRUE(rc::check("with any texts", [] {
    auto output = every_item();
    const auto text = *test::any_text();
    output[0]["summary"][0]["text"] = text;
    output[1]["content"][1]["text"] = text;
    output[2]["arguments"] = text;
    output[3]["input"] = text;
    const auto answer = response(output);
    auto events = split_answer(kResponses, answer, true);
    events.pop_back();
    RC_ASSERT(nlohmann::json(assemble(kResponses, events, false)["output"]) ==
              nlohmann::json(output));
    // Not even the done events are needed.
    std::vector<SseEvent> deltas;
    for (const auto& event : events) {
      if (!event.event.ends_with(".done")) deltas.push_back(event);
    }
    auto told = assemble(kResponses, deltas, false)["output"];
    for (auto& item : told) {
      if (item.contains("status")) item["status"] = "completed";
    }
    RC_ASSERT(nlohmann::json(told) == nlohmann::json(output));
  }));
}

TEST(ResponsesStream, SplitsInTheOfficialOrder) {
  const auto events = split_answer(kResponses, response(every_item()), true);
  std::string names;
  std::uint64_t sequence = 0;
  for (const auto& event : events) {
    const auto body = Json::parse(event.data);
    EXPECT_EQ(body["type"], event.event);
    EXPECT_EQ(body["sequence_number"], sequence++);
    names += event.event.substr(event.event.find('.') + 1) + " ";
  }
  EXPECT_EQ(names,
            "created in_progress "
            "output_item.added reasoning_summary_part.added reasoning_summary_text.delta "
            "reasoning_summary_text.done reasoning_summary_part.done content_part.added "
            "reasoning_text.delta reasoning_text.done content_part.done output_item.done "
            "output_item.added content_part.added output_text.delta output_text.delta "
            "output_text.done content_part.done "
            "content_part.added output_text.delta output_text.annotation.added output_text.done "
            "content_part.done "
            "content_part.added refusal.delta refusal.done content_part.done "
            "content_part.added content_part.done output_item.done "
            "output_item.added function_call_arguments.delta function_call_arguments.done "
            "output_item.done "
            "output_item.added custom_tool_call_input.delta custom_tool_call_input.done "
            "output_item.done "
            "output_item.added output_item.done completed ");
  const auto created = Json::parse(events[0].data)["response"];
  EXPECT_EQ(created["status"], "in_progress");
  EXPECT_EQ(created["output"], Json::array());
  EXPECT_EQ(created["usage"], nullptr);
  const auto piece = Json::parse(events[14].data);
  EXPECT_EQ(piece["item_id"], "msg_1");
  EXPECT_EQ(piece["output_index"], 1);
  EXPECT_EQ(piece["content_index"], 0);
  EXPECT_EQ(piece["delta"], "a");
  EXPECT_EQ(piece["logprobs"], Json::array({entry("a")}));
}

TEST(ResponsesStream, AssemblesARecordedStream) {
  const std::string created =
      R"({"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[]}})";
  std::vector<std::string> datas = {
      created,
      R"({"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}})",
      R"({"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}})"};
  for (int i = 4; i < 30; ++i) {
    datas.push_back(R"({"type":"response.output_text.delta","sequence_number":)" +
                    std::to_string(i) +
                    R"(,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"x)" +
                    std::to_string(i) + R"(","logprobs":[],"obfuscation":")" +
                    std::string(static_cast<std::size_t>(i % 7), 'o') + R"("})");
  }
  std::string text;
  for (int i = 4; i < 30; ++i) text += "x" + std::to_string(i);
  const auto partial = assemble(kResponses, named(datas), false);
  EXPECT_EQ(partial["id"], "resp_1");
  EXPECT_EQ(partial["output"][0]["content"][0]["text"], text);
  // Some servers leave the output out of the last event.
  datas.push_back(
      R"({"type":"response.completed","sequence_number":40,"response":{"id":"resp_1","status":"completed"}})");
  const auto whole = assemble(kResponses, named(datas));
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], text);
  datas.back() =
      R"({"type":"response.completed","sequence_number":40,"response":{"id":"resp_1","output":[{"type":"message"}],"extra":1}})";
  expect_same(assemble(kResponses, named(datas)),
              {{"id", "resp_1"}, {"output", {{{"type", "message"}}}}, {"extra", 1}});
}

// Without the output in the last event, the items are whole where their own events were.
TEST(ResponsesStream, KnowsWhatItCannotPutTogether) {
  const auto item = [](const char* step) {
    return std::string(R"({"type":"response.output_item.)") + step +
           R"(","output_index":0,"item":{"type":"future"}})";
  };
  const auto delta = R"({"type":"response.future.delta","output_index":0,"delta":"x"})";
  const auto end = [](const char* output) {
    return std::string(R"({"type":"response.completed","response":{"id":"r")") + output + "}}";
  };
  EXPECT_FALSE(is_faithful(kResponses, named({item("added"), delta, end("")})));
  EXPECT_TRUE(is_faithful(kResponses, named({item("added"), delta, item("done"), end("")})));
  EXPECT_TRUE(is_faithful(kResponses,
                          named({item("added"), delta, end(R"(,"output":[{"type":"future"}])")})));
}

TEST(ResponsesStream, KnowsErrors) {
  const auto assembler = make_assembler(kResponses);
  EXPECT_EQ(*assembler->add({"error", "x"}), StreamStep::error);
  EXPECT_EQ(*assembler->add({"", R"({"type":"error","message":"m"})"}), StreamStep::error);
  EXPECT_EQ(*assembler->add({"", R"({"type":"response.failed","response":{"id":"r"}})"}),
            StreamStep::error);
  EXPECT_EQ(*assembler->add({"", R"({"type":"response.future","x":1})"}), StreamStep::more);
  EXPECT_FALSE(assembler->add({"", "[DONE]"}));
  EXPECT_FALSE(assembler->add({"", "[]"}));
  EXPECT_FALSE(assembler->add({"", R"({"type":"response.completed"})"}));
  EXPECT_FALSE(assembler->add(
      {"", R"({"type":"response.output_item.added","output_index":99999,"item":{}})"}));
  EXPECT_FALSE(assembler->add({"", R"({"type":"response.output_item.added","output_index":0})"}));
}

}  // namespace
}  // namespace fixpoint
