#include <utility>

#include "gateway/dialects/answer_words.hpp"
#include "gateway/dialects/chat_blocks.hpp"
#include "gateway/dialects/chat_chunk.hpp"
#include "gateway/dialects/responses_stream.hpp"
#include "gateway/dialects/translate_answers.hpp"

namespace fixpoint::dialects {
namespace {

// What a response says of its request, with OpenAI's defaults; null: the maker's default, unknown.
Json echo_of(const Json& request) {
  const auto given = [&](const char* name, Json absent) {
    const Json* value = member(request, name);
    return value && !value->is_null() ? *value : absent;
  };
  Json reasoning = {{"effort", Json()}, {"summary", Json()}};
  if (const Json* asked = object_member(request, "reasoning")) reasoning.update(*asked);
  Json echo = Json::object();
  echo["instructions"] = given("instructions", Json());
  echo["max_output_tokens"] = given("max_output_tokens", Json());
  echo["max_tool_calls"] = given("max_tool_calls", Json());
  echo["metadata"] = given("metadata", Json::object());
  echo["parallel_tool_calls"] = given("parallel_tool_calls", true);
  echo["previous_response_id"] = Json();
  echo["prompt_cache_key"] = given("prompt_cache_key", Json());
  echo["reasoning"] = std::move(reasoning);
  echo["safety_identifier"] = given("safety_identifier", Json());
  echo["service_tier"] = "default";
  echo["store"] = false;
  echo["temperature"] = given("temperature", Json());
  echo["text"] = given("text", Json::object());
  if (echo["text"].is_object() && !has_value(echo["text"], "format")) {
    echo["text"]["format"] = {{"type", "text"}};
  }
  echo["tool_choice"] = given("tool_choice", "auto");
  echo["tools"] = given("tools", Json::array());
  echo["top_logprobs"] = given("top_logprobs", 0);
  echo["top_p"] = given("top_p", Json());
  echo["truncation"] = "disabled";
  echo["user"] = given("user", Json());
  return echo;
}

// An answer of OpenAI's chat/completions for a client of its responses.
class ResponsesFromChat final : public EventTranslator, private BlockWriter {
 public:
  explicit ResponsesFromChat(const Json& request)
      : EventTranslator(Endpoint::responses, Endpoint::chat_completions), echo_(echo_of(request)) {}

  Result<std::vector<SseEvent>> event(const SseEvent& event) override {
    const auto chunk = reader_.read(event);
    if (!chunk) return tl::make_unexpected(chunk.error());
    if (!started_ && reader_.started()) {
      started_ = true;
      events_.created(response("in_progress"));
    }
    if (!chunk->choice.is_null()) {
      if (auto added = blocks_.add(chunk->choice); !added) {
        return tl::make_unexpected(added.error());
      }
    }
    if (chunk->end) {
      if (auto stopped = stop(); !stopped) return tl::make_unexpected(stopped.error());
    }
    return events_.take();
  }

 private:
  Json response(const char* status) const {
    Json out = {{"id", id_with_prefix(reader_.id(), "resp_")},
                {"object", "response"},
                {"created_at", reader_.created()},
                {"status", status},
                {"background", false},
                {"error", Json()},
                {"incomplete_details", Json()}};
    out["model"] = reader_.model();
    out["output"] = Json::array();
    out.update(echo_);
    out["usage"] = Json();
    return out;
  }

  Result<void> stop() {
    const std::string& reason = reader_.finish_reason();
    const bool whole = reason == "stop" || reason == "tool_calls";
    if (!whole && reason != "length" && reason != "content_filter") {
      return fail(ErrorCode::protocol,
                  "the finish_reason '" + reason + "' has no counterpart in OpenAI's responses");
    }
    cut_ = !whole;
    blocks_.finish();
    Json out = response(whole ? "completed" : "incomplete");
    if (!whole) {
      out["incomplete_details"] = {
          {"reason", reason == "length" ? "max_output_tokens" : "content_filter"}};
    }
    out["output"] = std::move(output_);
    out["usage"] = reader_.usage().is_null() ? Json() : response_usage(reader_.usage());
    events_.finished(out);
    return {};
  }

  void begin(const BlockStart& start) override {
    kind_ = start.kind;
    text_.clear();
    logprobs_ = Json::array();
    const bool call = kind_ == BlockKind::call, reasoning = kind_ == BlockKind::reasoning;
    const std::string suffix = "_" + std::to_string(output_.size());
    item_ = {{"id", id_with_prefix(reader_.id(), call        ? "fc_"
                                                 : reasoning ? "rs_"
                                                             : "msg_") +
                        suffix},
             {"type", call        ? "function_call"
                      : reasoning ? "reasoning"
                                  : "message"}};
    item_["status"] = "in_progress";
    if (call) {
      item_["call_id"] = start.call_id;
      item_["name"] = start.name;
      item_["arguments"] = "";
    } else if (reasoning) {
      item_["summary"] = Json::array();
      item_["content"] = Json::array();
    } else {
      item_["role"] = "assistant";
      item_["content"] = Json::array();
    }
    events_.item_added(item_);
    if (!call) events_.part_added(part());
  }

  void append(std::string_view piece, const Json* logprobs) override {
    text_ += piece;
    switch (kind_) {
      case BlockKind::text:
        if (logprobs) logprobs_.insert(logprobs_.end(), logprobs->begin(), logprobs->end());
        return events_.text_delta(piece, logprobs);
      case BlockKind::refusal:
        return events_.refusal_delta(piece);
      case BlockKind::reasoning:
        return events_.reasoning_delta(piece);
      case BlockKind::call:
        return events_.arguments_delta(piece);
    }
  }

  void end() override {
    item_["status"] = cut_ ? "incomplete" : "completed";
    if (kind_ == BlockKind::call) {
      item_["arguments"] = text_;
    } else {
      const Json done = part();
      events_.part_done(done);
      item_["content"].push_back(done);
    }
    events_.item_done(item_);
    output_.push_back(std::move(item_));
  }

  // The open item's only part.
  Json part() const {
    if (kind_ == BlockKind::refusal) return {{"type", "refusal"}, {"refusal", text_}};
    if (kind_ == BlockKind::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
    Json out = {{"type", "output_text"}, {"text", text_}};
    out["annotations"] = Json::array();
    out["logprobs"] = logprobs_;
    return out;
  }

  Json echo_;
  ChunkReader reader_;
  ChatBlocks blocks_{*this};
  ResponseEvents events_;
  Json output_ = Json::array();
  bool started_ = false;
  bool cut_ = false;  // the answer ended before its end

  // The open block.
  BlockKind kind_ = BlockKind::text;
  Json item_, logprobs_;
  std::string text_;
};

}  // namespace

std::unique_ptr<AnswerTranslator> responses_from_chat(const Json& request) {
  return std::make_unique<ResponsesFromChat>(request);
}

}  // namespace fixpoint::dialects
