// OpenAI's chat completions.
#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

constexpr std::size_t kArgumentPieces = 4;

struct Chat {
  const MockCall& call;
  MockSpeech speech;
  std::string id;
  std::string finish = "stop";
  std::size_t choices = 1;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool obfuscated = false;

  json frame(const char* object) const {
    json frame = {{"id", id},
                  {"object", object},
                  {"created", kMockCreated},
                  {"model", call.model},
                  {"system_fingerprint", call.how.fingerprint()}};
    return frame;
  }
  json usage() const {
    const std::size_t prompt = call.prompt_tokens();
    const std::size_t reasoning = mock_tokens(speech.reasoning).size();
    const std::size_t completion = (speech.tokens().size() + reasoning) * choices;
    return {{"prompt_tokens", prompt},
            {"completion_tokens", completion},
            {"total_tokens", prompt + completion},
            {"prompt_tokens_details", {{"cached_tokens", 0}, {"audio_tokens", 0}}},
            {"completion_tokens_details",
             {{"reasoning_tokens", reasoning}, {"accepted_prediction_tokens", 0}}}};
  }
  json logprobs_of(const std::vector<std::string>& tokens) const {
    if (!logprobs) return nullptr;
    return {{"content", mock_logprobs(tokens, top_logprobs)}, {"refusal", nullptr}};
  }
};

// Whether the conversation waits for the model to call something.
bool may_call(const json& body) {
  if (body.value("tool_choice", json()) == "none") return false;
  const json messages = body.value("messages", json::array());
  return messages.empty() || messages.back().value("role", "") != "tool";
}

std::vector<MockTool> tools_of(const json& body) {
  std::vector<MockTool> tools;
  const json listed = body.value("tools", json());
  if (!listed.is_array() || !may_call(body)) return tools;
  for (const json& tool : listed) {
    const json function = tool.value("function", json::object());
    tools.push_back({function.value("name", "tool"), function.value("parameters", json())});
  }
  return tools;
}

json schema_of(const json& body) {
  const json format = body.value("response_format", json());
  if (!format.is_object()) return nullptr;
  if (format.value("type", "") == "json_object") {
    return {{"type", "object"}, {"properties", {{"answer", {{"type", "string"}}}}}};
  }
  return format.value("json_schema", json::object()).value("schema", json());
}

json tool_call(const MockToolCall& tool, const std::string& arguments) {
  return {{"id", tool.id},
          {"type", "function"},
          {"function", {{"name", tool.name}, {"arguments", arguments}}}};
}

json plain(const Chat& chat) {
  json body = chat.frame("chat.completion");
  body["choices"] = json::array();
  for (std::size_t i = 0; i < chat.choices; ++i) {
    json message = {{"role", "assistant"}, {"content", chat.speech.content}, {"refusal", nullptr}};
    if (!chat.speech.reasoning.empty()) message["reasoning_content"] = chat.speech.reasoning;
    if (!chat.speech.tools.empty()) {
      message["content"] = nullptr;
      for (const auto& tool : chat.speech.tools) {
        message["tool_calls"].push_back(tool_call(tool, tool.arguments));
      }
    }
    json finish = chat.finish;
    if (chat.call.how.has("nofinish")) finish = nullptr;
    body["choices"].push_back(
        {{"index", i},
         {"message", message},
         {"finish_reason", finish},
         {"logprobs",
          chat.speech.tools.empty() ? chat.logprobs_of(chat.speech.tokens()) : json()}});
  }
  body["usage"] = chat.usage();
  return body;
}

class ChatEvents {
 public:
  ChatEvents(const Chat& chat, bool usage) : chat_(chat), usage_(usage) {}

  void add(std::size_t index, const json& delta, const json& finish = nullptr,
           const json& logprobs = nullptr) {
    json chunk = chat_.frame("chat.completion.chunk");
    chunk["choices"] = json::array(
        {{{"index", index}, {"delta", delta}, {"finish_reason", finish}, {"logprobs", logprobs}}});
    if (usage_) chunk["usage"] = nullptr;
    if (chat_.obfuscated) {  // another one in each chunk of each call
      chunk["obfuscation"] = std::to_string(mock_hash(chat_.id + std::to_string(events.size())));
    }
    events.push_back({"", chunk.dump()});
  }
  void add_content(std::size_t index) {
    const auto tokens = chat_.speech.tokens();
    if (chat_.logprobs || chat_.obfuscated) {
      for (const auto& token : tokens) {
        add(index, {{"content", token}}, nullptr, chat_.logprobs_of({token}));
      }
      return;
    }
    // Chunks that differ in nothing but the token: rendered once, for benchmarks.
    add(index, {{"content", "@"}});
    const std::string form = std::move(events.back().data);
    events.pop_back();
    const std::size_t hole = form.find("\"@\"");
    for (const auto& token : tokens) {
      events.push_back({"", form.substr(0, hole) + json(token).dump() + form.substr(hole + 3)});
    }
  }
  void add_choice(std::size_t index) {
    add(index, {{"role", "assistant"}, {"content", ""}});
    for (const auto& token : mock_tokens(chat_.speech.reasoning)) {
      add(index, {{"reasoning_content", token}});
    }
    std::size_t position = 0;
    for (const auto& tool : chat_.speech.tools) {
      json first = tool_call(tool, "");
      first["index"] = position;
      add(index, {{"tool_calls", json::array({first})}});
      for (const auto& piece : mock_pieces(tool.arguments, kArgumentPieces)) {
        const json part = {{"index", position}, {"function", {{"arguments", piece}}}};
        add(index, {{"tool_calls", json::array({part})}});
      }
      ++position;
    }
    if (chat_.speech.tools.empty()) add_content(index);
    if (!chat_.call.how.has("nofinish")) add(index, json::object(), chat_.finish);
  }
  void add_usage() {
    if (!usage_) return;
    json chunk = chat_.frame("chat.completion.chunk");
    chunk["choices"] = json::array();
    chunk["usage"] = chat_.usage();
    events.push_back({"", chunk.dump()});
  }
  std::vector<MockEvent> events;

 private:
  const Chat& chat_;
  bool usage_;
};

}  // namespace

MockAnswer mock_chat(const MockCall& call) {
  Chat chat{call, mock_speech(call, tools_of(call.body), schema_of(call.body)),
            "chatcmpl-mock-" + call.number()};
  if (!chat.speech.tools.empty()) chat.finish = "tool_calls";
  if (call.how.has("length")) chat.finish = "length";
  if (call.how.has("filter")) chat.finish = "content_filter";
  chat.choices = call.body.value("n", std::size_t{1});
  chat.logprobs = call.body.value("logprobs", json()) == true;
  const json top = call.body.value("top_logprobs", json());
  if (top.is_number_unsigned()) chat.top_logprobs = top.get<std::size_t>();
  chat.obfuscated = call.how.has("obfuscation");
  if (!call.streams()) {
    MockAnswer answer;
    answer.pieces = {plain(chat).dump()};
    apply_behaviour(call, answer);
    return answer;
  }
  const json options = call.body.value("stream_options", json());
  const bool usage = options.is_object() && options.value("include_usage", json()) == true;
  ChatEvents events(chat, usage);
  for (std::size_t i = 0; i < chat.choices; ++i) events.add_choice(i);
  events.add_usage();
  const json failure = json::parse(
      mock_error(MockApi::openai, 500, "the mock failed halfway", "mock_failed").pieces[0]);
  return mock_stream(call, events.events, {"", failure.dump()}, {{"", "[DONE]"}});
}

}  // namespace fixpoint::test
