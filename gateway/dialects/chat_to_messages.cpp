#include <utility>

#include "gateway/dialects/chat_turns.hpp"
#include "gateway/dialects/request_members.hpp"
#include "gateway/dialects/strict_schema.hpp"
#include "gateway/dialects/translate_requests.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kTarget = "Anthropic's messages";
constexpr std::string_view kNoCounterpart = "has no counterpart in Anthropic's messages";

void limit(Members& request, Json& body) {
  const Json* older = request.number("max_tokens");
  const Json* newer = request.number("max_completion_tokens");
  if (older && newer && *older != *newer) {
    request.notes().refuse("max_tokens", "contradicts 'max_completion_tokens'");
  }
  body["max_tokens"] = newer ? *newer : older ? *older : Json(kDefaultMaxTokens);
}

void sampling(Members& request, Json& body) {
  if (const Json* temperature = request.number("temperature")) {
    // The same scale, but OpenAI's goes to 2.
    if (temperature->get<double>() > 1) {
      request.notes().refuse("temperature", "must be at most 1 for Anthropic's messages");
    }
    body["temperature"] = *temperature;
  }
  request.copy("top_p", body);
  request.copy("top_k", body);  // not OpenAI's own, but sent to many of its kind
  if (const Json* stop = request.take("stop")) {
    if (stop->is_string()) {
      body["stop_sequences"] = Json::array({*stop});
    } else if (!stop->is_array()) {
      request.notes().refuse("stop", "must be a string or an array of strings");
    } else if (!stop->empty()) {
      body["stop_sequences"] = *stop;
    }
  }
  request.refuse_unless("n", 1, "must be 1 for Anthropic's messages");
  request.refuse_unless("logprobs", false, "Anthropic has no log-probabilities");
  request.refuse_unless("top_logprobs", 0, "Anthropic has no log-probabilities");
  request.refuse_unless("logit_bias", Json::object(), kNoCounterpart);
  request.refuse_unless("presence_penalty", 0, kNoCounterpart);
  request.refuse_unless("frequency_penalty", 0, kNoCounterpart);
}

void tools(Members& request, Json& body) {
  Notes& notes = request.notes();
  const Json* tools = request.array("tools");
  Json translated = Json::array();
  for (std::size_t i = 0; tools && i < tools->size(); ++i) {
    Members tool((*tools)[i], at("tools", i), notes);
    if (tool.required_text("type") != "function") {
      notes.refuse(tool.path_of("type"), "only tools of type 'function' have a counterpart");
    }
    if (const Json* given = tool.object("function")) {
      Members function(*given, tool.path_of("function"), notes);
      Json out = Json::object();
      out["name"] = function.required_text("name");
      function.copy("description", out);
      const Json* schema = function.object("parameters");
      const bool strict = function.flag("strict");
      // Both are a tool without parameters to OpenAI; Anthropic wants a type.
      const bool none = !schema || schema->empty();
      const Json input =
          none ? Json({{"type", "object"}, {"properties", Json::object()}}) : *schema;
      out["input_schema"] =
          strict ? schema_for_anthropic(input, function.path_of("parameters"), notes) : input;
      if (strict) out["strict"] = true;
      tool.copy("cache_control", out);  // Anthropic's own, which many clients send this way
      function.refuse_rest(kTarget);
      translated.push_back(std::move(out));
    } else {
      notes.refuse(tool.path_of("function"), "is missing");
    }
    tool.refuse_rest(kTarget);
  }
  const bool any = !translated.empty();
  if (any) body["tools"] = std::move(translated);

  Json choice;
  if (const Json* given = request.take("tool_choice")) {
    if (*given == "auto" || *given == "none") {
      choice = {{"type", *given}};
    } else if (*given == "required") {
      choice = {{"type", "any"}};
    } else if (given->is_object() && text_or_empty(*given, "type") == "function") {
      Members named(*given, "tool_choice", notes);
      named.take("type");
      const Json* function = named.object("function");
      choice = {{"type", "tool"}};
      if (function) {
        Members inner(*function, "tool_choice.function", notes);
        choice["name"] = inner.required_text("name");
        inner.refuse_rest(kTarget);
      } else {
        notes.refuse("tool_choice.function", "is missing");
      }
      named.refuse_rest(kTarget);
    } else {
      notes.refuse("tool_choice", "only auto, none, required and a named function are translated");
    }
  }
  const Json* parallel = request.take("parallel_tool_calls");
  if (parallel && !parallel->is_boolean()) {
    notes.refuse("parallel_tool_calls", "must be true or false");
  }
  if (!any) {  // without tools, "auto", "none" and a limit on calls are what happens anyway
    if (!choice.is_null() && choice["type"] != "auto" && choice["type"] != "none") {
      notes.refuse("tool_choice", "asks for a tool, but there are none");
    }
    return;
  }
  if (parallel && *parallel == false && (choice.is_null() || choice["type"] != "none")) {
    if (choice.is_null()) choice = {{"type", "auto"}};
    choice["disable_parallel_tool_use"] = true;
  }
  if (!choice.is_null()) body["tool_choice"] = std::move(choice);
}

void response_format(Members& request, Json& body) {
  const Json* given = request.object("response_format");
  if (!given) return;
  Notes& notes = request.notes();
  Members format(*given, "response_format", notes);
  const std::string type = format.required_text("type");
  if (type == "json_schema") {
    const Json* inner = format.object("json_schema");
    const Json none = Json::object();
    Members schema(inner ? *inner : none, "response_format.json_schema", notes);
    const Json* value = schema.object("schema");
    if (!value) notes.refuse("response_format.json_schema.schema", "is missing");
    schema.take("strict");  // Anthropic's formats are always strict
    schema.announce({"name", "description"});
    schema.refuse_rest(kTarget);
    if (value) {
      body["output_config"]["format"] = {
          {"type", "json_schema"},
          {"schema", schema_for_anthropic(*value, "response_format.json_schema.schema", notes)}};
    }
  } else if (type != "text") {
    notes.refuse("response_format.type", "'" + type + "' has no counterpart; use json_schema");
  }
  format.refuse_rest(kTarget);
}

// Whether `metadata` has more than what is meant for this gateway.
bool any_label(const Json& metadata) {
  if (!metadata.is_object()) return true;
  for (const auto& [name, value] : metadata.items()) {
    if (!is_directive(name)) return true;
  }
  return false;
}

}  // namespace

Translated chat_to_messages(const Json& chat) {
  Notes notes;
  Members request(chat, "", notes);
  Json body = Json::object();
  request.copy("model", body);
  limit(request, body);
  if (const Json* messages = request.array("messages")) {
    chat_turns_to_messages(*messages, body, notes);
  } else {
    notes.refuse("messages", "is missing");
  }
  sampling(request, body);
  tools(request, body);
  response_format(request, body);
  request.copy("stream", body);
  if (const Json* given = request.object("stream_options")) {
    Members options(*given, "stream_options", notes);
    options.take("include_usage");  // Anthropic always sends it; the gateway passes it on if asked
    options.announce({"include_obfuscation"});
    options.refuse_rest(kTarget);
  }
  const std::string* user = request.text("user");
  const std::string* identifier = user ? nullptr : request.text("safety_identifier");
  if (user || identifier) body["metadata"] = {{"user_id", user ? *user : *identifier}};

  request.refuse_unless("modalities", Json::array({"text"}), kNoCounterpart);
  request.refuse_unless("functions", Json::array(), "is deprecated: use 'tools'");
  request.refuse("function_call", "is deprecated: use 'tool_choice'");
  if (const Json* verbosity = request.take("verbosity"); verbosity && *verbosity != "medium") {
    notes.refuse("verbosity", std::string(kNoCounterpart));
  }
  if (request.flag("store")) notes.announce("store");
  if (const Json* given = request.take("metadata"); given && any_label(*given)) {
    notes.announce("metadata");
  }
  request.announce({"seed", "service_tier", "prediction", "prompt_cache_key",
                    "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
                    "safety_identifier"});
  request.refuse_rest(kTarget);
  return std::move(notes).result(std::move(body));
}

}  // namespace fixpoint::dialects
