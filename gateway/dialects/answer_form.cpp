#include "gateway/dialects/answer_form.hpp"

#include "gateway/dialects/chat_stream.hpp"
#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/messages_stream.hpp"
#include "gateway/dialects/responses_stream.hpp"

namespace fixpoint {
namespace {

using dialects::array_member;
using dialects::has_value;
using dialects::member;
using dialects::object_member;
using dialects::text_member;
using dialects::text_or_empty;

bool all_objects(const Json& array) {
  for (const auto& item : array) {
    if (!item.is_object()) return false;
  }
  return true;
}

std::string problem_of_choices(const Json& answer, bool chat) {
  const Json* choices = array_member(answer, "choices");
  if (!choices) return "has no array 'choices'";
  for (const auto& choice : *choices) {
    if (chat && !object_member(choice, "message")) return "has a choice without a message";
    if (!chat && !text_member(choice, "text")) return "has a choice without a text";
  }
  return {};
}

}  // namespace

std::unique_ptr<StreamAssembler> make_assembler(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::chat_completions:
    case Endpoint::completions:
      return std::make_unique<dialects::ChatAssembler>(endpoint);
    case Endpoint::responses:
      return std::make_unique<dialects::ResponsesAssembler>();
    case Endpoint::messages:
      return std::make_unique<dialects::MessagesAssembler>();
    case Endpoint::embeddings:
    case Endpoint::count_tokens:
      break;
  }
  return nullptr;
}

std::vector<SseEvent> split_answer(Endpoint endpoint, const Json& answer, bool include_usage) {
  if (!answer.is_object()) return {};
  switch (endpoint) {
    case Endpoint::chat_completions:
    case Endpoint::completions:
      return dialects::split_chat(endpoint, answer, include_usage, dialects::Pieces::small);
    case Endpoint::responses:
      return dialects::split_response(answer);
    case Endpoint::messages:
      return dialects::split_message(answer, dialects::Pieces::small);
    case Endpoint::embeddings:
    case Endpoint::count_tokens:
      break;
  }
  return {};
}

bool is_usage_chunk(Endpoint endpoint, std::string_view data) {
  return (endpoint == Endpoint::chat_completions || endpoint == Endpoint::completions) &&
         dialects::is_chat_usage_chunk(data);
}

std::string problem_of(Endpoint endpoint, const Json& answer) {
  if (!answer.is_object()) return "is not a JSON object";
  // A response that failed is still a response: it says so itself.
  const bool response = endpoint == Endpoint::responses && array_member(answer, "output");
  if (!response && (has_value(answer, "error") || text_or_empty(answer, "type") == "error")) {
    return std::string(kErrorProblem);
  }
  const auto needs_array = [&](const char* name) -> std::string {
    const Json* array = array_member(answer, name);
    if (!array) return "has no array '" + std::string(name) + "'";
    return all_objects(*array) ? ""
                               : "has an item in '" + std::string(name) + "' that is no object";
  };
  switch (endpoint) {
    case Endpoint::chat_completions:
      return problem_of_choices(answer, true);
    case Endpoint::completions:
      return problem_of_choices(answer, false);
    case Endpoint::responses:
      return needs_array("output");
    case Endpoint::messages:
      return needs_array("content");
    case Endpoint::embeddings:
      return needs_array("data");
    case Endpoint::count_tokens: {
      const Json* count = member(answer, "input_tokens");
      return count && count->is_number() ? "" : "has no number 'input_tokens'";
    }
  }
  return {};
}

}  // namespace fixpoint
