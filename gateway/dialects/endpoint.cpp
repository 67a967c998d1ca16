#include "gateway/dialects/endpoint.hpp"

#include <algorithm>
#include <array>

namespace fixpoint {
namespace {

struct Row {
  Endpoint endpoint;
  Api api;
  std::string_view name;
  std::string_view request_path;  // of a request to the gateway
};

// OpenAI's base URL ends in /v1, Anthropic's does not: endpoint_path() is the request's path
// without or with it.
constexpr std::array kRows = {
    Row{Endpoint::chat_completions, Api::openai, "chat.completions", "/v1/chat/completions"},
    Row{Endpoint::completions, Api::openai, "completions", "/v1/completions"},
    Row{Endpoint::responses, Api::openai, "responses", "/v1/responses"},
    Row{Endpoint::embeddings, Api::openai, "embeddings", "/v1/embeddings"},
    Row{Endpoint::messages, Api::anthropic, "messages", "/v1/messages"},
    Row{Endpoint::count_tokens, Api::anthropic, "count_tokens", "/v1/messages/count_tokens"},
};

const Row& row_of(Endpoint endpoint) {
  return kRows[static_cast<std::size_t>(endpoint)];
}

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].endpoint != static_cast<Endpoint>(i)) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

}  // namespace

Api api_of(Endpoint endpoint) {
  return row_of(endpoint).api;
}

std::string_view endpoint_name(Endpoint endpoint) {
  return row_of(endpoint).name;
}

std::string_view endpoint_path(Endpoint endpoint) {
  const Row& row = row_of(endpoint);
  constexpr std::size_t kVersion = std::string_view("/v1").size();
  return row.api == Api::openai ? row.request_path.substr(kVersion) : row.request_path;
}

std::optional<Endpoint> endpoint_of_path(std::string_view path) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& each) { return each.request_path == path; });
  if (row == kRows.end()) return std::nullopt;
  return row->endpoint;
}

}  // namespace fixpoint
