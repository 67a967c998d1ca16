#include <utility>

#include "gateway/dialects/chat_turns.hpp"
#include "gateway/dialects/request_members.hpp"
#include "gateway/dialects/strict_schema.hpp"
#include "gateway/dialects/translate_requests.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kTarget = "OpenAI's chat/completions";
constexpr std::string_view kNoCounterpart = "has no counterpart in OpenAI's chat/completions";

void tools(Members& request, Json& body) {
  Notes& notes = request.notes();
  const Json* tools = request.array("tools");
  Json translated = Json::array();
  for (std::size_t i = 0; tools && i < tools->size(); ++i) {
    Members tool((*tools)[i], at("tools", i), notes);
    const std::string* type = tool.text("type");
    if (type && *type != "custom") {
      notes.refuse(tool.path_of("type"), "'" + *type + "' is a tool of Anthropic's servers");
    }
    Json function = Json::object();
    function["name"] = tool.required_text("name");
    tool.copy("description", function);
    const Json* schema = tool.object("input_schema");
    if (schema) function["parameters"] = *schema;
    if (tool.flag("strict")) {
      // Anthropic's strict schemas may have optional properties, OpenAI's may not.
      const bool possible = schema && is_strict_for_openai(*schema);
      if (possible) function["strict"] = true;
      if (!possible) notes.announce(tool.path_of("strict"));
    }
    tool.announce({"cache_control", "eager_input_streaming", "input_examples"});
    tool.refuse_unless("defer_loading", false, kNoCounterpart);
    tool.refuse_unless("allowed_callers", Json::array({"direct"}), kNoCounterpart);
    tool.refuse_rest(kTarget);
    translated.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  const bool any = !translated.empty();
  if (any) body["tools"] = std::move(translated);

  const Json* given = request.object("tool_choice");
  if (!given) return;
  Members choice(*given, "tool_choice", notes);
  const std::string type = choice.required_text("type");
  Json out;
  if (type == "auto" || type == "none") {
    if (any) out = type;  // OpenAI refuses a choice without tools
  } else if (type == "any") {
    out = "required";
  } else if (type == "tool") {
    out = {{"type", "function"}, {"function", {{"name", choice.required_text("name")}}}};
  } else {
    notes.refuse("tool_choice.type", "'" + type + "' has no counterpart");
  }
  if (!out.is_null()) body["tool_choice"] = std::move(out);
  if (choice.flag("disable_parallel_tool_use") && any) body["parallel_tool_calls"] = false;
  choice.refuse_rest(kTarget);
}

void output_config(Members& request, Json& body) {
  const Json* given = request.object("output_config");
  if (!given) return;
  Notes& notes = request.notes();
  Members config(*given, "output_config", notes);
  config.announce({"effort"});
  if (const Json* inner = config.object("format")) {
    Members format(*inner, "output_config.format", notes);
    if (format.required_text("type") != "json_schema") {
      notes.refuse("output_config.format.type", "only 'json_schema' has a counterpart");
    }
    const Json* schema = format.object("schema");
    if (!schema) notes.refuse("output_config.format.schema", "is missing");
    // OpenAI wants a name for it; Anthropic's formats have none and are always strict.
    const bool strict = schema && is_strict_for_openai(*schema);
    if (!strict) notes.announce("output_config.format.strict");
    Json out = {{"name", "answer"}, {"strict", strict}};
    if (schema) out["schema"] = *schema;
    body["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(out)}};
    format.refuse_rest(kTarget);
  }
  config.refuse_rest(kTarget);
}

// A conversation that Anthropic would keep. One that begins is all there; one that goes on is not,
// and is refused as Anthropic refuses a thread that it has lost: then SDKs send all of it again.
void thread(Members& request) {
  Notes& notes = request.notes();
  const Json* given = request.object("thread");
  if (!given) return;
  Members inner(*given, "thread", notes);
  const std::string type = inner.required_text("type");
  if (type == "continue") {
    notes.refuse("thread", "is not known: this gateway keeps no conversations; send all turns",
                 "thread_not_found");
  } else if (type != "create") {
    notes.refuse("thread.type", "'" + type + "' has no counterpart");
  }
  inner.refuse_rest(kTarget);
  notes.announce("thread");
}

}  // namespace

Translated messages_to_chat(const Json& message_request) {
  Notes notes;
  Members request(message_request, "", notes);
  thread(request);  // first: the rest of one that goes on lacks what came before
  Json body = Json::object();
  request.copy("model", body);
  const Json* system = request.take("system");
  if (const Json* turns = request.array("messages")) {
    body["messages"] = messages_turns_to_chat(system, *turns, notes);
  } else {
    notes.refuse("messages", "is missing");
  }
  if (const Json* limit = request.number("max_tokens")) {
    body["max_completion_tokens"] = *limit;
  } else {
    notes.refuse("max_tokens", "is missing");
  }
  for (const char* name : {"temperature", "top_p", "top_k"}) request.copy(name, body);
  if (const Json* stop = request.array("stop_sequences"); stop && !stop->empty()) {
    body["stop"] = *stop;
  }
  tools(request, body);
  output_config(request, body);
  if (const Json* metadata = request.object("metadata")) {
    Members inner(*metadata, "metadata", notes);
    inner.copy("user_id", body, "user");
    inner.take_directives();
    inner.refuse_rest(kTarget);
  }
  if (request.flag("stream")) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};  // Anthropic's streams always have it
  }
  const Json* thinking = request.object("thinking");
  if (thinking && text_or_empty(*thinking, "type") != "disabled") notes.announce("thinking");
  request.announce({"cache_control", "diagnostics", "service_tier", "speed"});
  request.refuse_rest(kTarget);
  return std::move(notes).result(std::move(body));
}

}  // namespace fixpoint::dialects
