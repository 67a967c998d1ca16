#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/dialects/chat_turns.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kTarget = "Anthropic's messages";

// OpenAI answers it with a turn of its own: another answer than its continuation.
constexpr const char* kPrefill =
    "a last message of the assistant would be continued by Anthropic's messages, not answered: end "
    "the conversation with a user's or a tool's";

Json text_block(std::string_view text) {
  Json block = {{"type", "text"}};
  block["text"] = text;
  return block;
}

// Anthropic takes no empty text blocks; SDKs send them for "no text" beside calls and images.
void drop_empty_texts(Json& blocks) {
  const auto is_empty = [](const Json& block) {
    const std::string* text = text_member(block, "text");
    return text && text->empty();
  };
  if (std::all_of(blocks.begin(), blocks.end(), is_empty)) return;
  std::erase_if(blocks.get_ref<Json::array_t&>(), is_empty);
}

// A data URL's parts, or the URL of a web server.
Json image_source(const std::string& url, const std::string& path, Notes& notes) {
  constexpr std::string_view kData = "data:";
  if (!url.starts_with(kData)) {
    if (!url.starts_with("https://") && !url.starts_with("http://")) {
      notes.refuse(path, "must be an http, https or data URL");
    }
    return {{"type", "url"}, {"url", url}};
  }
  const std::size_t comma = url.find(',');
  const std::string_view head = std::string_view(url).substr(kData.size(), comma - kData.size());
  constexpr std::string_view kBase64 = ";base64";
  if (comma == std::string::npos || !head.ends_with(kBase64)) {
    notes.refuse(path, "a data URL must be base64");
    return {};
  }
  Json source = {{"type", "base64"}};
  source["media_type"] = head.substr(0, head.size() - kBase64.size());
  source["data"] = std::string_view(url).substr(comma + 1);
  return source;
}

Json block_of_part(const Json& value, const std::string& path, Notes& notes,
                   std::string_view role) {
  Members part(value, path, notes);
  const bool images = role == "user" || role == "tool";
  const std::string type = part.required_text("type");
  Json block;
  if (type == "text") {
    block = text_block(part.required_text("text"));
    if (role == "assistant") {  // SDKs give a message's members to its only part
      part.take("role");
      part.take("parsed");
      part.announce({"annotations"});
      part.refuse_unless("refusal", "", "belongs in a part of type 'refusal'");
    }
  } else if (type == "refusal") {
    block = text_block(part.required_text("refusal"));
  } else if (type == "image_url" && images) {
    const Json* given = part.object("image_url");
    const Json none = Json::object();
    Members image(given ? *given : none, part.path_of("image_url"), notes);
    const std::string url = image.required_text("url");
    if (const Json* detail = image.take("detail"); detail && *detail != "auto") {
      notes.announce(image.path_of("detail"));
    }
    image.refuse_rest(kTarget);
    block = {{"type", "image"}};
    block["source"] = image_source(url, image.path_of("url"), notes);
  } else {
    notes.refuse(part.path_of("type"), "'" + type + "' is not translated here");
  }
  part.copy("cache_control", block);  // Anthropic's own, which many clients send this way
  part.announce({"prompt_cache_breakpoint"});
  part.refuse_rest(kTarget);
  return block;
}

// The blocks of a content that is a string or an array of parts.
Json blocks_of(const Json& content, const std::string& path, Notes& notes, std::string_view role) {
  Json blocks = Json::array();
  if (content.is_string()) {
    blocks.push_back(text_block(content.get_ref<const std::string&>()));
  } else if (content.is_array()) {
    for (std::size_t i = 0; i < content.size(); ++i) {
      blocks.push_back(block_of_part(content[i], at(path, i), notes, role));
    }
  } else {
    notes.refuse(path, "must be a string or an array of parts");
  }
  return blocks;
}

// A string stays a string.
Json content_of(const Json& content, const std::string& path, Notes& notes, std::string_view role) {
  if (content.is_string()) return content;
  Json blocks = blocks_of(content, path, notes, role);
  drop_empty_texts(blocks);
  return blocks;
}

Json tool_use_of(const Json& value, const std::string& path, Notes& notes) {
  Members call(value, path, notes);
  Json block = {{"type", "tool_use"}};
  block["id"] = call.required_text("id");
  const std::string* type = call.text("type");
  if (type && *type != "function") {
    notes.refuse(call.path_of("type"), "only calls of type 'function' have a counterpart");
  }
  const Json* given = call.object("function");
  const Json none = Json::object();
  Members function(given ? *given : none, call.path_of("function"), notes);
  block["name"] = function.required_text("name");
  const std::string* arguments = function.text("arguments");
  Json input = Json::object();
  if (arguments && !arguments->empty()) {
    const auto parsed = parse_json(*arguments);
    if (!parsed || !(parsed->is_object() || parsed->is_null())) {
      notes.refuse(function.path_of("arguments"), "must be a JSON object for Anthropic's messages");
    } else if (!parsed->is_null()) {
      input = *parsed;
    }
  }
  block["input"] = std::move(input);
  // What SDKs keep with a call of a stream, and with one that they have parsed.
  function.take("parsed_arguments");
  call.take("index");
  function.refuse_rest(kTarget);
  call.refuse_rest(kTarget);
  return block;
}

Json assistant_turn(Members& message, Notes& notes) {
  Json blocks = Json::array();
  const Json* content = message.take("content");
  if (content) blocks = blocks_of(*content, message.path_of("content"), notes, "assistant");
  const Json* calls = message.array("tool_calls");
  const std::string* refusal = message.text("refusal");
  if (refusal && !refusal->empty()) blocks.push_back(text_block(*refusal));
  for (std::size_t i = 0; calls && i < calls->size(); ++i) {
    blocks.push_back(tool_use_of((*calls)[i], at(message.path_of("tool_calls"), i), notes));
  }
  drop_empty_texts(blocks);
  // Reasoning of another maker's model cannot be given back: Anthropic wants its own signature.
  // Annotations describe the text that is sent as it is, and what was parsed is that text.
  message.take("parsed");
  message.announce({"reasoning_content", "reasoning", "annotations"});
  Json turn = {{"role", "assistant"}};
  const bool plain = content && content->is_string() && blocks.size() == 1 &&
                     blocks[0].contains("text") && blocks[0]["text"] == *content;
  turn["content"] = plain ? *content : std::move(blocks);
  return turn;
}

Json tool_result(Members& message, Notes& notes) {
  Json block = {{"type", "tool_result"}};
  block["tool_use_id"] = message.required_text("tool_call_id");
  if (const Json* content = message.take("content")) {
    block["content"] = content_of(*content, message.path_of("content"), notes, "tool");
  }
  return block;
}

}  // namespace

void chat_turns_to_messages(const Json& turns, Json& body, Notes& notes) {
  Json system = Json::array();
  Json messages = Json::array();
  std::size_t last_turn = 0;
  bool collecting = false;  // the last turn is one of tool results
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Members message(turns[i], at("messages", i), notes);
    const std::string role = message.required_text("role");
    message.announce({"name"});
    if (role == "system" || role == "developer") {
      // Anthropic's system prompt stands before all turns: one that came later is moved there.
      if (!messages.empty()) notes.announce(message.path_of("role"));
      const Json* content = message.take("content");
      const Json none = Json();
      Json blocks = blocks_of(content ? *content : none, message.path_of("content"), notes, role);
      system.insert(system.end(), blocks.begin(), blocks.end());
    } else if (role == "tool") {
      if (!collecting) messages.push_back({{"role", "user"}, {"content", Json::array()}});
      messages.back()["content"].push_back(tool_result(message, notes));
    } else if (role == "user") {
      const Json* content = message.take("content");
      const Json none = Json();
      Json turn = {{"role", "user"}};
      turn["content"] =
          content_of(content ? *content : none, message.path_of("content"), notes, role);
      messages.push_back(std::move(turn));
    } else if (role == "assistant") {
      messages.push_back(assistant_turn(message, notes));
    } else {
      notes.refuse(message.path_of("role"), "'" + role + "' has no counterpart");
    }
    if (role != "system" && role != "developer") {
      collecting = role == "tool";
      last_turn = i;
    }
    message.refuse_rest(kTarget);
  }
  if (!messages.empty() && messages.back()["role"] == "assistant") {
    notes.refuse(at("messages", last_turn) + ".role", kPrefill);
  }
  drop_empty_texts(system);
  if (system.size() == 1 && !system[0].contains("cache_control")) {
    body["system"] = text_or_empty(system[0], "text");
  } else if (!system.empty()) {
    body["system"] = std::move(system);
  }
  body["messages"] = std::move(messages);
}

}  // namespace fixpoint::dialects
