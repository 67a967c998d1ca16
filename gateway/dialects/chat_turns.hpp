// Conversations from OpenAI's chat to Anthropic's and back. Inside this folder.
#pragma once

#include "gateway/dialects/request_members.hpp"

namespace fixpoint::dialects {

// Sets `messages`, and `system` if there are any such turns.
void chat_turns_to_messages(const Json& turns, Json& body, Notes& notes);
// The array of chat messages; `system` may be null.
Json messages_turns_to_chat(const Json* system, const Json& turns, Notes& notes);

}  // namespace fixpoint::dialects
