#include "tests/unit/gateway/dialects/request_support.hpp"

namespace fixpoint {
namespace {

using namespace test;

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
    "response_format":{"type":"text"}})",
                               {"tools[].function.parameters.minimum"});
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
       "input_schema":{"type":"object","additionalProperties":false,"properties":{
         "a":{"type":"integer","description":"{minimum: -9007199254740991}"}}}},
      {"name":"g","input_schema":{"type":"object","properties":{}}}],
    "tool_choice":{"type":"any","disable_parallel_tool_use":true}})");
}

// What OpenAI's SDKs add to an answer, which goes into the next request.
TEST(ChatToMessages, WhatSdksAddToTurnsOfTheAssistant) {
  const auto turns = [](const std::string& members) {
    return R"({"messages":[{"role":"user","content":"x"},{"role":"assistant",)" + members +
           R"(},{"role":"tool","tool_call_id":"c","content":"z"}]})";
  };
  const auto body = translated(kChat, kMessages, turns(R"(
      "content":[{"type":"text","text":"y","role":"assistant","annotations":[],"refusal":"",
        "parsed":{"a":1}}],"parsed":{"a":1},"tool_calls":[{"index":0,"id":"c","type":"function",
        "function":{"name":"f","arguments":"{\"a\":1}","parsed_arguments":{"a":1}}}])"));
  expect_same(body["messages"][1]["content"], R"([{"type":"text","text":"y"},
      {"type":"tool_use","id":"c","name":"f","input":{"a":1}}])");
  translated(
      kChat, kMessages,
      turns(R"("content":[{"type":"text","text":"y","annotations":[{"type":"url_citation"}]}])"),
      {"messages[].content[].annotations"});
  EXPECT_EQ(refused(kChat, kMessages,
                    Json::parse(turns(R"("content":[{"type":"text","text":"y","refusal":"no"}])"))),
            "messages[1].content[0].refusal");
  EXPECT_EQ(refused(kChat, kMessages, Json::parse(R"({"messages":[
      {"role":"user","content":[{"type":"text","text":"y","parsed":1}]}]})")),
            "messages[0].content[0].parsed");
}

TEST(ChatToMessages, SystemTurns) {
  const auto body = translated(kChat, kMessages, R"({"messages":[
      {"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"user","content":"hi"},{"role":"system","content":"c"}]})",
                               {"messages[].role"});
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
      "type":"json_schema","json_schema":{"name":"n","strict":true,
      "schema":{"type":"object","properties":{}}}}})",
                               {"response_format.json_schema.name"});
  expect_same(body["output_config"],
              R"({"format":{"type":"json_schema","schema":{
                "type":"object","properties":{},"additionalProperties":false}}})");
}

// Anthropic refuses keywords that OpenAI takes: they become words.
TEST(ChatToMessages, SchemasAsAnthropicTakesThem) {
  const auto schema = [](const std::string& given, std::vector<std::string> dropped) {
    for (auto& name : dropped) name = "response_format.json_schema.schema" + name;
    const auto body = translated(kChat, kMessages,
                                 R"({"messages":[],"response_format":{"type":"json_schema",
                                 "json_schema":{"schema":)" +
                                     given + "}}}",
                                 dropped);
    return body["output_config"]["format"]["schema"];
  };
  expect_same(schema(R"({"$schema":"https://json-schema.org/x","type":"object","properties":{
        "minimum":{"type":"integer","minimum":1,"maximum":9,"description":"How many."},
        "s":{"type":["string","null"],"format":"uri","maxLength":3},
        "f":{"type":"string","format":"regex"},
        "e":{"type":"string","enum":["a",null],"default":"a"},
        "l":{"type":"array","minItems":1,"items":{"type":"array","minItems":2,"items":{"$ref":"#/$defs/o"}}},
        "u":{"oneOf":[{"$ref":"#/$defs/o","description":"d"},{"type":"null"}]}},
      "required":["s"],"additionalProperties":false,
      "$defs":{"o":{"properties":{"x":{"type":"boolean"}},"additionalProperties":true}}})",
                     {".minimum", ".maximum", ".maxLength", ".format", ".default", ".minItems",
                      ".oneOf", ".description", ".additionalProperties"}),
              R"({"type":"object","properties":{
        "minimum":{"type":"integer","description":"How many.\n\n{minimum: 1, maximum: 9}"},
        "s":{"type":["string","null"],"format":"uri","description":"{maxLength: 3}"},
        "f":{"type":"string","description":"{format: \"regex\"}"},
        "e":{"type":"string","enum":["a",null],"description":"{default: \"a\"}"},
        "l":{"type":"array","minItems":1,"items":{"type":"array","items":{"$ref":"#/$defs/o"},
          "description":"{minItems: 2}"}},
        "u":{"anyOf":[{"$ref":"#/$defs/o"},{"type":"null"}]}},
      "required":["s"],"additionalProperties":false,
      "$defs":{"o":{"type":"object","properties":{"x":{"type":"boolean"}},
        "description":"{additionalProperties: true}","additionalProperties":false}}})");
  // Keywords of any name are announced as the schema.
  expect_same(schema(R"({"type":"string","x-a":1,"x-b":[2]})", {""}),
              R"({"type":"string","description":"{x-a: 1, x-b: [2]}"})");
  expect_same(
      schema(R"({"allOf":[{"type":"object"},true],"anyOf":[{"type":"null"}]})", {".allOf"}),
      R"({"anyOf":[{"type":"null"}],"description":"{allOf: [{\"type\":\"object\"},true]}"})");
}

// Closed, a map could only be empty.
TEST(ChatToMessages, RefusesMapsInSchemas) {
  for (const char* map :
       {R"({"type":"object"})", R"({"type":"object","additionalProperties":true})",
        R"({"type":"object","properties":{},"additionalProperties":{"type":"integer"}})"}) {
    for (const std::string& schema :
         {std::string(map),
          R"({"type":"object","properties":{"scores":)" + std::string(map) + "}}"}) {
      const auto body = Json::parse(R"({"messages":[],"response_format":{"type":"json_schema",
                                        "json_schema":{"schema":)" +
                                    schema + "}}}");
      EXPECT_EQ(refused(kChat, kMessages, body), "response_format.json_schema.schema") << schema;
    }
  }
}

TEST(ChatToMessages, AnnouncesWhatItLeavesOut) {
  translated(kChat, kMessages, R"({"messages":[{"role":"user","name":"bob","content":"x"}],
     "seed":1,"metadata":{"a":"b"},"store":true,"service_tier":"auto","reasoning_effort":"low",
     "prompt_cache_key":"k","stop":[],"verbosity":"medium","stream_options":{"include_obfuscation":true}})",
             {"messages[].name", "stream_options.include_obfuscation", "store", "metadata", "seed",
              "service_tier", "prompt_cache_key", "reasoning_effort"});
}

// However long a conversation is, it names a member once.
TEST(ChatToMessages, AnnouncesAMemberOfManyTurnsOnce) {
  const auto turns = R"("messages":[{"role":"user","name":"a","content":"x"},
      {"role":"assistant","content":"y","annotations":[{"type":"url_citation"}]},
      {"role":"user","name":"b","content":"x"},
      {"role":"assistant","content":"y","annotations":[]},{"role":"user","content":"x"}])";
  translated(kChat, kMessages, std::string("{") + turns + "}",
             {"messages[].name", "messages[].annotations"});
  translated(kChat, kMessages,
             R"({"messages":[{"role":"assistant","content":"y","annotations":[]},
                             {"role":"user","content":"x"}],"metadata":{}})");
  const auto input = R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"},
      {"type":"input_image","image_url":"https://x/y.png","detail":"low"}]},
      {"role":"system","content":"s"}]})";
  translated(kResponses, kMessages, input, {"input"});
}

TEST(ChatToMessages, NoEmptyTexts) {
  const auto turn = [](const std::string& json) {
    const auto body = R"({"messages":[)" + json + R"(,{"role":"user","content":"x"}]})";
    return translated(kChat, kMessages, body)["messages"][0]["content"];
  };
  const std::string calls =
      R"("tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"null"}}])";
  const auto call = R"([{"type":"tool_use","id":"c","name":"f","input":{}}])";
  const auto empty = R"("content":[{"type":"text","text":""}],)";
  expect_same(turn(R"({"role":"assistant","content":"",)" + calls + "}"), call);
  expect_same(turn(R"({"role":"assistant",)" + (empty + calls) + "}"), call);
  expect_same(turn(R"({"role":"assistant","refusal":"",)" + calls + "}"), call);
  expect_same(turn(R"({"role":"assistant","content":"y","refusal":""})"), R"("y")");
  expect_same(turn(R"({"role":"user","content":[{"type":"text","text":""},
                       {"type":"image_url","image_url":{"url":"https://x"}}]})"),
              R"([{"type":"image","source":{"type":"url","url":"https://x"}}])");
  const auto systems = translated(kChat, kMessages, R"({"messages":[{"role":"system","content":""},
      {"role":"developer","content":"d"},{"role":"user","content":"x"}]})");
  EXPECT_EQ(systems["system"], "d");
}

TEST(ChatToMessages, AToolWithoutParameters) {
  const auto body = translated(kChat, kMessages, R"({"messages":[],"tools":[
      {"type":"function","function":{"name":"f","parameters":{}}}]})");
  expect_same(body["tools"][0]["input_schema"], R"({"type":"object","properties":{}})");
}

TEST(ChatToMessages, CacheHintsPass) {
  const auto body = translated(kChat, kMessages, R"({"messages":[
      {"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},
      {"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},
        {"type":"image_url","image_url":{"url":"https://x"},"cache_control":{"type":"ephemeral"}}]}],
      "tools":[{"type":"function","function":{"name":"f"},"cache_control":{"type":"ephemeral"}}]})");
  const Json hint = {{"type", "ephemeral"}};
  EXPECT_EQ(body["system"][0]["cache_control"], hint);
  EXPECT_EQ(body["messages"][0]["content"][0]["cache_control"], hint);
  EXPECT_EQ(body["messages"][0]["content"][1]["cache_control"], hint);
  EXPECT_EQ(body["tools"][0]["cache_control"], hint);
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

}  // namespace
}  // namespace fixpoint
