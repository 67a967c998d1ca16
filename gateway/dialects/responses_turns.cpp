#include "gateway/dialects/responses_turns.hpp"

#include <utility>

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kTarget = "OpenAI's chat/completions";

Json part_of(const Json& value, const std::string& path, Notes& notes) {
  Members part(value, path, notes);
  const std::string type = part.required_text("type");
  Json out;
  if (type == "input_text" || type == "output_text" || type == "text") {
    out = {{"type", "text"}, {"text", part.required_text("text")}};
    // What an earlier answer said about its text; the text itself is what the model reads.
    part.take("annotations");
    part.take("logprobs");
    part.take("parsed");
  } else if (type == "refusal") {
    out = {{"type", "text"}, {"text", part.required_text("refusal")}};
  } else if (type == "input_image") {
    Json image = {{"url", part.required_text("image_url")}};
    part.copy("detail", image);
    out = {{"type", "image_url"}, {"image_url", std::move(image)}};
  } else {
    notes.refuse(part.path_of("type"), "'" + type + "' has no counterpart");
  }
  part.announce({"prompt_cache_breakpoint"});
  part.refuse_rest(kTarget);
  return out;
}

// One text alone is a string, which every server understands.
Json content_of(const Json& content, const std::string& path, Notes& notes) {
  if (content.is_string()) return content;
  Json parts = Json::array();
  if (!content.is_array()) notes.refuse(path, "must be a string or an array of parts");
  for (std::size_t i = 0; content.is_array() && i < content.size(); ++i) {
    parts.push_back(part_of(content[i], at(path, i), notes));
  }
  if (parts.size() == 1 && text_or_empty(parts[0], "type") == "text") return parts[0]["text"];
  return parts;
}

void add_call(Members& item, Json& messages) {
  Json function = {{"name", item.required_text("name")},
                   {"arguments", item.required_text("arguments")}};
  Json call = {{"id", item.required_text("call_id")},
               {"type", "function"},
               {"function", std::move(function)}};
  item.take("parsed_arguments");  // what an SDK made of the arguments
  item.announce({"caller"});
  // The calls of one turn, and the text before them, are one message in chat.
  if (messages.empty() || messages.back()["role"] != "assistant") {
    messages.push_back({{"role", "assistant"}, {"content", Json()}});
  }
  Json& calls = messages.back()["tool_calls"];
  if (calls.is_null()) calls = Json::array();
  calls.push_back(std::move(call));
}

void add_item(const Json& value, const std::string& path, Json& messages, Notes& notes) {
  Members item(value, path, notes);
  const std::string* named = item.text("type");
  const std::string type = named ? *named : "message";
  // What OpenAI keeps about an item; it changes nothing for the model.
  item.take("id");
  item.take("status");
  const Json none = Json();
  if (type == "message") {
    const std::string role = item.required_text("role");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
      notes.refuse(item.path_of("role"), "'" + role + "' has no counterpart");
    }
    const Json* content = item.take("content");
    messages.push_back(
        {{"role", role},
         {"content", content_of(content ? *content : none, item.path_of("content"), notes)}});
    item.announce({"phase"});
  } else if (type == "function_call") {
    add_call(item, messages);
  } else if (type == "function_call_output") {
    const Json* output = item.take("output");
    messages.push_back(
        {{"role", "tool"},
         {"tool_call_id", item.required_text("call_id")},
         {"content", content_of(output ? *output : none, item.path_of("output"), notes)}});
    item.announce({"caller", "name"});
  } else if (type == "item_reference") {
    notes.refuse(
        item.path_of("type"),
        "'item_reference' is to an item that OpenAI keeps; this gateway keeps none: send "
        "items whole, with \"store\": false (in the AI SDK: providerOptions.openai.store)");
  } else if (type == "reasoning") {
    notes.announce(path);  // meant for the model that made it
    return;
  } else {
    notes.refuse(item.path_of("type"), "'" + type + "' has no counterpart");
  }
  item.refuse_rest(kTarget);
}

}  // namespace

Json responses_turns_to_chat(const std::string* instructions, const Json& input, Notes& notes) {
  Json messages = Json::array();
  if (instructions) messages.push_back({{"role", "system"}, {"content", *instructions}});
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
  } else if (input.is_array()) {
    for (std::size_t i = 0; i < input.size(); ++i)
      add_item(input[i], at("input", i), messages, notes);
  } else {
    notes.refuse("input", "must be a string or an array of items");
  }
  return messages;
}

}  // namespace fixpoint::dialects
