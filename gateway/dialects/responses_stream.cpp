#include "gateway/dialects/responses_stream.hpp"

#include <algorithm>
#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/limits.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {
namespace {

// Where a delta event's piece belongs: in a list of the item's parts, or in the item itself.
struct DeltaKind {
  std::string_view type;
  const char* list;      // null: in the item
  const char* position;  // the event's member that counts the parts
  const char* member;
};
constexpr DeltaKind kDeltas[] = {
    {"response.output_text.delta", "content", "content_index", "text"},
    {"response.refusal.delta", "content", "content_index", "refusal"},
    {"response.reasoning_text.delta", "content", "content_index", "text"},
    {"response.reasoning_summary_text.delta", "summary", "summary_index", "text"},
    {"response.function_call_arguments.delta", nullptr, nullptr, "arguments"},
    {"response.mcp_call_arguments.delta", nullptr, nullptr, "arguments"},
    {"response.custom_tool_call_input.delta", nullptr, nullptr, "input"},
    {"response.code_interpreter_call_code.delta", nullptr, nullptr, "code"},
};

std::size_t index_in(const Json& event, const char* name) {
  const Json* index = member(event, name);
  return index && index->is_number_unsigned() ? index->get<std::size_t>() : kMaxMerged;
}

// The part at that place, made if it is the next one; null pointer: neither there nor next.
Json* part_of(Json& item, const char* list, std::size_t index) {
  Json& parts = item[list];
  if (parts.is_null()) parts = Json::array();
  if (!parts.is_array() || index > parts.size() || index >= kMaxMerged) return nullptr;
  if (index == parts.size()) parts.push_back(Json::object());
  return parts[index].is_object() ? &parts[index] : nullptr;
}

}  // namespace

Result<StreamStep> ResponsesAssembler::add(const SseEvent& event) {
  if (event.event == "error") return StreamStep::error;
  if (const auto piece = template_.match(event.data)) {
    if (std::string* target = delta_target(repeated_, repeated_type_)) {
      *target += *piece;
      return StreamStep::more;
    }
  }
  template_.forget();
  bool exact = true;
  const auto parsed = parse_answer(event.data, &exact);
  if (!parsed) return fail(ErrorCode::protocol, "sent an event that " + parsed.error().message);
  if (!parsed->is_object()) return fail(ErrorCode::protocol, "event: not a JSON object");
  const Json& body = *parsed;
  const std::string* named = text_member(body, "type");
  const std::string& type = named ? *named : event.event;
  if (type == "error" || type == "response.failed" || has_value(body, "error")) {
    return StreamStep::error;
  }
  if (type == "response.completed" || type == "response.incomplete") {
    auto finished = finish(body);
    exact_ = exact && (exact_ || has_own_output());
    return finished;
  }
  exact_ = exact_ && exact;
  if (type == "response.created" || type == "response.queued" || type == "response.in_progress") {
    const Json* response = object_member(body, "response");
    if (!response) return fail(ErrorCode::protocol, type + ": 'response' is not an object");
    response_ = *response;
    return StreamStep::more;
  }
  if (auto changed = change_item(type, body, event.data); !changed) {
    return tl::make_unexpected(changed.error());
  }
  return StreamStep::more;
}

Result<Json*> ResponsesAssembler::item_of(const Json& event) {
  const std::size_t index = index_in(event, "output_index");
  if (index >= kMaxMerged) {
    return fail(ErrorCode::protocol, "event: 'output_index' is not a number from 0 to 1023");
  }
  if (items_.size() <= index) {
    items_.resize(index + 1);
    done_.resize(index + 1);
  }
  return &items_[index];
}

// The snapshot serves answers that break off: what it cannot follow, the last event tells anyway.
Result<void> ResponsesAssembler::change_item(const std::string& type, const Json& event,
                                             std::string_view text) {
  if (!member(event, "output_index")) return {};
  const auto found = item_of(event);
  if (!found) return tl::make_unexpected(found.error());
  Json& item = **found;
  if (type == "response.output_item.added" || type == "response.output_item.done") {
    const Json* given = object_member(event, "item");
    if (!given) return fail(ErrorCode::protocol, type + ": 'item' is not an object");
    item = *given;
    if (type.ends_with(".done")) done_[index_in(event, "output_index")] = true;
    return {};
  }
  if (!item.is_object()) return {};
  const bool summary = type.starts_with("response.reasoning_summary_part.");
  if (summary || type.starts_with("response.content_part.")) {
    const char* list = summary ? "summary" : "content";
    Json* part = part_of(item, list, index_in(event, summary ? "summary_index" : "content_index"));
    if (const Json* given = object_member(event, "part"); part && given) *part = *given;
    return {};
  }
  if (type == "response.output_text.annotation.added") {
    Json* part = part_of(item, "content", index_in(event, "content_index"));
    const Json* annotation = member(event, "annotation");
    if (!part || !annotation) return {};
    Json& annotations = (*part)["annotations"];
    if (!annotations.is_array()) annotations = Json::array();
    annotations.push_back(*annotation);
    return {};
  }
  const std::string* piece = text_member(event, "delta");
  std::string* target = piece ? delta_target(event, type) : nullptr;
  if (!target) return {};
  *target += *piece;
  const Json* logprobs = array_member(event, "logprobs");
  if (logprobs && !logprobs->empty()) {
    Json* part = part_of(item, "content", index_in(event, "content_index"));
    if (!part) return {};
    Json& whole = (*part)["logprobs"];
    if (!whole.is_array()) whole = Json::array();
    whole.insert(whole.end(), logprobs->begin(), logprobs->end());
    return {};
  }
  repeated_ = event;
  repeated_type_ = type;
  template_.learn(text, {"delta"}, {{"sequence_number"}, {"obfuscation"}});
  return {};
}

std::string* ResponsesAssembler::delta_target(const Json& event, std::string_view type) {
  for (const DeltaKind& kind : kDeltas) {
    if (kind.type != type) continue;
    const std::size_t index = index_in(event, "output_index");
    if (index >= items_.size() || !items_[index].is_object()) return nullptr;
    Json* owner = &items_[index];
    if (kind.list) owner = part_of(*owner, kind.list, index_in(event, kind.position));
    if (!owner) return nullptr;
    Json& target = (*owner)[kind.member];
    if (target.is_null()) target = "";
    return target.get_ptr<std::string*>();
  }
  return nullptr;
}

Result<StreamStep> ResponsesAssembler::finish(const Json& event) {
  const Json* response = object_member(event, "response");
  if (!response) {
    return fail(ErrorCode::protocol, "the last event: 'response' is not an object");
  }
  response_ = *response;
  ended_ = true;
  return StreamStep::end;
}

// Some servers leave the output out of the last event: the items were sent before.
bool ResponsesAssembler::has_own_output() const {
  const Json* output = array_member(response_, "output");
  return ended_ && output && (!output->empty() || items_.empty());
}

// Items that are not done have what the deltas of known types said.
bool ResponsesAssembler::faithful() const {
  return exact_ &&
         (has_own_output() || std::find(done_.begin(), done_.end(), false) == done_.end());
}

Json ResponsesAssembler::assemble() const {
  Json answer = response_.is_null() ? Json::object() : response_;
  if (has_own_output()) return answer;
  Json items = Json::array();
  for (const auto& item : items_) {
    if (!item.is_null()) items.push_back(item);
  }
  answer["output"] = std::move(items);
  return answer;
}

}  // namespace fixpoint::dialects
