// Anthropic's messages.
#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

constexpr std::size_t kArgumentPieces = 4;

bool answers_tool(const json& body) {
  const json messages = body.value("messages", json::array());
  if (messages.empty() || !messages.back().value("content", json()).is_array()) return false;
  for (const json& block : messages.back()["content"]) {
    if (block.value("type", "") == "tool_result") return true;
  }
  return false;
}

std::vector<MockTool> tools_of(const json& body) {
  std::vector<MockTool> tools;
  const json listed = body.value("tools", json());
  const json choice = body.value("tool_choice", json());
  const bool none = choice.is_object() && choice.value("type", "") == "none";
  if (!listed.is_array() || none || answers_tool(body)) return tools;
  for (const json& tool : listed) {
    tools.push_back({tool.value("name", "tool"), tool.value("input_schema", json())});
  }
  return tools;
}

json schema_of(const json& body) {
  const json config = body.value("output_config", json());
  if (!config.is_object()) return nullptr;
  const json format = config.value("format", json());
  return format.is_object() ? format.value("schema", json()) : json();
}

bool thinks(const json& body) {
  const json thinking = body.value("thinking", json());
  return thinking.is_object() && thinking.value("type", "") != "disabled";
}

json usage_of(const MockCall& call, std::size_t output) {
  return {{"input_tokens", call.prompt_tokens()},
          {"output_tokens", output},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", 0},
          {"service_tier", "standard"}};
}

// The blocks of the answer; what a stream says of each comes from here too.
json blocks_of(const MockSpeech& speech) {
  json blocks = json::array();
  if (!speech.reasoning.empty()) {
    blocks.push_back({{"type", "thinking"},
                      {"thinking", speech.reasoning},
                      {"signature", "bW9jayBzaWduYXR1cmU="}});
  }
  if (speech.tools.empty()) blocks.push_back({{"type", "text"}, {"text", speech.content}});
  for (const auto& tool : speech.tools) {
    blocks.push_back({{"type", "tool_use"},
                      {"id", "toolu_" + tool.id},
                      {"name", tool.name},
                      {"input", json::parse(tool.arguments)}});
  }
  return blocks;
}

MockEvent event(const json& data) {
  return {data.at("type").get<std::string>(), data.dump()};
}

void add_block(std::vector<MockEvent>& events, std::size_t index, const json& block) {
  const std::string type = block["type"];
  json start = block;
  std::vector<json> deltas;
  if (type == "text") {
    start["text"] = "";
    for (const auto& token : mock_tokens(block["text"])) {
      deltas.push_back({{"type", "text_delta"}, {"text", token}});
    }
  } else if (type == "thinking") {
    start["thinking"] = "";
    start["signature"] = "";
    for (const auto& token : mock_tokens(block["thinking"])) {
      deltas.push_back({{"type", "thinking_delta"}, {"thinking", token}});
    }
    deltas.push_back({{"type", "signature_delta"}, {"signature", block["signature"]}});
  } else {
    start["input"] = json::object();
    deltas.push_back({{"type", "input_json_delta"}, {"partial_json", ""}});
    for (const auto& piece : mock_pieces(block["input"].dump(), kArgumentPieces)) {
      deltas.push_back({{"type", "input_json_delta"}, {"partial_json", piece}});
    }
  }
  events.push_back(
      event({{"type", "content_block_start"}, {"index", index}, {"content_block", start}}));
  if (index == 0) events.push_back(event({{"type", "ping"}}));
  for (const json& delta : deltas) {
    events.push_back(event({{"type", "content_block_delta"}, {"index", index}, {"delta", delta}}));
  }
  events.push_back(event({{"type", "content_block_stop"}, {"index", index}}));
}

}  // namespace

MockAnswer mock_messages(const MockCall& call) {
  if (!call.body.contains("max_tokens")) {
    return mock_error(MockApi::anthropic, 400, "max_tokens: Field required", "");
  }
  MockSpeech speech = mock_speech(call, tools_of(call.body), schema_of(call.body));
  if (thinks(call.body)) speech.reasoning = "mock reasoning before the answer";
  std::string stop = speech.tools.empty() ? "end_turn" : "tool_use";
  if (call.how.has("length")) stop = "max_tokens";
  if (call.how.has("filter")) stop = "refusal";
  const std::size_t output = speech.tokens().size() + mock_tokens(speech.reasoning).size();
  json message = {{"id", "msg_mock_" + call.number()},
                  {"type", "message"},
                  {"role", "assistant"},
                  {"model", call.model},
                  {"content", blocks_of(speech)},
                  {"stop_reason", stop},
                  {"stop_sequence", nullptr},
                  {"usage", usage_of(call, output)}};
  if (call.how.has("nofinish")) message["stop_reason"] = nullptr;
  if (!call.streams()) {
    MockAnswer answer;
    answer.pieces = {message.dump()};
    apply_behaviour(call, answer);
    return answer;
  }
  const json blocks = message["content"];
  json begun = message;
  begun["content"] = json::array();
  begun["stop_reason"] = nullptr;
  begun["usage"]["output_tokens"] = 1;
  std::vector<MockEvent> events = {event({{"type", "message_start"}, {"message", begun}})};
  for (std::size_t i = 0; i < blocks.size(); ++i) add_block(events, i, blocks[i]);
  if (!call.how.has("nofinish")) {
    events.push_back(event({{"type", "message_delta"},
                            {"delta", {{"stop_reason", stop}, {"stop_sequence", nullptr}}},
                            {"usage", {{"output_tokens", output}}}}));
  }
  const json failure = {
      {"type", "error"},
      {"error", {{"type", "overloaded_error"}, {"message", "the mock failed halfway"}}}};
  return mock_stream(call, events, event(failure), {event({{"type", "message_stop"}})});
}

MockAnswer mock_count_tokens(const MockCall& call) {
  MockAnswer answer;
  answer.pieces = {json({{"input_tokens", call.prompt_tokens()}}).dump()};
  apply_behaviour(call, answer);
  return answer;
}

}  // namespace fixpoint::test
