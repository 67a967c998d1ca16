#include <ctime>
#include <utility>

#include "gateway/dialects/answer_words.hpp"
#include "gateway/dialects/limits.hpp"
#include "gateway/dialects/translate_answers.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {
namespace {

// An answer of Anthropic's messages for a client of OpenAI's chat/completions.
class ChatFromMessages final : public EventTranslator {
 public:
  ChatFromMessages() : EventTranslator(Endpoint::chat_completions, Endpoint::messages) {}

  Result<std::vector<SseEvent>> event(const SseEvent& event) override {
    if (event.event == "ping") return std::vector<SseEvent>();
    const auto parsed = parse_answer(event.data);
    if (!parsed) return fail(ErrorCode::protocol, "sent an event that " + parsed.error().message);
    if (auto done = translate(*parsed); !done) return tl::make_unexpected(done.error());
    return std::exchange(out_, {});
  }

 private:
  struct Block {
    bool call = false;
    std::size_t call_index = 0;
    bool any_input = false;  // pieces of arguments were sent
    Json input;              // of its start, for calls whose input came at once
  };

  Result<void> translate(const Json& event);
  Result<void> start_block(const Json& event);
  Result<void> change_block(const Json& event);
  Result<Block*> block_of(const Json& event);
  void stop_block(Block& block);
  Result<void> stop();

  void emit(Json choices, const Json* usage = nullptr) {
    Json chunk = {{"id", id_},
                  {"object", "chat.completion.chunk"},
                  {"created", created_},
                  {"model", model_},
                  {"choices", std::move(choices)}};
    if (usage) chunk["usage"] = *usage;
    out_.push_back({{}, to_text(chunk)});
  }
  void emit_delta(Json delta, Json finish = {}) {
    Json choice = {{"index", 0}, {"delta", std::move(delta)}, {"logprobs", Json()}};
    choice["finish_reason"] = std::move(finish);
    emit(Json::array({std::move(choice)}));
  }
  // The first chunk of all; it waits for the first block, since an answer of calls alone has no
  // content.
  void emit_role(bool has_text) {
    if (std::exchange(role_sent_, true)) return;
    emit_delta(
        {{"role", "assistant"}, {"content", has_text ? Json("") : Json()}, {"refusal", Json()}});
  }
  void emit_text(const char* name, const std::string& piece) {
    if (!piece.empty()) emit_delta({{name, piece}});
  }
  void emit_arguments(Block& block, const std::string& piece) {
    if (piece.empty()) return;
    block.any_input = true;
    Json call = {{"index", block.call_index}, {"function", {{"arguments", piece}}}};
    emit_delta({{"tool_calls", Json::array({std::move(call)})}});
  }

  std::string id_, model_, stop_reason_;
  const std::int64_t created_ = std::time(nullptr);  // Anthropic's answers have none
  Json usage_ = Json::object();
  std::vector<Block> blocks_;
  std::size_t calls_ = 0;
  bool started_ = false, role_sent_ = false;
  std::vector<SseEvent> out_;
};

Result<void> ChatFromMessages::translate(const Json& event) {
  const std::string type = text_or_empty(event, "type");
  if (type == "error") return fail(ErrorCode::protocol, "sent an error in its stream");
  if (type == "message_start") {
    const Json* message = object_member(event, "message");
    if (!message || started_)
      return fail(ErrorCode::protocol, "message_start: not a first message");
    started_ = true;
    id_ = id_with_prefix(text_or_empty(*message, "id"), "chatcmpl-");
    model_ = text_or_empty(*message, "model");
    if (const Json* usage = object_member(*message, "usage")) usage_.update(*usage);
    return {};
  }
  const bool known = type.starts_with("content_block_") || type.starts_with("message_");
  if (known && !started_) return fail(ErrorCode::protocol, "an event before message_start");
  if (type == "content_block_start") return start_block(event);
  if (type == "content_block_delta") return change_block(event);
  if (type == "content_block_stop") {
    const auto block = block_of(event);
    if (!block) return tl::make_unexpected(block.error());
    stop_block(**block);
    return {};
  }
  if (type == "message_delta") {
    if (const Json* delta = object_member(event, "delta")) {
      if (const std::string* reason = text_member(*delta, "stop_reason")) stop_reason_ = *reason;
    }
    const Json* usage = object_member(event, "usage");
    if (!usage) return {};
    for (const auto& [name, value] : usage->items()) {
      if (!value.is_null() && usage_.size() < kMaxMerged) usage_[name] = value;
    }
    return {};
  }
  return type == "message_stop" ? stop() : Result<void>();
}

Result<void> ChatFromMessages::start_block(const Json& event) {
  const Json* content = object_member(event, "content_block");
  if (!content) return fail(ErrorCode::protocol, "content_block_start: no 'content_block'");
  const Json* index = member(event, "index");
  if (!index || *index != blocks_.size() || blocks_.size() >= kMaxMerged) {
    return fail(ErrorCode::protocol, "content_block_start: 'index' is not the next one");
  }
  Block& block = blocks_.emplace_back();
  const std::string type = text_or_empty(*content, "type");
  emit_role(type != "tool_use");
  if (type == "text") {
    emit_text("content", text_or_empty(*content, "text"));
  } else if (type == "thinking") {
    emit_text("reasoning_content", text_or_empty(*content, "thinking"));
  } else if (type == "tool_use") {
    block.call = true;
    block.call_index = calls_++;
    block.input = content->value("input", Json::object());
    Json call = {{"index", block.call_index},
                 {"id", text_or_empty(*content, "id")},
                 {"type", "function"},
                 {"function", {{"name", text_or_empty(*content, "name")}, {"arguments", ""}}}};
    emit_delta({{"tool_calls", Json::array({std::move(call)})}});
  } else if (type != "redacted_thinking") {  // which nobody can read
    return fail(ErrorCode::protocol, "a content block of type '" + type +
                                         "' has no counterpart in OpenAI's chat/completions");
  }
  return {};
}

Result<ChatFromMessages::Block*> ChatFromMessages::block_of(const Json& event) {
  const Json* index = member(event, "index");
  if (!index || !index->is_number_unsigned() || index->get<std::size_t>() >= blocks_.size()) {
    return fail(ErrorCode::protocol, "an event's 'index' is not a content block");
  }
  return &blocks_[index->get<std::size_t>()];
}

Result<void> ChatFromMessages::change_block(const Json& event) {
  const auto block = block_of(event);
  if (!block) return tl::make_unexpected(block.error());
  const Json* delta = object_member(event, "delta");
  if (!delta) return fail(ErrorCode::protocol, "content_block_delta: no 'delta'");
  const std::string type = text_or_empty(*delta, "type");
  if (type == "text_delta") {
    emit_text("content", text_or_empty(*delta, "text"));
  } else if (type == "thinking_delta") {
    emit_text("reasoning_content", text_or_empty(*delta, "thinking"));
  } else if (type == "input_json_delta" && (*block)->call) {
    emit_arguments(**block, text_or_empty(*delta, "partial_json"));
  }
  // A signature or a citation is about the text, which is there.
  return {};
}

void ChatFromMessages::stop_block(Block& block) {
  // OpenAI's arguments are always JSON.
  if (block.call && !block.any_input) emit_arguments(block, to_text(block.input));
}

Result<void> ChatFromMessages::stop() {
  const auto finish = chat_finish_reason(stop_reason_);
  if (!finish) return tl::make_unexpected(finish.error());
  emit_role(true);
  emit_delta(Json::object(), *finish);
  const Json usage = chat_usage(usage_);
  emit(Json::array(), &usage);
  out_.push_back({{}, "[DONE]"});
  return {};
}

}  // namespace

std::unique_ptr<AnswerTranslator> chat_from_messages() {
  return std::make_unique<ChatFromMessages>();
}

}  // namespace fixpoint::dialects
