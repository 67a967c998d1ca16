#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/messages_stream.hpp"

namespace fixpoint::dialects {
namespace {

// Known only at the end of a generation: message_delta carries them.
bool is_late(std::string_view name) {
  return name == "stop_reason" || name == "stop_sequence" || name == "stop_details";
}

// Anthropic's message_delta has these members of a usage; message_start has all of them.
Json late_usage(const Json& usage) {
  Json late = Json::object();
  for (const char* name : {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
                           "output_tokens", "output_tokens_details", "server_tool_use"}) {
    if (const Json* value = member(usage, name)) late[name] = *value;
  }
  return late;
}

class Events {
 public:
  explicit Events(Pieces size) : size_(size) {}
  void block(const Json& block);
  void add(Json body) { events_.push_back(message_event(body)); }
  std::vector<SseEvent> take() && { return std::move(events_); }

 private:
  void delta(const char* type, const char* name, Json value) {
    Json delta = {{"type", type}};
    delta[name] = std::move(value);
    add({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
  }
  void pieces(const char* type, const char* name, const std::string& text) {
    for (const auto piece : pieces_of(text, size_)) delta(type, name, piece);
  }

  Pieces size_;
  std::vector<SseEvent> events_;
  std::size_t index_ = 0;
};

void Events::block(const Json& block) {
  // The members that deltas bring; a block starts without them.
  const std::string* text = text_member(block, "text");
  const std::string* thinking = text_member(block, "thinking");
  const std::string* signature = thinking ? text_member(block, "signature") : nullptr;
  const Json* citations = array_member(block, "citations");
  const Json* input = object_member(block, "input");
  Json start = block;
  if (text) start["text"] = "";
  if (thinking) start["thinking"] = "";
  if (signature) start["signature"] = "";
  if (text && citations) start["citations"] = Json::array();
  if (input) start["input"] = Json::object();
  add({{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(start)}});
  if (thinking) pieces("thinking_delta", "thinking", *thinking);
  if (signature && !signature->empty()) delta("signature_delta", "signature", *signature);
  if (text) pieces("text_delta", "text", *text);
  if (text && citations) {
    for (const auto& citation : *citations) delta("citations_delta", "citation", citation);
  }
  if (input && !input->empty()) pieces("input_json_delta", "partial_json", to_text(*input));
  add({{"type", "content_block_stop"}, {"index", index_}});
  ++index_;
}

}  // namespace

std::vector<SseEvent> split_message(const Json& answer, Pieces size) {
  Events events(size);
  Json start = Json::object();
  Json delta = Json::object();
  for (const auto& [name, value] : answer.items()) {
    start[name] = is_late(name) ? Json() : value;
    if (is_late(name)) delta[name] = value;
  }
  start["content"] = Json::array();
  const Json usage = answer.value("usage", Json());
  if (usage.is_object()) start["usage"]["output_tokens"] = 0;
  events.add({{"type", "message_start"}, {"message", std::move(start)}});
  if (const Json* content = array_member(answer, "content")) {
    for (const auto& block : *content) {
      if (block.is_object()) events.block(block);
    }
  }
  Json end = {{"type", "message_delta"}, {"delta", std::move(delta)}};
  if (usage.is_object()) end["usage"] = late_usage(usage);
  events.add(std::move(end));
  events.add({{"type", "message_stop"}});
  return std::move(events).take();
}

}  // namespace fixpoint::dialects
