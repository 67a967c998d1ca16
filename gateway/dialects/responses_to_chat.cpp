#include <utility>

#include "gateway/dialects/request_members.hpp"
#include "gateway/dialects/responses_turns.hpp"
#include "gateway/dialects/translate_requests.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kTarget = "OpenAI's chat/completions";
constexpr std::string_view kStateless =
    "is not available here: this gateway keeps no conversations; send all earlier items in 'input'";

void tools(Members& request, Json& body) {
  Notes& notes = request.notes();
  const Json* tools = request.array("tools");
  Json translated = Json::array();
  for (std::size_t i = 0; tools && i < tools->size(); ++i) {
    Members tool((*tools)[i], at("tools", i), notes);
    const std::string type = tool.required_text("type");
    if (type != "function") {
      notes.refuse(tool.path_of("type"), "'" + type +
                                             "' is a tool of OpenAI's servers; only tools "
                                             "of type 'function' are translated");
    }
    Json function = Json::object();
    function["name"] = tool.required_text("name");
    tool.copy("description", function);
    tool.copy("parameters", function);
    tool.copy("strict", function);
    tool.announce({"output_schema"});
    tool.refuse_unless("defer_loading", false, "has no counterpart");
    tool.refuse_unless("async", false, "has no counterpart");
    tool.refuse_unless("allowed_callers", Json::array({"direct"}), "has no counterpart");
    tool.refuse_rest(kTarget);
    translated.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  const bool any = !translated.empty();
  if (any) body["tools"] = std::move(translated);

  const Json* parallel = request.take("parallel_tool_calls");
  if (parallel && any) body["parallel_tool_calls"] = *parallel;
  const Json* choice = request.take("tool_choice");
  if (!choice) return;
  if (choice->is_object() && text_or_empty(*choice, "type") == "function") {
    Members named(*choice, "tool_choice", notes);
    named.take("type");
    body["tool_choice"] = {{"type", "function"},
                           {"function", {{"name", named.required_text("name")}}}};
    named.refuse_rest(kTarget);
  } else if (*choice == "auto" || *choice == "none") {
    if (any) body["tool_choice"] = *choice;  // chat refuses a choice without tools
  } else if (*choice == "required") {
    body["tool_choice"] = *choice;
  } else {
    notes.refuse("tool_choice", "only auto, none, required and a function are translated");
  }
}

void text_config(Members& request, Json& body) {
  const Json* given = request.object("text");
  if (!given) return;
  Notes& notes = request.notes();
  Members config(*given, "text", notes);
  config.copy("verbosity", body);
  if (const Json* inner = config.object("format")) {
    Members format(*inner, "text.format", notes);
    const std::string type = format.required_text("type");
    if (type == "json_schema") {
      Json schema = Json::object();
      for (const char* name : {"name", "description", "schema", "strict"}) {
        format.copy(name, schema);
      }
      body["response_format"] = {{"type", type}, {"json_schema", std::move(schema)}};
    } else if (type == "json_object") {
      body["response_format"] = {{"type", type}};
    } else if (type != "text") {
      notes.refuse("text.format.type", "'" + type + "' has no counterpart");
    }
    format.refuse_rest(kTarget);
  }
  config.refuse_rest(kTarget);
}

void reasoning(Members& request, Json& body) {
  const Json* given = request.object("reasoning");
  if (!given) return;
  Members config(*given, "reasoning", request.notes());
  config.copy("effort", body, "reasoning_effort");
  config.announce({"summary", "generate_summary", "context"});
  config.refuse_rest(kTarget);
}

// `include` asks for members of the answer; log-probabilities are the one that chat has too.
void include(Members& request, Json& body) {
  Notes& notes = request.notes();
  const Json* wanted = request.array("include");
  bool logprobs = false;
  for (std::size_t i = 0; wanted && i < wanted->size(); ++i) {
    const Json& name = (*wanted)[i];
    if (name == "message.output_text.logprobs") {
      logprobs = true;
    } else if (name == "reasoning.encrypted_content") {
      notes.announce(at("include", i));  // for giving reasoning back, where there is any
    } else {
      notes.refuse(at("include", i), "has no counterpart in " + std::string(kTarget));
    }
  }
  const Json* top = request.number("top_logprobs");
  if (logprobs) {
    body["logprobs"] = true;
    if (top) body["top_logprobs"] = *top;
  } else if (top && *top != 0) {
    notes.announce("top_logprobs");  // without the include OpenAI sends none either
  }
}

}  // namespace

Translated responses_to_chat(const Json& response_request) {
  Notes notes;
  Members request(response_request, "", notes);
  Json body = Json::object();
  request.copy("model", body);
  const std::string* instructions = request.text("instructions");
  if (const Json* input = request.take("input")) {
    body["messages"] = responses_turns_to_chat(instructions, *input, notes);
  } else {
    notes.refuse("input", "is missing");
  }
  if (const Json* limit = request.number("max_output_tokens")) {
    body["max_completion_tokens"] = *limit;
  }
  for (const char* name : {"temperature", "top_p", "user"}) request.copy(name, body);
  tools(request, body);
  text_config(request, body);
  reasoning(request, body);
  include(request, body);
  if (request.flag("stream")) {
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};  // Responses streams always have it
  }
  if (const Json* given = request.object("stream_options")) {
    Members options(*given, "stream_options", notes);
    options.announce({"include_obfuscation"});
    options.refuse_rest(kTarget);
  }
  request.refuse("previous_response_id", kStateless);
  request.refuse("conversation", kStateless);
  request.refuse("prompt", "is a template stored at OpenAI");
  request.refuse_unless("background", false,
                        "is not available here: answers are not kept for later");
  if (request.flag("store")) notes.announce("store");
  // Echoed in the answer, which is all that it does there.
  request.take("metadata");
  if (const Json* truncation = request.take("truncation");
      truncation && *truncation != "disabled") {
    notes.announce("truncation");
  }
  request.announce({"max_tool_calls", "prompt_cache_key", "prompt_cache_options",
                    "prompt_cache_retention", "safety_identifier", "service_tier"});
  request.refuse_rest(kTarget);
  return std::move(notes).result(std::move(body));
}

}  // namespace fixpoint::dialects
