#include <utility>

#include "gateway/dialects/chat_turns.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kTarget = "OpenAI's chat/completions";

// The client joins its last words and the answer to them: a new turn would be another answer.
constexpr const char* kPrefill =
    "a last message of the assistant, for the model to continue, has no counterpart in OpenAI's "
    "chat/completions: end the conversation with a user's";

Json text_part(Members& block) {
  Json part = {{"type", "text"}, {"text", block.required_text("text")}};
  block.announce({"cache_control", "citations"});
  return part;
}

Json image_part(Members& block, Notes& notes) {
  const Json* given = block.object("source");
  const Json none = Json::object();
  Members source(given ? *given : none, block.path_of("source"), notes);
  const std::string type = source.required_text("type");
  std::string url;
  if (type == "base64") {
    url = "data:" + source.required_text("media_type") + ";base64," + source.required_text("data");
  } else if (type == "url") {
    url = source.required_text("url");
  } else {
    notes.refuse(source.path_of("type"), "'" + type + "' has no counterpart; use base64 or url");
  }
  source.refuse_rest(kTarget);
  block.announce({"cache_control"});
  return {{"type", "image_url"}, {"image_url", {{"url", url}}}};
}

// Parts as OpenAI takes them: no empty array, and one text alone is a string, which every server
// understands.
Json content_of(Json parts) {
  if (parts.empty()) return "";
  if (parts.size() == 1 && text_or_empty(parts[0], "type") == "text") return parts[0]["text"];
  return parts;
}

// A content that is a string or an array of text blocks.
Json text_content(const Json& content, const std::string& path, Notes& notes) {
  if (content.is_string()) return content;
  Json parts = Json::array();
  if (!content.is_array()) notes.refuse(path, "must be a string or an array of blocks");
  for (std::size_t i = 0; content.is_array() && i < content.size(); ++i) {
    Members block(content[i], at(path, i), notes);
    const std::string type = block.required_text("type");
    if (type == "text") {
      parts.push_back(text_part(block));
    } else {
      notes.refuse(block.path_of("type"), "'" + type + "' is not translated here");
    }
    block.refuse_rest(kTarget);
  }
  return content_of(std::move(parts));
}

Json tool_message(Members& block, Notes& notes) {
  Json message = {{"role", "tool"}, {"tool_call_id", block.required_text("tool_use_id")}};
  const Json* content = block.take("content");
  message["content"] = content ? text_content(*content, block.path_of("content"), notes) : Json("");
  if (block.flag("is_error")) notes.announce(block.path_of("is_error"));
  block.announce({"cache_control"});
  return message;
}

// One turn becomes the tool messages in it, then a user message of the rest.
void user_turn(const Json& content, const std::string& path, Json& messages, Notes& notes) {
  if (content.is_string()) {
    messages.push_back({{"role", "user"}, {"content", content}});
    return;
  }
  if (!content.is_array()) notes.refuse(path, "must be a string or an array of blocks");
  Json parts = Json::array();
  for (std::size_t i = 0; content.is_array() && i < content.size(); ++i) {
    Members block(content[i], at(path, i), notes);
    const std::string type = block.required_text("type");
    if (type == "text") {
      parts.push_back(text_part(block));
    } else if (type == "image") {
      parts.push_back(image_part(block, notes));
    } else if (type == "tool_result") {
      // Anthropic's own rule; OpenAI wants the results right after the calls.
      if (!parts.empty()) notes.refuse(at(path, i), "tool results must come first in their turn");
      messages.push_back(tool_message(block, notes));
    } else {
      notes.refuse(block.path_of("type"), "'" + type + "' has no counterpart");
    }
    block.refuse_rest(kTarget);
  }
  if (!parts.empty() || content.empty()) {
    messages.push_back({{"role", "user"}, {"content", content_of(std::move(parts))}});
  }
}

Json assistant_message(const Json& content, const std::string& path, Notes& notes) {
  Json message = {{"role", "assistant"}, {"content", Json()}};
  if (content.is_string()) {
    message["content"] = content;
    return message;
  }
  if (!content.is_array()) notes.refuse(path, "must be a string or an array of blocks");
  Json parts = Json::array(), calls = Json::array();
  for (std::size_t i = 0; content.is_array() && i < content.size(); ++i) {
    Members block(content[i], at(path, i), notes);
    const std::string type = block.required_text("type");
    if (type == "text") {
      parts.push_back(text_part(block));
    } else if (type == "tool_use") {
      const Json* input = block.object("input");
      Json function = {{"name", block.required_text("name")},
                       {"arguments", input ? to_text(*input) : "{}"}};
      calls.push_back({{"id", block.required_text("id")},
                       {"type", "function"},
                       {"function", std::move(function)}});
      block.announce({"cache_control", "caller"});
    } else if (type == "thinking" || type == "redacted_thinking") {
      // Meant for the model that signed it; another one has no use for it.
      notes.announce(at(path, i));
      continue;
    } else {
      notes.refuse(block.path_of("type"), "'" + type + "' has no counterpart");
    }
    block.refuse_rest(kTarget);
  }
  // Null is for a turn of calls alone.
  if (!parts.empty() || calls.empty()) message["content"] = content_of(std::move(parts));
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace

Json messages_turns_to_chat(const Json* system, const Json& turns, Notes& notes) {
  Json messages = Json::array();
  if (system && !system->empty()) {
    messages.push_back({{"role", "system"}, {"content", text_content(*system, "system", notes)}});
  }
  const Json none = Json();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Members turn(turns[i], at("messages", i), notes);
    const std::string role = turn.required_text("role");
    const Json* given = turn.take("content");
    const Json& content = given ? *given : none;
    const std::string path = turn.path_of("content");
    if (role == "user") {
      user_turn(content, path, messages, notes);
    } else if (role == "assistant") {
      messages.push_back(assistant_message(content, path, notes));
    } else if (role == "system") {
      messages.push_back({{"role", "system"}, {"content", text_content(content, path, notes)}});
    } else {
      notes.refuse(turn.path_of("role"), "'" + role + "' has no counterpart");
    }
    turn.refuse_rest(kTarget);
    if (role == "assistant" && i + 1 == turns.size()) {
      notes.refuse(turn.path_of("role"), kPrefill);
    }
  }
  return messages;
}

}  // namespace fixpoint::dialects
