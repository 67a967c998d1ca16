#include <utility>

#include "gateway/dialects/answer_words.hpp"
#include "gateway/dialects/chat_blocks.hpp"
#include "gateway/dialects/chat_chunk.hpp"
#include "gateway/dialects/messages_stream.hpp"
#include "gateway/dialects/translate_answers.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// An answer of OpenAI's chat/completions for a client of Anthropic's messages.
class MessagesFromChat final : public EventTranslator, private BlockWriter {
 public:
  MessagesFromChat() : EventTranslator(Endpoint::messages, Endpoint::chat_completions) {}

  Result<std::vector<SseEvent>> event(const SseEvent& event) override {
    const auto chunk = reader_.read(event);
    if (!chunk) return tl::make_unexpected(chunk.error());
    if (!started_ && reader_.started()) start();
    if (!chunk->choice.is_null()) {
      if (auto added = blocks_.add(chunk->choice); !added) {
        return tl::make_unexpected(added.error());
      }
    }
    if (chunk->end) {
      if (auto stopped = stop(); !stopped) return tl::make_unexpected(stopped.error());
    }
    return std::exchange(out_, {});
  }

 private:
  void start() {
    started_ = true;
    Json message = {{"id", id_with_prefix(reader_.id(), "msg_")},
                    {"type", "message"},
                    {"role", "assistant"},
                    {"model", reader_.model()},
                    {"content", Json::array()},
                    {"stop_reason", Json()},
                    {"stop_sequence", Json()}};
    message["usage"] = message_usage(reader_.usage());  // mostly unknown until the end
    add({{"type", "message_start"}, {"message", std::move(message)}});
  }

  Result<void> stop() {
    const auto reason =
        message_stop_reason(reader_.finish_reason(), blocks_.any_call(), blocks_.any_refusal());
    if (!reason) return tl::make_unexpected(reason.error());
    blocks_.finish();
    const bool cut = *reason == "max_tokens" || *reason == "model_context_window_exceeded";
    if (any_invalid_ && !cut) {
      return fail(ErrorCode::protocol, "chunk: the arguments of a tool call are no JSON object");
    }
    Json delta = {{"stop_reason", *reason}, {"stop_sequence", Json()}};
    // Some servers tell which stop sequence it was.
    if (*reason == "end_turn" && reader_.stop_sequence().is_string()) {
      delta = {{"stop_reason", "stop_sequence"}, {"stop_sequence", reader_.stop_sequence()}};
    }
    add({{"type", "message_delta"},
         {"delta", std::move(delta)},
         {"usage", message_usage(reader_.usage())}});
    add({{"type", "message_stop"}});
    return {};
  }

  void begin(const BlockStart& start) override {
    kind_ = start.kind;
    arguments_.clear();
    input_begun_ = false;
    Json block;
    if (kind_ == BlockKind::call) {
      block = {{"type", "tool_use"}, {"id", start.call_id}, {"name", start.name}};
      block["input"] = Json::object();
    } else if (kind_ == BlockKind::reasoning) {
      block = {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
    } else {
      block = {{"type", "text"}, {"text", ""}};
    }
    add({{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(block)}});
  }
  void append(std::string_view piece, const Json*) override {
    if (kind_ != BlockKind::call) return add_piece(piece);
    arguments_ += piece;
    if (input_begun_) return add_piece(piece);
    const auto first = arguments_.find_first_not_of(kSpace);
    if (first == std::string::npos || arguments_[first] != '{') return;
    input_begun_ = true;
    add_piece(arguments_);
  }
  void end() override {
    if (kind_ == BlockKind::call) end_input();
    add({{"type", "content_block_stop"}, {"index", index_++}});
  }

  // An input is an object. What some models say for none ("", null) becomes an empty one; one that
  // was made a string twice is taken out of the outer string. Only the end tells whether a limit
  // has cut what is neither.
  void end_input() {
    if (arguments_.find_first_not_of(kSpace) == std::string::npos) return;
    const auto parsed = parse_answer(arguments_);
    if (parsed && (parsed->is_null() || parsed->is_object())) return;
    const std::string* inner = parsed ? parsed->get_ptr<const std::string*>() : nullptr;
    const auto unwrapped = inner ? parse_answer(*inner) : parsed;
    const bool is_object = unwrapped && unwrapped->is_object();
    if (!is_object) any_invalid_ = true;
    if (!input_begun_) add_piece(is_object ? *inner : arguments_);
  }
  void add_piece(std::string_view piece) {
    const bool call = kind_ == BlockKind::call, reasoning = kind_ == BlockKind::reasoning;
    Json delta = {{"type", call        ? "input_json_delta"
                           : reasoning ? "thinking_delta"
                                       : "text_delta"}};
    delta[call ? "partial_json" : reasoning ? "thinking" : "text"] = piece;
    add({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
  }

  void add(const Json& body) { out_.push_back(message_event(body)); }

  ChunkReader reader_;
  ChatBlocks blocks_{*this};
  BlockKind kind_ = BlockKind::text;  // of the open block
  std::size_t index_ = 0;
  std::string arguments_;     // of the open call, so far
  bool input_begun_ = false;  // they begin as an object does, and are passed on as they come
  bool any_invalid_ = false;  // arguments that are no object
  bool started_ = false;
  std::vector<SseEvent> out_;
};

}  // namespace

std::unique_ptr<AnswerTranslator> messages_from_chat() {
  return std::make_unique<MessagesFromChat>();
}

}  // namespace fixpoint::dialects
