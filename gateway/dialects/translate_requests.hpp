// The three request translations that translate_request() is made of. Inside this folder.
#pragma once

#include "gateway/dialects/translate.hpp"

namespace fixpoint::dialects {

// What Anthropic's required max_tokens becomes when a chat request sets no limit: small enough for
// every model, large enough for most answers; one that it cuts says "length".
constexpr int kDefaultMaxTokens = 4096;

using Translated = tl::expected<TranslatedRequest, TranslationError>;

Translated chat_to_messages(const Json& body);
Translated messages_to_chat(const Json& body);
Translated responses_to_chat(const Json& body);

}  // namespace fixpoint::dialects
