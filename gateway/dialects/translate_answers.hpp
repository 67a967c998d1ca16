// The translators of answers that make_translator() is made of. Inside this folder.
#pragma once

#include "gateway/dialects/text_pieces.hpp"
#include "gateway/dialects/translate.hpp"

namespace fixpoint::dialects {

// Events are translated by the derived classes; a plain answer takes the same way, in pieces as
// large as they come, so that both forms say the same.
class EventTranslator : public AnswerTranslator {
 public:
  EventTranslator(Endpoint client, Endpoint maker) : client_(client), maker_(maker) {}
  Result<Json> plain(const Json& answer) final;

 private:
  Endpoint client_, maker_;
};

std::unique_ptr<AnswerTranslator> chat_from_messages();
std::unique_ptr<AnswerTranslator> messages_from_chat();
std::unique_ptr<AnswerTranslator> responses_from_chat(const Json& request);

}  // namespace fixpoint::dialects
