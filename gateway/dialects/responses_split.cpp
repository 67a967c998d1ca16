#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/responses_stream.hpp"
#include "gateway/dialects/text_pieces.hpp"

namespace fixpoint::dialects {

void ResponseEvents::add(const char* type, Json members) {
  Json body = {{"type", type}, {"sequence_number", sequence_++}};
  body.update(members);
  events_.push_back({type, to_text(body)});
}

void ResponseEvents::part_event(const char* type, Json members) {
  Json body = {{"item_id", item_id_}, {"output_index", output_index_}};
  body["content_index"] = part_index_;
  body.update(members);
  add(type, std::move(body));
}

void ResponseEvents::created(const Json& response) {
  add("response.created", {{"response", response}});
  add("response.in_progress", {{"response", response}});
}

void ResponseEvents::item_added(const Json& item) {
  // Only function calls may lack an id of their own.
  const std::string* id = text_member(item, "id");
  item_id_ = id ? *id : text_or_empty(item, "call_id");
  part_index_ = 0;
  add("response.output_item.added", {{"output_index", output_index_}, {"item", item}});
}

void ResponseEvents::part_added(const Json& part) {
  part_event("response.content_part.added", {{"part", part}});
}

void ResponseEvents::text_delta(std::string_view piece, const Json* logprobs) {
  Json members = Json::object();
  members["delta"] = piece;
  members["logprobs"] = logprobs ? *logprobs : Json::array();
  part_event("response.output_text.delta", std::move(members));
}

void ResponseEvents::refusal_delta(std::string_view piece) {
  Json members = Json::object();
  members["delta"] = piece;
  part_event("response.refusal.delta", std::move(members));
}

void ResponseEvents::reasoning_delta(std::string_view piece) {
  Json members = Json::object();
  members["delta"] = piece;
  part_event("response.reasoning_text.delta", std::move(members));
}

void ResponseEvents::arguments_delta(std::string_view piece) {
  Json members = {{"item_id", item_id_}, {"output_index", output_index_}};
  members["delta"] = piece;
  add("response.function_call_arguments.delta", std::move(members));
}

void ResponseEvents::input_delta(std::string_view piece) {
  Json members = {{"item_id", item_id_}, {"output_index", output_index_}};
  members["delta"] = piece;
  add("response.custom_tool_call_input.delta", std::move(members));
}

void ResponseEvents::part_done(const Json& part) {
  const std::string type = text_or_empty(part, "type");
  if (type == "output_text") {
    const Json* logprobs = array_member(part, "logprobs");
    Json members = {{"text", text_or_empty(part, "text")}};
    members["logprobs"] = logprobs ? *logprobs : Json::array();
    part_event("response.output_text.done", std::move(members));
  } else if (type == "refusal") {
    part_event("response.refusal.done", {{"refusal", text_or_empty(part, "refusal")}});
  } else if (type == "reasoning_text") {
    part_event("response.reasoning_text.done", {{"text", text_or_empty(part, "text")}});
  }
  part_event("response.content_part.done", {{"part", part}});
  ++part_index_;
}

void ResponseEvents::item_done(const Json& item) {
  const std::string type = text_or_empty(item, "type");
  if (type == "function_call") {
    add("response.function_call_arguments.done", {{"item_id", item_id_},
                                                  {"output_index", output_index_},
                                                  {"name", text_or_empty(item, "name")},
                                                  {"arguments", text_or_empty(item, "arguments")}});
  } else if (type == "custom_tool_call") {
    add("response.custom_tool_call_input.done", {{"item_id", item_id_},
                                                 {"output_index", output_index_},
                                                 {"input", text_or_empty(item, "input")}});
  }
  add("response.output_item.done", {{"output_index", output_index_}, {"item", item}});
  ++output_index_;
}

void ResponseEvents::message_parts(const Json& item) {
  for (const auto& part : item["content"]) {
    const std::string type = text_or_empty(part, "type");
    const std::string* text = text_member(part, type == "refusal" ? "refusal" : "text");
    Json start = part;
    if (text && type == "output_text") {
      start["text"] = "";
      if (array_member(part, "annotations")) start["annotations"] = Json::array();
      if (array_member(part, "logprobs")) start["logprobs"] = Json::array();
      part_added(start);
      const Json* logprobs = array_member(part, "logprobs");
      const auto tokens = token_pieces(*text, logprobs, Pieces::small);
      for (const auto& [piece, entry] : tokens) {
        const Json one = Json::array({*entry});
        text_delta(piece, &one);
      }
      if (tokens.empty() && logprobs && !logprobs->empty()) {
        text_delta(*text, logprobs);  // one event: the entries cannot be dealt out
      } else if (tokens.empty()) {
        for (const auto piece : pieces_of(*text, Pieces::small)) text_delta(piece, nullptr);
      }
      if (const Json* annotations = array_member(part, "annotations")) {
        for (std::size_t i = 0; i < annotations->size(); ++i) {
          part_event("response.output_text.annotation.added",
                     {{"annotation_index", i}, {"annotation", (*annotations)[i]}});
        }
      }
    } else if (text && (type == "refusal" || type == "reasoning_text")) {
      start[type == "refusal" ? "refusal" : "text"] = "";
      part_added(start);
      for (const auto piece : pieces_of(*text, Pieces::small)) {
        if (type == "refusal") {
          refusal_delta(piece);
        } else {
          reasoning_delta(piece);
        }
      }
    } else {
      part_added(part);
    }
    part_done(part);
  }
}

void ResponseEvents::reasoning_parts(const Json& item) {
  std::size_t index = 0;
  const auto summary_event = [&](const char* type, Json members) {
    Json body = {{"item_id", item_id_}, {"output_index", output_index_}};
    body["summary_index"] = index;
    body.update(members);
    add(type, std::move(body));
  };
  for (const auto& part : item["summary"]) {
    const std::string text = text_or_empty(part, "text");
    Json start = part;
    if (start.is_object()) start["text"] = "";
    summary_event("response.reasoning_summary_part.added", {{"part", std::move(start)}});
    for (const auto piece : pieces_of(text, Pieces::small)) {
      Json members = Json::object();
      members["delta"] = piece;
      summary_event("response.reasoning_summary_text.delta", std::move(members));
    }
    summary_event("response.reasoning_summary_text.done", {{"text", text}});
    summary_event("response.reasoning_summary_part.done", {{"part", part}});
    ++index;
  }
}

void ResponseEvents::item(const Json& item) {
  const std::string type = text_or_empty(item, "type");
  const bool known = type == "message" || type == "reasoning" || type == "function_call" ||
                     type == "custom_tool_call";
  Json start = item;
  if (known && start.contains("status")) start["status"] = "in_progress";
  const bool content = known && array_member(item, "content");
  const bool summary = type == "reasoning" && array_member(item, "summary");
  const std::string* arguments = type == "function_call" ? text_member(item, "arguments") : nullptr;
  const std::string* input = type == "custom_tool_call" ? text_member(item, "input") : nullptr;
  if (content) start["content"] = Json::array();
  if (summary) start["summary"] = Json::array();
  if (arguments) start["arguments"] = "";
  if (input) start["input"] = "";
  item_added(start);
  if (summary) reasoning_parts(item);
  if (content) message_parts(item);
  if (arguments) {
    for (const auto piece : pieces_of(*arguments, Pieces::small)) arguments_delta(piece);
  }
  if (input) {
    for (const auto piece : pieces_of(*input, Pieces::small)) input_delta(piece);
  }
  item_done(item);
}

void ResponseEvents::finished(const Json& response) {
  const std::string status = text_or_empty(response, "status");
  add(status == "incomplete"                        ? "response.incomplete"
      : status == "failed" || status == "cancelled" ? "response.failed"
                                                    : "response.completed",
      {{"response", response}});
}

std::vector<SseEvent> ResponseEvents::take() {
  return std::exchange(events_, {});
}

std::vector<SseEvent> split_response(const Json& answer) {
  ResponseEvents events;
  Json start = answer;
  start["status"] = "in_progress";
  start["output"] = Json::array();
  for (const char* late : {"usage", "error", "incomplete_details", "completed_at"}) {
    if (start.contains(late)) start[late] = Json();
  }
  events.created(start);
  if (const Json* output = array_member(answer, "output")) {
    for (const auto& item : *output) events.item(item);
  }
  events.finished(answer);
  return events.take();
}

}  // namespace fixpoint::dialects
