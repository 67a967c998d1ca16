#include "tests/unit/gateway/dialects/request_support.hpp"

namespace fixpoint {
namespace {

using namespace test;

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

// What SDKs make of an answer and send back.
TEST(TranslateRequest, NullIsAbsent) {
  translated(kChat, kMessages, R"({"audio":null,"messages":[{"role":"user","content":"x"},
      {"role":"assistant","content":"y","refusal":null,"annotations":null,"audio":null,
       "function_call":null,"tool_calls":[{"id":"c","type":"function","new":null,
         "function":{"name":"f","arguments":"{}","new":null}}]},
      {"role":"tool","tool_call_id":"c","content":"z"}]})");
  translated(kMessages, kChat, R"({"max_tokens":5,"container":null,"messages":[
      {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{},
        "caller":null,"toolset_name":null}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"z"}]}]})");
  translated(kResponses, kChat, R"({"context_management":null,"input":[
      {"type":"function_call","call_id":"c","name":"f","arguments":"{}","async":null,
       "namespace":null},
      {"role":"user","content":[{"type":"input_image","image_url":"https://x","file_id":null}]}]})");
}

// Anthropic goes on with a last message of the assistant, OpenAI begins a new one after it.
TEST(TranslateRequest, NoPrefill) {
  const auto ends_with = [](Endpoint from, Endpoint to, const char* turns) {
    return refused(from, to,
                   Json::parse(std::string(R"({"max_tokens":5,"messages":[)") + turns + "]}"));
  };
  const auto prefill = R"({"role":"user","content":"a"},{"role":"assistant","content":"{"})";
  EXPECT_EQ(ends_with(kMessages, kChat, prefill), "messages[1].role");
  EXPECT_EQ(ends_with(kChat, kMessages, prefill), "messages[1].role");
  EXPECT_EQ(ends_with(kChat, kMessages, R"({"role":"user","content":"a"},
      {"role":"assistant","content":"{"},{"role":"system","content":"s"})"),
            "messages[1].role");
  EXPECT_EQ(refused(kResponses, kMessages, Json::parse(R"({"input":[
      {"role":"user","content":"a"},{"role":"assistant","content":"{"}]})")),
            "input");
  EXPECT_EQ(refused(kResponses, kChat, Json::parse(R"({"input":[
      {"role":"user","content":"a"},{"role":"assistant","content":"{"}]})")),
            "");
}

// metadata.fixpoint_repro is for this gateway.
TEST(TranslateRequest, DirectivesGoNowhere) {
  const auto message = translated(kMessages, kChat, R"({"max_tokens":5,"messages":[],
      "metadata":{"user_id":"u","fixpoint_repro":"off"}})");
  expect_same(message, R"({"max_completion_tokens":5,"messages":[],"user":"u"})");
  const auto chat = translated(kChat, kMessages, R"({"max_tokens":5,"messages":[],
      "metadata":{"fixpoint_repro":"off"}})");
  expect_same(chat, R"({"max_tokens":5,"messages":[]})");
  translated(kChat, kMessages, R"({"messages":[],"metadata":{"a":"b","fixpoint_repro":"off"}})",
             {"metadata"});
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
      {"role":"assistant","content":"Well."},
      {"role":"user","content":"And now?"}],
    "tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},
             {"type":"custom","name":"g","strict":true,
              "input_schema":{"type":"object","additionalProperties":false}}],
    "tool_choice":{"type":"any","disable_parallel_tool_use":true},
    "thinking":{"type":"disabled"},"thread":{"type":"create"},
    "output_config":{"format":{"type":"json_schema","schema":{"type":"object",
      "properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}})",
                               {"thread", "system[].cache_control", "messages[].content[]",
                                "messages[].content[].is_error"});
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
      {"role":"assistant","content":"Well."},
      {"role":"user","content":"And now?"}],
    "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},
             {"type":"function","function":{"name":"g","strict":true,
              "parameters":{"type":"object","additionalProperties":false}}}],
    "tool_choice":"required","parallel_tool_calls":false,
    "response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{
      "type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}})");
}

// OpenAI's strict schemas close every object and require all of its properties.
TEST(MessagesToChat, StrictWhereOpenaiTakesIt) {
  const auto strict = [](const std::string& schema, bool expected) {
    const auto body = translated(
        kMessages, kChat,
        R"({"max_tokens":5,"messages":[],"tools":[{"name":"f","strict":true,"input_schema":)" +
            schema + R"(}],"output_config":{"format":{"type":"json_schema","schema":)" + schema +
            "}}}",
        expected ? std::vector<std::string>{}
                 : std::vector<std::string>{"tools[].strict", "output_config.format.strict"});
    EXPECT_EQ(body["response_format"]["json_schema"]["strict"], expected) << schema;
    EXPECT_EQ(body["tools"][0]["function"].value("strict", false), expected) << schema;
  };
  const auto object = [](const std::string& property) {
    return R"({"type":"object","properties":{"a":)" + property +
           R"(},"required":["a"],"additionalProperties":false})";
  };
  const auto optional = R"({"type":"object","properties":{"b":{"type":"string"}},
                            "additionalProperties":false})";
  const auto open = R"({"type":["object","null"],"properties":{}})";
  strict(object(R"({"type":"string","format":"date"})"), true);
  strict(object(object(R"({"anyOf":[{"type":"string"},{"type":"null"}]})")), true);
  strict(object(R"({"$ref":"#/$defs/x"})"), true);
  for (const std::string inner :
       {optional, open, R"({"type":"string","format":"uri"})", R"({"type":"string","default":"x"})",
        R"({"allOf":[]})", R"({"$ref":"#/$defs/x","description":"d"})"}) {
    strict(object(inner), false);
    strict(object(R"({"type":"array","items":)" + inner + "}"), false);
    strict(object(R"({"anyOf":[{"type":"null"},)" + inner + "]}"), false);
    strict(R"({"type":"object","additionalProperties":false,"$defs":{"x":)" + inner + "}}", false);
  }
  strict(optional, false);
}

// Anthropic's SDKs send all turns again when a thread is not found.
TEST(MessagesToChat, ThreadsThatGoOnAreNotFound) {
  const auto continued = translate_request(kMessages, kChat, Json::parse(R"({"max_tokens":5,
      "thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":[
        {"type":"tool_result","tool_use_id":"c","content":"x"}]}],"new":1})"));
  ASSERT_FALSE(continued);
  EXPECT_EQ(continued.error().param, "thread");
  EXPECT_EQ(continued.error().code, "thread_not_found");
  const auto other = translate_request(kMessages, kChat, Json::parse(R"({"max_tokens":5,
      "messages":[],"thread":{"type":"fork"}})"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().param, "thread.type");
  EXPECT_EQ(other.error().code, "unsupported_parameter");
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

TEST(MessagesToChat, EmptyContents) {
  const auto body = translated(kMessages, kChat, R"({"max_tokens":5,"system":[],"messages":[
      {"role":"user","content":[]},{"role":"assistant","content":[]},
      {"role":"user","content":"x"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]},
      {"role":"user","content":"y"},
      {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[]}]}]})",
                               {"messages[].content[]"});
  expect_same(body["messages"], R"([{"role":"user","content":""},{"role":"assistant","content":""},
      {"role":"user","content":"x"},{"role":"assistant","content":""},{"role":"user","content":"y"},
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c","content":""}])");
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
      {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Calling","annotations":[],"parsed":{"a":1}}]},
      {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}","status":"completed","parsed_arguments":{"a":1}},
      {"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"one"},
      {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"two"}]},
      {"role":"user","content":"Go on"}],
    "tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}],
    "tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":true})",
                               {"input[]", "reasoning.summary", "store", "truncation"});
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
  const auto reference = translate_request(
      kResponses, kChat, Json::parse(R"({"input":[{"type":"item_reference","id":"x"}]})"));
  ASSERT_FALSE(reference);  // says what to do
  EXPECT_NE(reference.error().message.find("\"store\": false"), std::string::npos);
  EXPECT_EQ(refuses("input", {{{"role", "user"}, {"content", {{{"type", "input_file"}}}}}}),
            "input[0].content[0].type");
  EXPECT_EQ(refuses("input", nullptr), "input");
  EXPECT_EQ(refuses("text", {{"format", {{"type", "grammar"}}}}), "text.format.type");
}

TEST(TranslateRequest, ErrorsNameWhatTheClientWrote) {
  const auto named = [](Endpoint client, std::string member, std::string message) {
    name_client_member(client, member, message);
    return member + ": " + message;
  };
  EXPECT_EQ(named(kResponses, "max_completion_tokens", "'max_completion_tokens' must be 1"),
            "max_output_tokens: 'max_output_tokens' must be 1");
  EXPECT_EQ(named(kMessages, "max_completion_tokens", "'max_completion_tokens' must be 1"),
            "max_tokens: 'max_tokens' must be 1");
  EXPECT_EQ(named(kResponses, "reasoning_effort", "'reasoning_effort' is not"),
            "reasoning.effort: 'reasoning.effort' is not");
  EXPECT_EQ(named(kMessages, "stop", "stop has 17 strings"),
            "stop_sequences: stop_sequences has 17 strings");
  EXPECT_EQ(named(kResponses, "messages[1]", "'messages[1].content': text only"),
            "input: 'input': text only");
  EXPECT_EQ(named(kMessages, "messages[1].tool_call_id", "'messages[1].tool_call_id': no"),
            "messages: 'messages': no");
  EXPECT_EQ(named(kMessages, "", "The request is not"), ": The request is not");
}

TEST(ResponsesToMessages, GoesByWayOfChat) {
  const auto body =
      translated(kResponses, kMessages, R"({"model":"m","instructions":"s","input":"hi",
      "max_output_tokens":9,"stream":true,"reasoning":{"effort":"high"},
      "text":{"format":{"type":"json_schema","name":"n",
        "schema":{"type":"object","properties":{}}}}})",
                 {"text.format.name", "reasoning.effort"});
  expect_same(
      body, R"({"model":"m","system":"s","messages":[{"role":"user","content":"hi"}],"max_tokens":9,
      "stream":true,"output_config":{"format":{"type":"json_schema","schema":{
        "type":"object","properties":{},"additionalProperties":false}}}})");
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
