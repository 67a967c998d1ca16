// OpenAI's responses.
#include <algorithm>

#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

constexpr std::size_t kArgumentPieces = 4;

bool answers_tool(const json& body) {
  const json input = body.value("input", json());
  return input.is_array() && !input.empty() &&
         input.back().value("type", "") == "function_call_output";
}

std::vector<MockTool> tools_of(const json& body) {
  std::vector<MockTool> tools;
  const json listed = body.value("tools", json());
  if (!listed.is_array() || body.value("tool_choice", json()) == "none" || answers_tool(body)) {
    return tools;
  }
  for (const json& tool : listed) {
    if (tool.value("type", "") != "function") continue;
    tools.push_back({tool.value("name", "tool"), tool.value("parameters", json())});
  }
  return tools;
}

json schema_of(const json& body) {
  const json text = body.value("text", json());
  if (!text.is_object()) return nullptr;
  return text.value("format", json::object()).value("schema", json());
}

bool wants_logprobs(const json& body) {
  const json include = body.value("include", json());
  return include.is_array() &&
         std::find(include.begin(), include.end(), "message.output_text.logprobs") != include.end();
}

std::size_t top_of(const json& body) {
  const json top = body.value("top_logprobs", json());
  return top.is_number_unsigned() ? top.get<std::size_t>() : 0;
}

// An error of the logprobs' form: Responses has no null there, but an empty list.
json logprobs_of(const MockCall& call, const std::vector<std::string>& tokens) {
  return wants_logprobs(call.body) ? mock_logprobs(tokens, top_of(call.body)) : json::array();
}

json items_of(const MockCall& call, const MockSpeech& speech) {
  json items = json::array();
  if (!speech.reasoning.empty()) {
    items.push_back(
        {{"type", "reasoning"},
         {"id", "rs_mock_" + call.number()},
         {"summary", json::array({{{"type", "summary_text"}, {"text", speech.reasoning}}})}});
  }
  if (speech.tools.empty()) {
    const json part = {{"type", "output_text"},
                       {"text", speech.content},
                       {"annotations", json::array()},
                       {"logprobs", logprobs_of(call, speech.tokens())}};
    items.push_back({{"type", "message"},
                     {"id", "msg_mock_" + call.number()},
                     {"status", "completed"},
                     {"role", "assistant"},
                     {"content", json::array({part})}});
  }
  for (const auto& tool : speech.tools) {
    items.push_back({{"type", "function_call"},
                     {"id", "fc_" + tool.id},
                     {"call_id", tool.id},
                     {"name", tool.name},
                     {"arguments", tool.arguments},
                     {"status", "completed"}});
  }
  return items;
}

class Events {
 public:
  Events(const MockCall& call, bool obfuscated) : call_(call), obfuscated_(obfuscated) {}

  void add(const std::string& type, json data) {
    data["type"] = type;
    data["sequence_number"] = events.size();
    if (obfuscated_ && type.ends_with(".delta")) {
      data["obfuscation"] = std::to_string(mock_hash(call_.number() + data.dump()));
    }
    events.push_back({type, data.dump()});
  }
  void add_item(std::size_t index, const json& item) {
    const std::string type = item["type"];
    json begun = item;
    if (type == "message") begun["content"] = json::array();
    if (type == "reasoning") begun["summary"] = json::array();
    if (type == "function_call") begun["arguments"] = "";
    if (type != "reasoning") begun["status"] = "in_progress";
    add("response.output_item.added", {{"output_index", index}, {"item", begun}});
    if (type == "message") add_text(index, item);
    if (type == "reasoning") add_summary(index, item);
    if (type == "function_call") {
      const json place = {{"item_id", item["id"]}, {"output_index", index}};
      for (const auto& piece : mock_pieces(item["arguments"], kArgumentPieces)) {
        json data = place;
        data["delta"] = piece;
        add("response.function_call_arguments.delta", data);
      }
      json data = place;
      data["arguments"] = item["arguments"];
      data["name"] = item["name"];
      add("response.function_call_arguments.done", data);
    }
    add("response.output_item.done", {{"output_index", index}, {"item", item}});
  }
  std::vector<MockEvent> events;

 private:
  void add_text(std::size_t index, const json& item) {
    const json part = item["content"][0];
    const json place = {{"item_id", item["id"]}, {"output_index", index}, {"content_index", 0}};
    json data = place;
    json empty = part;
    empty["text"] = "";
    empty["logprobs"] = json::array();
    data["part"] = empty;
    add("response.content_part.added", data);
    for (const auto& token : mock_tokens(part["text"])) {
      data = place;
      data["delta"] = token;
      data["logprobs"] = logprobs_of(call_, {token});
      add("response.output_text.delta", data);
    }
    data = place;
    data["text"] = part["text"];
    data["logprobs"] = part["logprobs"];
    add("response.output_text.done", data);
    data = place;
    data["part"] = part;
    add("response.content_part.done", data);
  }
  void add_summary(std::size_t index, const json& item) {
    const json part = item["summary"][0];
    const json place = {{"item_id", item["id"]}, {"output_index", index}, {"summary_index", 0}};
    json data = place;
    data["part"] = {{"type", "summary_text"}, {"text", ""}};
    add("response.reasoning_summary_part.added", data);
    for (const auto& token : mock_tokens(part["text"])) {
      data = place;
      data["delta"] = token;
      add("response.reasoning_summary_text.delta", data);
    }
    data = place;
    data["text"] = part["text"];
    add("response.reasoning_summary_text.done", data);
    data = place;
    data["part"] = part;
    add("response.reasoning_summary_part.done", data);
  }

  const MockCall& call_;
  bool obfuscated_;
};

json response_of(const MockCall& call, const MockSpeech& speech) {
  const auto given = [&](const char* name, const json& otherwise) {
    return call.body.value(name, otherwise);
  };
  const std::size_t reasoning = mock_tokens(speech.reasoning).size();
  const std::size_t output = speech.tokens().size() + reasoning;
  json response = {{"id", "resp_mock_" + call.number()},
                   {"object", "response"},
                   {"created_at", kMockCreated},
                   {"status", "completed"},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"instructions", given("instructions", nullptr)},
                   {"max_output_tokens", given("max_output_tokens", nullptr)},
                   {"model", call.model},
                   {"output", items_of(call, speech)},
                   {"parallel_tool_calls", given("parallel_tool_calls", true)},
                   {"previous_response_id", given("previous_response_id", nullptr)},
                   {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                   {"store", given("store", true)},
                   {"temperature", given("temperature", 1.0)},
                   {"text", given("text", {{"format", {{"type", "text"}}}})},
                   {"tool_choice", given("tool_choice", "auto")},
                   {"tools", given("tools", json::array())},
                   {"top_p", given("top_p", 1.0)},
                   {"truncation", "disabled"},
                   {"metadata", given("metadata", json::object())},
                   {"usage",
                    {{"input_tokens", call.prompt_tokens()},
                     {"input_tokens_details", {{"cached_tokens", 0}}},
                     {"output_tokens", output},
                     {"output_tokens_details", {{"reasoning_tokens", reasoning}}},
                     {"total_tokens", call.prompt_tokens() + output}}}};
  const bool filtered = call.how.has("filter");
  if (filtered || call.how.has("length")) {
    response["status"] = "incomplete";
    response["incomplete_details"] = {
        {"reason", filtered ? "content_filter" : "max_output_tokens"}};
    response["output"].back()["status"] = "incomplete";
  }
  if (call.how.has("failed")) {
    response["status"] = "failed";
    response["error"] = {{"code", "server_error"}, {"message", "the mock failed"}};
    response["output"] = json::array();
  }
  return response;
}

}  // namespace

MockAnswer mock_responses(const MockCall& call) {
  const MockSpeech speech = mock_speech(call, tools_of(call.body), schema_of(call.body));
  const json response = response_of(call, speech);
  if (!call.streams()) {
    MockAnswer answer;
    answer.pieces = {response.dump()};
    apply_behaviour(call, answer);
    return answer;
  }
  json begun = response;
  begun["status"] = "in_progress";
  begun["output"] = json::array();
  for (const char* name : {"usage", "incomplete_details", "error"}) begun[name] = nullptr;
  Events events(call, call.how.has("obfuscation"));
  events.add("response.created", {{"response", begun}});
  events.add("response.in_progress", {{"response", begun}});
  for (std::size_t i = 0; i < response["output"].size(); ++i) {
    events.add_item(i, response["output"][i]);
  }
  Events end(call, false);
  end.events.resize(events.events.size());  // the sequence goes on
  end.add("response." + response["status"].get<std::string>(), {{"response", response}});
  Events failure(call, false);
  failure.events.resize(std::min(events.events.size(), call.how.number("errorevent", 0, 3)));
  failure.add(
      "error",
      {{"code", "server_error"}, {"message", "the mock failed halfway"}, {"param", nullptr}});
  return mock_stream(call, events.events, failure.events.back(), {end.events.back()});
}

}  // namespace fixpoint::test
