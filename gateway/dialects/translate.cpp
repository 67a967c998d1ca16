#include "gateway/dialects/translate.hpp"

#include <algorithm>
#include <utility>

#include "gateway/dialects/chat_stream.hpp"
#include "gateway/dialects/messages_stream.hpp"
#include "gateway/dialects/translate_answers.hpp"
#include "gateway/dialects/translate_requests.hpp"

namespace fixpoint {
namespace dialects {
namespace {

// One translator after the other.
class Chain final : public EventTranslator {
 public:
  Chain(Endpoint client, Endpoint maker, std::unique_ptr<AnswerTranslator> first,
        std::unique_ptr<AnswerTranslator> second)
      : EventTranslator(client, maker), first_(std::move(first)), second_(std::move(second)) {}

  Result<std::vector<SseEvent>> event(const SseEvent& event) override {
    auto between = first_->event(event);
    if (!between) return between;
    std::vector<SseEvent> out;
    for (const auto& each : *between) {
      auto translated = second_->event(each);
      if (!translated) return translated;
      for (auto& last : *translated) out.push_back(std::move(last));
    }
    return out;
  }

 private:
  std::unique_ptr<AnswerTranslator> first_, second_;
};

// A Responses request reaches Anthropic by way of chat: what is said there of a chat member is said
// of the member that it came from.
std::string response_member(const std::string& chat_member) {
  struct Name {
    std::string_view chat, response;
  };
  static constexpr Name kNames[] = {{"max_completion_tokens", "max_output_tokens"},
                                    {"response_format.json_schema", "text.format"},
                                    {"response_format", "text.format"},
                                    {"reasoning_effort", "reasoning.effort"},
                                    {"verbosity", "text.verbosity"},
                                    {"logprobs", "include"}};
  // Items and turns do not count alike.
  if (chat_member.starts_with("messages[")) return "input";
  for (const auto& [chat, response] : kNames) {
    if (chat_member.starts_with(chat)) {
      return std::string(response) + chat_member.substr(chat.size());
    }
  }
  return chat_member;
}

Translated responses_to_messages(const Json& body) {
  auto chat = responses_to_chat(body);
  if (!chat) return chat;
  auto translated = chat_to_messages(chat->body);
  if (!translated) {
    auto error = std::move(translated.error());
    const std::string chat_name = "'" + error.param + "'";
    error.param = response_member(error.param);
    if (error.message.starts_with(chat_name)) {
      error.message.replace(0, chat_name.size(), "'" + error.param + "'");
    }
    return tl::make_unexpected(std::move(error));
  }
  auto& dropped = chat->dropped;
  for (const auto& chat_name : translated->dropped) {
    auto name = response_member(chat_name);
    if (std::find(dropped.begin(), dropped.end(), name) == dropped.end()) {
      dropped.push_back(std::move(name));
    }
  }
  translated->dropped = std::move(dropped);
  return translated;
}

}  // namespace

Result<Json> EventTranslator::plain(const Json& answer) {
  if (!answer.is_object()) return fail(ErrorCode::protocol, "the answer is not a JSON object");
  const auto assembler = make_assembler(client_);
  const auto events = maker_ == Endpoint::messages
                          ? split_message(answer, Pieces::whole)
                          : split_chat(maker_, answer, true, Pieces::whole);
  for (const auto& each : events) {
    const auto translated = event(each);
    if (!translated) return tl::make_unexpected(translated.error());
    for (const auto& out : *translated) {
      if (auto added = assembler->add(out); !added) return tl::make_unexpected(added.error());
    }
  }
  return assembler->assemble();
}

}  // namespace dialects

bool can_translate(Endpoint from, Endpoint to) {
  if (to == Endpoint::chat_completions) {
    return from == Endpoint::messages || from == Endpoint::responses;
  }
  return to == Endpoint::messages &&
         (from == Endpoint::chat_completions || from == Endpoint::responses);
}

tl::expected<TranslatedRequest, TranslationError> translate_request(Endpoint from, Endpoint to,
                                                                    const Json& body) {
  if (from == Endpoint::messages) return dialects::messages_to_chat(body);
  if (from == Endpoint::chat_completions) return dialects::chat_to_messages(body);
  return to == Endpoint::messages ? dialects::responses_to_messages(body)
                                  : dialects::responses_to_chat(body);
}

std::unique_ptr<AnswerTranslator> make_translator(Endpoint client, Endpoint maker,
                                                  const Json& request) {
  if (client == Endpoint::messages) return dialects::messages_from_chat();
  if (client == Endpoint::chat_completions) return dialects::chat_from_messages();
  auto from_chat = dialects::responses_from_chat(request);
  if (maker == Endpoint::chat_completions) return from_chat;
  return std::make_unique<dialects::Chain>(client, maker, dialects::chat_from_messages(),
                                           std::move(from_chat));
}

}  // namespace fixpoint
