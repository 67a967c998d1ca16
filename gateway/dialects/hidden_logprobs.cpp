#include "gateway/dialects/hidden_logprobs.hpp"

namespace fixpoint {
namespace {

void empty_logprobs(Json& parts) {
  if (!parts.is_array()) return;
  for (auto& part : parts) {
    if (part.is_object() && part.contains("logprobs")) part["logprobs"] = Json::array();
  }
}

// Of a Responses answer, or of a piece of one that has the same members.
void empty_output_logprobs(Json& answer) {
  if (answer.contains("top_logprobs")) answer["top_logprobs"] = 0;
  const auto output = answer.find("output");
  if (output == answer.end() || !output->is_array()) return;
  for (auto& item : *output) {
    if (item.is_object() && item.contains("content")) empty_logprobs(item["content"]);
  }
}

}  // namespace

void take_out_logprobs(Json& value) {
  if (!value.is_object()) return;
  if (const auto choices = value.find("choices"); choices != value.end() && choices->is_array()) {
    for (auto& choice : *choices) {
      if (choice.is_object() && choice.contains("logprobs")) choice["logprobs"] = nullptr;
    }
    return;
  }
  if (value.contains("logprobs")) value["logprobs"] = Json::array();  // a delta of a text
  empty_output_logprobs(value);
  for (const char* name : {"response", "item", "part"}) {
    const auto inner = value.find(name);
    if (inner == value.end() || !inner->is_object()) continue;
    if (inner->contains("logprobs")) (*inner)["logprobs"] = Json::array();
    if (inner->contains("content")) empty_logprobs((*inner)["content"]);
    empty_output_logprobs(*inner);
  }
}

}  // namespace fixpoint
