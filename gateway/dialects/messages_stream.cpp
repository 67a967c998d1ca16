#include "gateway/dialects/messages_stream.hpp"

#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/limits.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kNoStart = "an event before message_start";
// How Anthropic's documentation wraps an input that a token limit has cut.
constexpr const char* kInvalidInput = "INVALID_JSON";

// A delta's own members, into the block. False: something was there already, so that how the two
// belong together is a guess.
bool merge_unknown(Json& block, const Json& delta) {
  bool certain = true;
  for (const auto& [name, value] : delta.items()) {
    if (name == "type" || value.is_null()) continue;
    Json& into = block[name];
    certain = certain && (into.is_string() ? into == "" : into.empty());
    if (into.is_string() && value.is_string()) {
      into.get_ref<std::string&>() += value.get_ref<const std::string&>();
    } else if (into.is_array() && value.is_array()) {
      into.insert(into.end(), value.begin(), value.end());
    } else {
      into = value;
    }
  }
  return certain;
}

void append_text(Json& block, const char* name, const std::string& piece) {
  Json& into = block[name];
  if (!into.is_string()) into = "";
  into.get_ref<std::string&>() += piece;
}

}  // namespace

SseEvent message_event(const Json& body) {
  return {text_or_empty(body, "type"), to_text(body)};
}

Result<StreamStep> MessagesAssembler::add(const SseEvent& event) {
  if (event.event == "ping") return StreamStep::more;
  if (event.event == "error") return StreamStep::error;
  if (const auto piece = template_.match(event.data)) {
    // Only learned while the block was open, and forgotten at its end.
    Block& block = blocks_[block_];
    std::string* target =
        member_name_ == "input" ? &block.input : block.json[member_name_].get_ptr<std::string*>();
    if (target) {
      *target += *piece;
      return StreamStep::more;
    }
  }
  template_.forget();
  const auto parsed = parse_answer(event.data, &faithful_);
  if (!parsed) return fail(ErrorCode::protocol, "sent an event that " + parsed.error().message);
  if (!parsed->is_object()) return fail(ErrorCode::protocol, "event: not a JSON object");
  const Json& body = *parsed;
  const std::string* named = text_member(body, "type");
  const std::string& type = named ? *named : event.event;
  Result<void> done;
  if (type == "error") return StreamStep::error;
  if (type == "message_start") {
    done = start(body);
  } else if (type == "content_block_start") {
    done = start_block(body);
  } else if (type == "content_block_delta") {
    done = change_block(body, event.data);
  } else if (type == "content_block_stop") {
    const Json* index = member(body, "index");
    done = index && index->is_number_unsigned()
               ? stop_block(index->get<std::size_t>())
               : fail(ErrorCode::protocol, "content_block_stop: 'index' is not a number");
  } else if (type == "message_delta") {
    done = change_message(body);
  } else if (type == "message_stop") {
    return stop();
  }
  if (!done) return tl::make_unexpected(done.error());
  return StreamStep::more;
}

Result<void> MessagesAssembler::start(const Json& event) {
  if (!message_.is_null()) return fail(ErrorCode::protocol, "a second message_start");
  const Json* message = object_member(event, "message");
  if (!message) return fail(ErrorCode::protocol, "message_start: 'message' is not an object");
  message_ = *message;
  return {};
}

Result<void> MessagesAssembler::start_block(const Json& event) {
  if (message_.is_null()) return fail(ErrorCode::protocol, std::string(kNoStart));
  const Json* index = member(event, "index");
  const Json* block = object_member(event, "content_block");
  if (!block) {
    return fail(ErrorCode::protocol, "content_block_start: 'content_block' is not an object");
  }
  if (!index || *index != blocks_.size()) {
    return fail(ErrorCode::protocol, "content_block_start: 'index' is not the next one");
  }
  if (blocks_.size() >= kMaxMerged) {
    return fail(ErrorCode::protocol, "more than 1024 content blocks in an answer");
  }
  blocks_.push_back({*block, {}, true});
  return {};
}

Result<void> MessagesAssembler::change_block(const Json& event, std::string_view text) {
  const Json* index = member(event, "index");
  const Json* delta = object_member(event, "delta");
  if (!delta) return fail(ErrorCode::protocol, "content_block_delta: 'delta' is not an object");
  const std::size_t at =
      index && index->is_number_unsigned() ? index->get<std::size_t>() : blocks_.size();
  if (at >= blocks_.size() || !blocks_[at].open) {
    return fail(ErrorCode::protocol, "content_block_delta: 'index' is not an open block");
  }
  Block& block = blocks_[at];
  const std::string type = text_or_empty(*delta, "type");
  const auto piece = [&](const char* name) -> const std::string* {
    return text_member(*delta, name);
  };
  const char* repeated = nullptr;  // the delta's member that the next event may differ in
  if (type == "text_delta" && piece("text")) {
    append_text(block.json, repeated = "text", *piece("text"));
  } else if (type == "thinking_delta" && piece("thinking")) {
    append_text(block.json, repeated = "thinking", *piece("thinking"));
  } else if (type == "input_json_delta" && piece("partial_json")) {
    block.input += *piece(repeated = "partial_json");
  } else if (type == "signature_delta" && piece("signature")) {
    block.json["signature"] = *piece("signature");
  } else if (type == "citations_delta" && member(*delta, "citation")) {
    Json& citations = block.json["citations"];
    if (!citations.is_array()) citations = Json::array();
    citations.push_back(*member(*delta, "citation"));
  } else if (block.json.size() + delta->size() > kMaxMerged) {
    return fail(ErrorCode::protocol, "a content block with more than 1024 members");
  } else {
    faithful_ = merge_unknown(block.json, *delta) && faithful_;
  }
  if (repeated) {
    block_ = at;
    member_name_ = type == "input_json_delta" ? "input" : repeated;
    template_.learn(text, {"delta", repeated}, {});
  }
  return {};
}

Result<void> MessagesAssembler::stop_block(std::size_t index) {
  if (index >= blocks_.size() || !blocks_[index].open) {
    return fail(ErrorCode::protocol, "content_block_stop: 'index' is not an open block");
  }
  Block& block = blocks_[index];
  block.open = false;
  if (block.input.empty()) return {};
  auto input = parse_answer(block.input, &faithful_);
  if (input) {
    block.json["input"] = std::move(*input);
  } else {
    any_invalid_ = true;
    block.json["input"] = {{kInvalidInput, block.input}};
  }
  block.input.clear();
  return {};
}

Result<void> MessagesAssembler::change_message(const Json& event) {
  if (message_.is_null()) return fail(ErrorCode::protocol, std::string(kNoStart));
  for (const auto& [name, value] : event.items()) {
    if (name == "type" || name == "delta" || name == "usage") continue;
    message_[name] = value;  // context_management and the like
  }
  if (const Json* delta = object_member(event, "delta")) {
    for (const auto& [name, value] : delta->items()) {
      if (!value.is_null() || !message_.contains(name)) message_[name] = value;
    }
  }
  if (const Json* usage = object_member(event, "usage")) {  // its counts are those of the whole
    Json& whole = message_["usage"];
    if (!whole.is_object()) whole = Json::object();
    for (const auto& [name, value] : usage->items()) {
      if (!value.is_null() || !whole.contains(name)) whole[name] = value;
    }
    if (whole.size() > kMaxMerged) {
      return fail(ErrorCode::protocol, "a usage with more than 1024 members");
    }
  }
  if (message_.size() > kMaxMerged) {
    return fail(ErrorCode::protocol, "an answer with more than 1024 members");
  }
  return {};
}

Result<StreamStep> MessagesAssembler::stop() {
  if (message_.is_null()) return fail(ErrorCode::protocol, std::string(kNoStart));
  for (std::size_t i = 0; i < blocks_.size(); ++i) {  // some servers leave their ends out
    if (!blocks_[i].open) continue;
    if (auto stopped = stop_block(i); !stopped) return tl::make_unexpected(stopped.error());
  }
  const std::string reason = text_or_empty(message_, "stop_reason");
  const bool cut = reason == "max_tokens" || reason == "model_context_window_exceeded";
  // Models that stream inputs as they write them may write anything: who reads the pieces has it.
  if (any_invalid_ && !cut) faithful_ = false;
  return StreamStep::end;
}

Json MessagesAssembler::assemble() const {
  Json answer = message_.is_null() ? Json::object() : message_;
  Json& content = answer["content"];
  content = Json::array();
  for (const Block& block : blocks_) content.push_back(block.json);
  return answer;
}

}  // namespace fixpoint::dialects
