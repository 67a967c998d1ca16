// The APIs that clients and upstreams speak.
#pragma once

#include <optional>
#include <string_view>

namespace fixpoint {

enum class Api { openai, anthropic };

enum class Endpoint {
  chat_completions,
  completions,
  responses,
  embeddings,
  messages,      // Anthropic
  count_tokens,  // Anthropic
};

Api api_of(Endpoint endpoint);
// "chat.completions", "completions", "responses", "embeddings", "messages", "count_tokens".
std::string_view endpoint_name(Endpoint endpoint);
// After the base URL as the API's SDKs want it: "/chat/completions" (OpenAI's base ends in /v1),
// "/v1/messages" (Anthropic's does not).
std::string_view endpoint_path(Endpoint endpoint);
// Of a request to the gateway: "/v1/chat/completions", "/v1/messages/count_tokens", ...
std::optional<Endpoint> endpoint_of_path(std::string_view path);

}  // namespace fixpoint
