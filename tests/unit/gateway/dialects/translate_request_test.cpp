#include "gateway/dialects/translate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fixpoint {
namespace {

constexpr auto kChat = Endpoint::chat_completions;
constexpr auto kMessages = Endpoint::messages;
constexpr auto kResponses = Endpoint::responses;

Json translated(Endpoint from, Endpoint to, const std::string& json,
                std::vector<std::string> dropped = {}) {
  const auto result = translate_request(from, to, Json::parse(json));
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  if (!result) return {};
  EXPECT_EQ(result->dropped, dropped);
  return result->body;
}

// The member that the request is refused for; empty: it is not.
std::string refused(Endpoint from, Endpoint to, const Json& body) {
  const auto result = translate_request(from, to, body);
  if (result) return {};
  EXPECT_NE(result.error().message.find("'" + result.error().param + "'"), std::string::npos)
      << result.error().message;
  return result.error().param;
}

void expect_same(const Json& actual, const std::string& expected) {
  EXPECT_EQ(nlohmann::json(actual), nlohmann::json::parse(expected)) << actual.dump(1);
}

TEST(TranslateRequest, KnowsItsPairs) {
  EXPECT_TRUE(can_translate(kChat, kMessages));
  EXPECT_TRUE(can_translate(kMessages, kChat));
  EXPECT_TRUE(can_translate(kResponses, kChat));
  EXPECT_TRUE(can_translate(kResponses, kMessages));
  EXPECT_FALSE(can_translate(kChat, kResponses));
  EXPECT_FALSE(can_translate(kMessages, kResponses));
  EXPECT_FALSE(can_translate(Endpoint::count_tokens, kChat));
  EXPECT_FALSE(can_translate(Endpoint::completions, kChat));
}

TEST(ChatToMessages, AConversationWithToolsAndImages) {
  const auto body = translated(kChat, kMessages, R"({
    "model":"claude-x","max_completion_tokens":50,"temperature":0.5,"top_p":0.9,"top_k":3,"stop":"END",
    "stream":true,"stream_options":{"include_usage":true},"user":"u1","parallel_tool_calls":false,
    "messages":[
      {"role":"system","content":"Be brief."},
      {"role":"user","content":[{"type":"text","text":"What is this?"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
        {"type":"image_url","image_url":{"url":"https://x/y.png","detail":"auto"}}]},
      {"role":"assistant","content":null,"refusal":null,"tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},
        {"id":"c2","type":"function","function":{"name":"g","arguments":""}}]},
      {"role":"tool","tool_call_id":"c1","content":"one"},
      {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},
      {"role":"assistant","content":"Well."},
      {"role":"user","content":"Go on"}],
    "tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,
       "parameters":{"type":"object","properties":{"a":{"type":"integer","minimum":-9007199254740991}}}}},
      {"type":"function","function":{"name":"g"}}],
    "tool_choice":"required",
    "n":1,"logprobs":false,"presence_penalty":0,"logit_bias":{},"store":false,"modalities":["text"],
    "response_format":{"type":"text"}})");
  expect_same(body, R"({
    "model":"claude-x","max_tokens":50,"temperature":0.5,"top_p":0.9,"top_k":3,"stop_sequences":["END"],
    "stream":true,"metadata":{"user_id":"u1"},"system":"Be brief.",
    "messages":[
      {"role":"user","content":[{"type":"text","text":"What is this?"},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
        {"type":"image","source":{"type":"url","url":"https://x/y.png"}}]},
      {"role":"assistant","content":[
        {"type":"tool_use","id":"c1","name":"f","input":{"a":1}},
        {"type":"tool_use","id":"c2","name":"g","input":{}}]},
      {"role":"user","content":[
        {"type":"tool_result","tool_use_id":"c1","content":"one"},
        {"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"two"}]}]},
      {"role":"assistant","content":"Well."},
      {"role":"user","content":"Go on"}],
    "tools":[{"name":"f","description":"d","strict":true,
       "input_schema":{"type":"object","properties":{"a":{"type":"integer","minimum":-9007199254740991}}}},
      {"name":"g","input_schema":{"type":"object","properties":{}}}],
    "tool_choice":{"type":"any","disable_parallel_tool_use":true}})");
}

TEST(ChatToMessages, SystemTurns) {
  const auto body = translated(kChat, kMessages, R"({"messages":[
      {"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"user","content":"hi"},{"role":"system","content":"c"}]})",
                               {"messages[2].role"});
  expect_same(body["system"], R"([{"type":"text","text":"a"},{"type":"text","text":"b"},
                                  {"type":"text","text":"c"}])");
  EXPECT_EQ(body["messages"].size(), 1u);
  EXPECT_EQ(body["max_tokens"], 4096);
}

TEST(ChatToMessages, ToolChoices) {
  const auto choice = [](const std::string& json) {
    return translated(kChat, kMessages,
                      R"({"messages":[],"tools":[{"type":"function","function":{"name":"f"}}],)" +
                          json + "}")
        .value("tool_choice", Json());
  };
  expect_same(choice(R"("tool_choice":"auto")"), R"({"type":"auto"})");
  expect_same(choice(R"("tool_choice":"none","parallel_tool_calls":false)"), R"({"type":"none"})");
  expect_same(choice(R"("tool_choice":{"type":"function","function":{"name":"f"}})"),
              R"({"type":"tool","name":"f"})");
  expect_same(choice(R"("parallel_tool_calls":false)"),
              R"({"type":"auto","disable_parallel_tool_use":true})");
  EXPECT_EQ(choice(R"("parallel_tool_calls":true)"), nullptr);
  // Without tools there is nothing to choose from.
  const auto none = translated(
      kChat, kMessages, R"({"messages":[],"tool_choice":"auto","parallel_tool_calls":false})");
  EXPECT_FALSE(none.contains("tool_choice"));
}

TEST(ChatToMessages, StructuredOutputs) {
  const auto body = translated(kChat, kMessages, R"({"messages":[],"response_format":{
      "type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}})",
                               {"response_format.json_schema.name"});
  expect_same(body["output_config"],
              R"({"format":{"type":"json_schema","schema":{"type":"object"}}})");
}

TEST(ChatToMessages, AnnouncesWhatItLeavesOut) {
  translated(kChat, kMessages, R"({"messages":[{"role":"user","name":"bob","content":"x"}],
     "seed":1,"metadata":{"a":"b"},"store":true,"service_tier":"auto","reasoning_effort":"low",
     "prompt_cache_key":"k","stop":[],"verbosity":"medium","stream_options":{"include_obfuscation":true}})",
             {"messages[0].name", "stream_options.include_obfuscation", "store", "metadata", "seed",
              "service_tier", "prompt_cache_key", "reasoning_effort"});
}

TEST(ChatToMessages, RefusesByName) {
  const auto refuses = [](const char* name, Json value) {
    Json body = {{"messages", Json::array({{{"role", "user"}, {"content", "x"}}})}};
    body[name] = std::move(value);
    return refused(kChat, kMessages, body);
  };
  EXPECT_EQ(refuses("temperature", 1.1), "temperature");
  EXPECT_EQ(refuses("n", 2), "n");
  EXPECT_EQ(refuses("logprobs", true), "logprobs");
  EXPECT_EQ(refuses("top_logprobs", 3), "top_logprobs");
  EXPECT_EQ(refuses("logit_bias", {{"1", 2}}), "logit_bias");
  EXPECT_EQ(refuses("frequency_penalty", 0.1), "frequency_penalty");
  EXPECT_EQ(refuses("functions", {{{"name", "f"}}}), "functions");
  EXPECT_EQ(refuses("modalities", {"audio"}), "modalities");
  EXPECT_EQ(refuses("web_search_options", Json::object()), "web_search_options");
  EXPECT_EQ(refuses("something_new", 1), "something_new");
  EXPECT_EQ(refuses("verbosity", "low"), "verbosity");
  EXPECT_EQ(refuses("tool_choice", "required"), "tool_choice");
  EXPECT_EQ(refuses("tools", {{{"type", "custom"}, {"custom", Json::object()}}}), "tools[0].type");
  EXPECT_EQ(refuses("response_format", {{"type", "json_object"}}), "response_format.type");
  EXPECT_EQ(refuses("stream_options", {{"x", 1}}), "stream_options.x");
  EXPECT_EQ(refuses("max_tokens", "5"), "max_tokens");
  EXPECT_EQ(refuses("messages", 5), "messages");
  const auto turn = [](const char* json) {
    return refused(kChat, kMessages, {{"messages", Json::array({Json::parse(json)})}});
  };
  EXPECT_EQ(turn("1"), "messages[0]");
  EXPECT_EQ(turn(R"({"role":"critic","content":"x"})"), "messages[0].role");
  EXPECT_EQ(turn(R"({"role":"user"})"), "messages[0].content");
  EXPECT_EQ(turn(R"({"role":"user","content":"x","x":1})"), "messages[0].x");
  EXPECT_EQ(turn(R"({"role":"user","content":[{"type":"input_audio","input_audio":{}}]})"),
            "messages[0].content[0].type");
  EXPECT_EQ(
      turn(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"ftp://x"}}]})"),
      "messages[0].content[0].image_url.url");
  EXPECT_EQ(
      turn(
          R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,xx"}}]})"),
      "messages[0].content[0].image_url.url");
  EXPECT_EQ(
      turn(
          R"({"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]})"),
      "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(turn(R"({"role":"tool","content":"x"})"), "messages[0].tool_call_id");
  EXPECT_EQ(refused(kChat, kMessages, Json("x")), "body");
  EXPECT_EQ(refused(kChat, kMessages, Json::object()), "messages");
}

TEST(MessagesToChat, AConversationWithToolsAndImages) {
  const auto body = translated(kMessages, kChat, R"({
    "model":"m","max_tokens":50,"temperature":0.5,"top_p":0.9,"top_k":5,"stop_sequences":["END"],"stream":true,
    "metadata":{"user_id":"u1"},"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
    "messages":[
      {"role":"user","content":[{"type":"text","text":"What is this?"},
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
        {"type":"image","source":{"type":"url","url":"https://x/y.png"}}]},
      {"role":"assistant","content":[
        {"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"text","text":"Calling."},
        {"type":"tool_use","id":"c1","name":"f","input":{"a":1}}]},
      {"role":"user","content":[
        {"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"bad"}]},
        {"type":"text","text":"Go on"}]},
      {"role":"assistant","content":"Well."}],
    "tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},
             {"type":"custom","name":"g","input_schema":{"type":"object"},"strict":true}],
    "tool_choice":{"type":"any","disable_parallel_tool_use":true},
    "thinking":{"type":"disabled"},"thread":{"type":"create"},
    "output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}})",
                               {"system[0].cache_control", "messages[1].content[0]",
                                "messages[2].content[0].is_error", "thread"});
  expect_same(body, R"({
    "model":"m","max_completion_tokens":50,"temperature":0.5,"top_p":0.9,"top_k":5,"stop":["END"],"stream":true,
    "stream_options":{"include_usage":true},"user":"u1",
    "messages":[
      {"role":"system","content":"Be brief."},
      {"role":"user","content":[{"type":"text","text":"What is this?"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
        {"type":"image_url","image_url":{"url":"https://x/y.png"}}]},
      {"role":"assistant","content":"Calling.","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"bad"},
      {"role":"user","content":"Go on"},
      {"role":"assistant","content":"Well."}],
    "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},
             {"type":"function","function":{"name":"g","parameters":{"type":"object"},"strict":true}}],
    "tool_choice":"required","parallel_tool_calls":false,
    "response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object"}}}})");
}

TEST(MessagesToChat, RefusesByName) {
  const auto refuses = [](const char* name, Json value) {
    Json body = {{"max_tokens", 5}, {"messages", Json::array()}};
    body[name] = std::move(value);
    return refused(kMessages, kChat, body);
  };
  EXPECT_EQ(refuses("container", "c"), "container");
  EXPECT_EQ(refuses("mcp_servers", Json::array()), "mcp_servers");
  EXPECT_EQ(refuses("inference_geo", "eu"), "inference_geo");
  EXPECT_EQ(refuses("something_new", 1), "something_new");
  EXPECT_EQ(refuses("thread", {{"type", "continue"}}), "thread");
  EXPECT_EQ(refuses("max_tokens", nullptr), "max_tokens");
  EXPECT_EQ(refuses("tools", {{{"type", "web_search_20250305"}, {"name", "web_search"}}}),
            "tools[0].type");
  EXPECT_EQ(refuses("tool_choice", {{"type", "maybe"}}), "tool_choice.type");
  const auto block = [](const char* json) {
    Json turn = {{"role", "user"}, {"content", Json::array({Json::parse(json)})}};
    return refused(kMessages, kChat,
                   {{"max_tokens", 5}, {"messages", Json::array({std::move(turn)})}});
  };
  EXPECT_EQ(block(R"({"type":"document","source":{}})"), "messages[0].content[0].type");
  EXPECT_EQ(block(R"({"type":"image","source":{"type":"file","file_id":"f"}})"),
            "messages[0].content[0].source.type");
  EXPECT_EQ(block(R"({"type":"text","text":"x","new":1})"), "messages[0].content[0].new");
  EXPECT_EQ(block(R"({"type":"tool_result","tool_use_id":"c","content":[{"type":"image"}]})"),
            "messages[0].content[0].content[0].type");
}

TEST(MessagesToChat, ToolResultsComeFirst) {
  EXPECT_EQ(refused(kMessages, kChat,
                    Json::parse(R"({"max_tokens":5,"messages":[{"role":"user","content":[
      {"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c","content":"y"}]}]})")),
            "messages[0].content[1]");
}

TEST(MessagesToChat, AnnouncesWhatItLeavesOut) {
  translated(kMessages, kChat,
             R"({"max_tokens":5,"messages":[],"thinking":{"type":"enabled","budget_tokens":9},
      "output_config":{"effort":"low"},"service_tier":"auto","cache_control":{"type":"ephemeral"}})",
             {"output_config.effort", "thinking", "cache_control", "service_tier"});
}

// There and back again: what both APIs can say comes back as it was.
TEST(TranslateRequest, ChatSurvivesTheWayToMessagesAndBack) {
  const auto chat = Json::parse(R"({"model":"m","max_completion_tokens":5,"temperature":1,
    "messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},
      {"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":[1,null]}"}}]},
      {"role":"tool","tool_call_id":"c","content":"r"}],
    "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
    "tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false,"stop":["x"],"user":"u"})");
  const auto there = translate_request(kChat, kMessages, chat);
  ASSERT_TRUE(there);
  const auto back = translate_request(kMessages, kChat, there->body);
  ASSERT_TRUE(back);
  EXPECT_EQ(nlohmann::json(back->body), nlohmann::json(chat)) << back->body.dump(1);
}

TEST(ResponsesToChat, AConversation) {
  const auto body = translated(kResponses, kChat, R"({
    "model":"m","instructions":"Be brief.","max_output_tokens":50,"temperature":0.5,"stream":true,
    "store":true,"metadata":{"a":"b"},"truncation":"auto","include":["message.output_text.logprobs"],"top_logprobs":2,
    "reasoning":{"effort":"low","summary":"auto"},"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}},
    "input":[
      {"role":"user","content":[{"type":"input_text","text":"Look"},{"type":"input_image","image_url":"https://x","detail":"low"}]},
      {"type":"reasoning","id":"rs_1","summary":[]},
      {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Calling","annotations":[]}]},
      {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed"},
      {"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"one"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"two"}]},
      {"role":"user","content":"Go on"}],
    "tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}],
    "tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":true})",
                               {"input[1]", "reasoning.summary", "store", "truncation"});
  expect_same(body, R"({
    "model":"m","max_completion_tokens":50,"temperature":0.5,"stream":true,"stream_options":{"include_usage":true},
    "logprobs":true,"top_logprobs":2,"reasoning_effort":"low",
    "response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}},
    "messages":[
      {"role":"system","content":"Be brief."},
      {"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"https://x","detail":"low"}}]},
      {"role":"assistant","content":"Calling","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},
        {"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"one"},
      {"role":"tool","tool_call_id":"c2","content":"two"},
      {"role":"user","content":"Go on"}],
    "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}],
    "tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true})");
}

TEST(ResponsesToChat, RefusesByName) {
  const auto refuses = [](const char* name, Json value) {
    Json body = {{"input", "x"}};
    body[name] = std::move(value);
    return refused(kResponses, kChat, body);
  };
  EXPECT_EQ(refuses("previous_response_id", "resp_1"), "previous_response_id");
  EXPECT_EQ(refuses("conversation", "conv_1"), "conversation");
  EXPECT_EQ(refuses("background", true), "background");
  EXPECT_EQ(refuses("prompt", {{"id", "p"}}), "prompt");
  EXPECT_EQ(refuses("something_new", 1), "something_new");
  EXPECT_EQ(refuses("tools", {{{"type", "web_search"}}}), "tools[0].type");
  EXPECT_EQ(refuses("tool_choice", {{"type", "mcp"}}), "tool_choice");
  EXPECT_EQ(refuses("include", {"file_search_call.results"}), "include[0]");
  EXPECT_EQ(refuses("input", {{{"type", "item_reference"}, {"id", "x"}}}), "input[0].type");
  EXPECT_EQ(refuses("input", {{{"role", "user"}, {"content", {{{"type", "input_file"}}}}}}),
            "input[0].content[0].type");
  EXPECT_EQ(refuses("input", nullptr), "input");
  EXPECT_EQ(refuses("text", {{"format", {{"type", "grammar"}}}}), "text.format.type");
}

TEST(ResponsesToMessages, GoesByWayOfChat) {
  const auto body =
      translated(kResponses, kMessages, R"({"model":"m","instructions":"s","input":"hi",
      "max_output_tokens":9,"stream":true,"reasoning":{"effort":"high"},
      "text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}})",
                 {"text.format.name", "reasoning.effort"});
  expect_same(
      body, R"({"model":"m","system":"s","messages":[{"role":"user","content":"hi"}],"max_tokens":9,
      "stream":true,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}})");
  EXPECT_EQ(refused(kResponses, kMessages,
                    Json::parse(R"({"input":"x","include":["message.output_text.logprobs"]})")),
            "include");
  EXPECT_EQ(refused(kResponses, kMessages, Json::parse(R"({"input":"x","temperature":2})")),
            "temperature");
  EXPECT_EQ(refused(kResponses, kMessages,
                    Json::parse(R"({"input":"x","text":{"format":{"type":"json_object"}}})")),
            "text.format.type");
}

}  // namespace
}  // namespace fixpoint
