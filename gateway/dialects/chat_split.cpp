#include <algorithm>
#include <iterator>
#include <utility>

#include "gateway/dialects/chat_stream.hpp"
#include "gateway/dialects/json_access.hpp"

namespace fixpoint::dialects {
namespace {

constexpr const char* kReasoning[] = {"reasoning_content", "reasoning"};

// What OpenAI says in every chunk. The rest may be of any size (vLLM's prompt_logprobs), and so is
// said once: repeated with every few characters, it would make a huge stream of a large answer.
bool is_in_every_chunk(std::string_view name, const Json& value) {
  constexpr std::string_view kNames[] = {
      "id", "object", "created", "model", "system_fingerprint", "service_tier"};
  constexpr std::size_t kMaxText = 256;
  const std::string* text = value.get_ptr<const std::string*>();
  const bool small = text ? text->size() <= kMaxText : value.is_primitive();
  return small && std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Writes the chunks of one answer.
class Chunks {
 public:
  Chunks(Endpoint endpoint, const Json& answer, bool include_usage, Pieces size)
      : size_(size), chat_(endpoint == Endpoint::chat_completions) {
    for (const auto& [name, value] : answer.items()) {
      if (name == "choices" || name == "usage") continue;
      Json& into = is_in_every_chunk(name, value) ? head_ : once_;
      into[name] = name == "object" && chat_ ? Json("chat.completion.chunk") : value;
    }
    // OpenAI sends a null usage in all chunks but the last when usage was asked for.
    head_["choices"] = Json::array();
    if (include_usage) head_["usage"] = Json();
  }

  void choice(const Json& choice);
  void usage(const Json& usage) {
    head_["usage"] = usage;
    send(Json::array());
  }
  std::vector<SseEvent> done() && {
    if (events_.empty()) send(Json::array());
    events_.push_back({{}, "[DONE]"});
    return std::move(events_);
  }

 private:
  Json choice_of(Json delta, Json finish, Json logprobs) const {
    Json choice = {{"index", index_}};
    if (chat_) {
      choice["delta"] = std::move(delta);
    } else {
      choice["text"] = delta.value("content", Json(""));
    }
    if (!logprobs.is_null() || !chat_) choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(finish);
    return choice;
  }
  void emit(Json choice) { send(Json::array({std::move(choice)})); }
  void send(Json choices) {
    head_["choices"] = std::move(choices);
    if (events_.empty()) {
      Json first = head_;
      first.update(once_);
      events_.push_back({{}, to_text(first)});
    } else {
      events_.push_back({{}, to_text(head_)});
    }
  }
  void emit_text(std::string_view piece, Json logprobs, const char* name = "content") {
    Json delta = Json::object();
    delta[name] = piece;
    emit(choice_of(std::move(delta), Json(), std::move(logprobs)));
  }
  // True: the log-probabilities went along.
  bool content(const std::string& text, const Json& logprobs);

  Pieces size_;
  bool chat_;
  Json head_ = Json::object(), once_ = Json::object();  // of all chunks, of the first alone
  Json index_;
  std::vector<SseEvent> events_;
};

bool Chunks::content(const std::string& text, const Json& logprobs) {
  const auto tokens = token_pieces(text, member(logprobs, "content"), size_);
  for (const auto& [piece, entry] : tokens) {
    Json one = {{"content", Json::array({*entry})}};
    if (logprobs.contains("refusal")) one["refusal"] = Json();
    emit_text(piece, std::move(one));
  }
  if (!tokens.empty()) return true;
  if (!logprobs.is_null() && !text.empty()) {
    emit_text(text, logprobs);  // one chunk: the entries cannot be dealt out
    return true;
  }
  for (const auto piece : pieces_of(text, size_)) emit_text(piece, Json());
  return false;
}

void Chunks::choice(const Json& choice) {
  index_ = choice.value("index", Json(0));
  const Json logprobs = choice.value("logprobs", Json());
  Json message = choice.value("message", Json::object());
  if (!chat_) message = {{"content", choice.value("text", Json(""))}};
  if (!message.is_object()) message = Json::object();

  const Json content_value = message.value("content", Json());
  if (chat_) {
    Json first = {{"role", message.value("role", Json("assistant"))}};
    first["content"] = content_value.is_string() ? Json("") : content_value;
    emit(choice_of(std::move(first), Json(), Json()));
  }
  for (const char* name : kReasoning) {  // a model thinks before it speaks
    const std::string* text = chat_ ? text_member(message, name) : nullptr;
    if (!text) continue;
    for (const auto piece : pieces_of(*text, size_)) emit_text(piece, Json(), name);
    if (!text->empty()) message.erase(name);
  }
  bool logprobs_sent = logprobs.is_null();
  if (content_value.is_string()) {
    const bool sent = content(content_value.get_ref<const std::string&>(), logprobs);
    logprobs_sent = logprobs_sent || sent;
  }
  if (chat_) {
    Json rest = Json::object();
    for (const auto& [name, value] : message.items()) {
      if (name == "role" || name == "content" || value.is_null()) continue;
      rest[name] = value;
      if (name != "tool_calls" || !value.is_array()) continue;
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (rest[name][i].is_object()) rest[name][i]["index"] = i;
      }
    }
    if (!rest.empty()) emit(choice_of(std::move(rest), Json(), Json()));
  }
  Json last = choice_of(Json::object(), choice.value("finish_reason", Json()),
                        logprobs_sent ? Json() : logprobs);
  for (const auto& [name, value] : choice.items()) {  // whatever else the provider says of a choice
    const bool sent = name == "message" || name == "text" || name == "logprobs";
    if (!sent && !last.contains(name)) last[name] = value;
  }
  emit(std::move(last));
}

}  // namespace

std::vector<SseEvent> split_chat(Endpoint endpoint, const Json& answer, bool include_usage,
                                 Pieces size) {
  Chunks chunks(endpoint, answer, include_usage, size);
  if (const Json* choices = array_member(answer, "choices")) {
    for (const auto& choice : *choices) {
      if (choice.is_object()) chunks.choice(choice);
    }
  }
  if (include_usage && has_value(answer, "usage")) chunks.usage(answer["usage"]);
  return std::move(chunks).done();
}

bool is_chat_usage_chunk(std::string_view data) {
  // Most chunks carry no usage, or a null one: look before parsing.
  constexpr std::string_view kName = "\"usage\"";
  bool worth_parsing = false;
  for (std::size_t at = data.find(kName); at != std::string_view::npos && !worth_parsing;
       at = data.find(kName, at + kName.size())) {
    const std::size_t value = data.find_first_not_of(": \t\r\n", at + kName.size());
    worth_parsing = value != std::string_view::npos && data[value] == '{';
  }
  if (!worth_parsing) return false;
  const Json chunk = Json::parse(data, nullptr, false);
  const Json* choices = array_member(chunk, "choices");
  return object_member(chunk, "usage") && choices && choices->empty();
}

}  // namespace fixpoint::dialects
