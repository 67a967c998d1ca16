// Answers of both APIs and their translations.
#pragma once

#include "gateway/dialects/translate.hpp"
#include "tests/unit/gateway/dialects/dialect_support.hpp"

namespace fixpoint::test {

constexpr auto kChat = Endpoint::chat_completions;
constexpr auto kMessages = Endpoint::messages;
constexpr auto kResponses = Endpoint::responses;

// What the client gets for the maker's events, checked to be a stream that its API would send.
inline Json streamed(Endpoint client, Endpoint maker, const std::vector<SseEvent>& events,
                     std::vector<SseEvent>* sent = nullptr) {
  const auto translator = make_translator(client, maker, Json::object());
  std::vector<SseEvent> out;
  for (const auto& event : events) {
    const auto translated = translator->event(event);
    EXPECT_TRUE(translated) << (translated ? "" : translated.error().message);
    if (!translated) return {};
    out.insert(out.end(), translated->begin(), translated->end());
  }
  if (sent) *sent = out;
  return assemble(client, out);
}

inline Json plain(Endpoint client, Endpoint maker, const Json& answer,
                  const Json& request = Json::object()) {
  const auto translated = make_translator(client, maker, request)->plain(answer);
  EXPECT_TRUE(translated) << (translated ? "" : translated.error().message);
  return translated ? *translated : Json();
}

inline std::string failure(Endpoint client, Endpoint maker, const Json& answer) {
  const auto translated = make_translator(client, maker, Json::object())->plain(answer);
  return translated ? "" : translated.error().message;
}

inline Json without(Json answer, std::initializer_list<const char*> names) {
  for (const char* name : names) answer.erase(name);
  return answer;
}

inline Json claude(Json content, const char* stop = "end_turn") {
  return {{"id", "msg_01"},
          {"type", "message"},
          {"role", "assistant"},
          {"model", "claude-x"},
          {"content", std::move(content)},
          {"stop_reason", stop},
          {"stop_sequence", nullptr},
          {"usage",
           {{"input_tokens", 10},
            {"cache_creation_input_tokens", 2},
            {"cache_read_input_tokens", 5},
            {"output_tokens", 7}}}};
}

inline Json gpt(Json message, const char* finish = "stop") {
  message["role"] = "assistant";
  return {{"id", "chatcmpl-01"},
          {"object", "chat.completion"},
          {"created", 5},
          {"model", "gpt-x"},
          {"choices", {{{"index", 0}, {"message", std::move(message)}, {"finish_reason", finish}}}},
          {"usage",
           {{"prompt_tokens", 17},
            {"completion_tokens", 7},
            {"total_tokens", 24},
            {"prompt_tokens_details", {{"cached_tokens", 5}, {"cache_write_tokens", 2}}},
            {"completion_tokens_details", {{"reasoning_tokens", 3}}}}}};
}

inline Json call(const char* id, const char* name, const char* arguments) {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

inline Json everything() {
  return {{{"type", "thinking"}, {"thinking", "Hm."}, {"signature", "sig"}},
          {{"type", "text"}, {"text", "I will call two tools, one after the other."}},
          {{"type", "tool_use"}, {"id", "t1"}, {"name", "f"}, {"input", {{"a", "Köln"}}}},
          {{"type", "tool_use"}, {"id", "t2"}, {"name", "g"}, {"input", Json::object()}}};
}

}  // namespace fixpoint::test
