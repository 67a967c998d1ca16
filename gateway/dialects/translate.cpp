#include "gateway/dialects/translate.hpp"

#include <algorithm>
#include <span>
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

struct Name {
  std::string_view chat, client;
};
constexpr Name kResponsesNames[] = {{"max_completion_tokens", "max_output_tokens"},
                                    {"max_tokens", "max_output_tokens"},
                                    {"response_format.json_schema", "text.format"},
                                    {"response_format", "text.format"},
                                    {"reasoning_effort", "reasoning.effort"},
                                    {"verbosity", "text.verbosity"},
                                    {"logprobs", "include"}};
constexpr Name kMessagesNames[] = {{"max_completion_tokens", "max_tokens"},
                                   {"stop", "stop_sequences"},
                                   {"response_format", "output_config.format"}};

std::string client_member(Endpoint client, const std::string& chat_member) {
  const bool responses = client == Endpoint::responses;
  // Items and turns do not count alike.
  if (chat_member == "messages" || chat_member.starts_with("messages[")) {
    return responses ? "input" : "messages";
  }
  const auto names = responses ? std::span<const Name>(kResponsesNames) : kMessagesNames;
  for (const auto& [chat, own] : names) {
    if (chat_member.starts_with(chat)) return std::string(own) + chat_member.substr(chat.size());
  }
  return chat_member;
}

Translated responses_to_messages(const Json& body) {
  auto chat = responses_to_chat(body);
  if (!chat) return chat;
  auto translated = chat_to_messages(chat->body);
  if (!translated) {
    auto error = std::move(translated.error());
    name_client_member(Endpoint::responses, error.param, error.message);
    return tl::make_unexpected(std::move(error));
  }
  auto& dropped = chat->dropped;
  for (const auto& chat_name : translated->dropped) {
    auto name = client_member(Endpoint::responses, chat_name);
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

void name_client_member(Endpoint client, std::string& member, std::string& message) {
  // The message begins with that name or one below it, in quotes or not.
  const bool quoted = message.starts_with('\'');
  const std::size_t begin = quoted ? 1 : 0;
  const std::size_t end = quoted ? message.find('\'', 1) : member.size();
  if (end != std::string::npos && (quoted || message.starts_with(member + " "))) {
    message.replace(begin, end - begin,
                    dialects::client_member(client, message.substr(begin, end - begin)));
  }
  member = dialects::client_member(client, member);
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
