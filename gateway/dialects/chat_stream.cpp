#include "gateway/dialects/chat_stream.hpp"

#include <algorithm>
#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/limits.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint::dialects {
namespace {

bool is_indexed(const Json& array) {
  return !array.empty() && std::all_of(array.begin(), array.end(), [](const Json& item) {
    const Json* index = member(item, "index");
    return index && index->is_number_unsigned();
  });
}

// Strings that arrive in pieces. Any other string (a role, an id, a name, a severity) is sent once
// or repeated as a whole: joining it would double it.
bool is_text(std::string_view name) {
  return name == "content" || name == "text" || name == "refusal" || name == "arguments" ||
         name == "reasoning" || name == "reasoning_content" || name == "thinking" ||
         name == "input" || name == "summary" || name == "transcript" || name == "data";
}

// Base64 with its padding is a whole: what follows it cannot be joined.
bool is_closed(std::string_view name, const std::string& text) {
  return name == "data" && text.ends_with('=');
}

// Of the same index and the same type: OpenRouter's reasoning_details are all of index 0, summaries
// and what is encrypted alike. The last one: an item that follows others of its kind goes on.
Json* find_indexed(Json& array, std::size_t index, const Json* type) {
  const auto same = std::find_if(array.rbegin(), array.rend(), [&](const Json& seen) {
    const Json *its = member(seen, "index"), *its_type = member(seen, "type");
    return its && *its == index && (!type || !its_type || *type == *its_type);
  });
  return same == array.rend() ? nullptr : &*same;
}

// Null, or a string that is replaced as a whole: an event may repeat it.
bool is_repeatable(std::string_view name, const Json& value) {
  return value.is_null() || (value.is_string() && !is_text(name));
}

// `index` addresses the calls of a stream only; those of a plain message have none.
void drop_indices(Json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return;
  for (auto& call : *calls) {
    if (call.is_object()) call.erase("index");
  }
}

bool is_empty(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
}

// Said of a chunk, not of the answer: padding against traffic analysis (OpenAI's and Mistral's).
bool is_padding(std::string_view name) {
  return name == "obfuscation" || name == "p";
}

// Members of a chunk that name things: of these and of numbers the last one counts.
bool is_name(std::string_view name) {
  return name == "id" || name == "model" || name == "system_fingerprint" ||
         name == "service_tier" || name == "usage";
}

// Whether a value has all that an earlier one said: the same, or one that has grown.
bool holds(const Json& now, const Json& before) {
  if (is_empty(before) || now == before) return true;
  if (before.is_number()) return now.is_number();
  if (before.is_boolean()) return now.is_boolean();
  if (now.type() != before.type()) return false;
  if (before.is_string()) {
    return now.get_ref<const std::string&>().starts_with(before.get_ref<const std::string&>());
  }
  if (before.is_array()) {
    return now.size() >= before.size() && std::equal(before.begin(), before.end(), now.begin());
  }
  for (const auto& [name, value] : before.items()) {
    const Json* same = member(now, name);
    if (!same || !holds(*same, value)) return false;
  }
  return true;
}

}  // namespace

Result<void> ChatAssembler::merge_value(std::string_view name, Json& into, const Json& value) {
  if (value.is_null()) return {};
  if (into.is_string() && value.is_string()) {
    auto& whole = into.get_ref<std::string&>();
    const auto& text = value.get_ref<const std::string&>();
    if (text.empty()) return {};
    if (is_text(name)) {
      faithful_ = faithful_ && !is_closed(name, whole);
      whole += text;
    } else {
      // Pieces of a text of a name that is not known look like this. Azure's filters find more as
      // the text grows.
      faithful_ = faithful_ && (whole.empty() || whole == text || name == "severity");
      whole = text;
    }
    return {};
  }
  if (into.is_object() && value.is_object()) return merge_delta(into, value);
  const bool both_numbers = into.is_number() && value.is_number();
  if (into.type() != value.type() && !both_numbers && !is_empty(into)) faithful_ = false;
  if (value.is_array() && is_indexed(value)) {
    if (!into.is_array()) into = Json::array();
    for (const auto& item : value) {
      const auto index = item["index"].get<std::size_t>();
      if (Json* same = find_indexed(into, index, member(item, "type"))) {
        if (auto merged = merge_delta(*same, item); !merged) return merged;
        continue;
      }
      if (into.size() >= kMaxMerged) {
        return fail(ErrorCode::protocol,
                    "chunk: more than 1024 items in '" + std::string(name) + "'");
      }
      into.push_back(item);
    }
    return {};
  }
  if (into.is_array() && value.is_array()) {  // logprobs: lists grow
    into.insert(into.end(), value.begin(), value.end());
    return {};
  }
  into = value;
  return {};
}

Result<void> ChatAssembler::merge_delta(Json& into, const Json& delta) {
  for (const auto& [name, value] : delta.items()) {
    if (name == "index") {
      into[name] = value;
      continue;
    }
    if (!into.contains(name)) {
      if (into.size() >= kMaxMerged) {
        return fail(ErrorCode::protocol, "chunks: an object with more than 1024 members");
      }
      // An indexed array starts empty, so that a first chunk with one index twice merges as well.
      into[name] = value.is_array() && is_indexed(value) ? Json::array() : Json();
      if (value.is_null()) continue;
    }
    if (auto merged = merge_value(name, into[name], value); !merged) return merged;
  }
  return {};
}

Result<StreamStep> ChatAssembler::add(const SseEvent& event) {
  if (event.data == "[DONE]") return StreamStep::end;
  if (event.event == "error") return StreamStep::error;
  if (const auto piece = event.event.empty() ? template_.match(event.data) : std::nullopt) {
    if (std::string* target = repeated_target()) {
      *target += *piece;
      return StreamStep::more;
    }
  }
  template_.forget();
  const auto parsed = parse_answer(event.data, &faithful_);
  if (!parsed) return fail(ErrorCode::protocol, "sent a chunk that " + parsed.error().message);
  const Json& chunk = *parsed;
  if (!chunk.is_object()) return fail(ErrorCode::protocol, "chunk: not a JSON object");
  if (has_value(chunk, "error")) return StreamStep::error;
  for (const auto& [name, value] : chunk.items()) {
    if (name == "choices" || name == "object" || is_padding(name)) continue;
    if (!answer_.contains(name) && answer_.size() >= kMaxMerged) {
      return fail(ErrorCode::protocol, "chunks: more than 1024 members in an answer");
    }
    Json& into = answer_[name];
    if (value.is_null()) continue;
    faithful_ = faithful_ && (is_name(name) || holds(value, into));
    into = value;
  }
  const Json* choices = array_member(chunk, "choices");
  if (!choices) return StreamStep::more;
  for (const auto& choice : *choices) {
    if (auto merged = merge_choice(choice); !merged) return tl::make_unexpected(merged.error());
  }
  if (event.event.empty()) learn(event.data, chunk);
  return StreamStep::more;
}

Result<void> ChatAssembler::merge_choice(const Json& choice) {
  if (!choice.is_object()) return fail(ErrorCode::protocol, "chunk: a choice is not an object");
  const Json* given = member(choice, "index");
  const std::size_t index = !given                        ? 0
                            : given->is_number_unsigned() ? given->get<std::size_t>()
                                                          : kMaxChoices;
  if (index >= kMaxChoices) {
    return fail(ErrorCode::protocol, "chunk: choice index is not a number from 0 to 127");
  }
  if (choices_.size() <= index) choices_.resize(index + 1);
  auto& whole = choices_[index];
  if (whole.is_null()) {
    const bool chat = endpoint_ == Endpoint::chat_completions;
    whole = Json::object();
    whole["index"] = index;
    whole[chat ? "message" : "text"] = chat ? Json::object() : Json("");
    whole["logprobs"] = Json();
    whole["finish_reason"] = Json();
  }
  for (const auto& [name, value] : choice.items()) {
    if (name == "index") continue;
    const std::string target = name == "delta" ? "message" : name;
    const bool right_type =
        target == "message" ? value.is_object() : target != "text" || value.is_string();
    if (!right_type && !value.is_null()) {
      return fail(ErrorCode::protocol, "chunk: '" + name + "' of a choice has the wrong type");
    }
    if (!whole.contains(target)) whole[target] = Json();
    if (target == "finish_reason") {
      if (!value.is_null() && value != "") whole[target] = value;
      continue;
    }
    if (auto merged = merge_value(target, whole[target], value); !merged) return merged;
  }
  return {};
}

// Learns from a chunk that carries one piece of text and nothing else that adds up.
void ChatAssembler::learn(std::string_view text, const Json& chunk) {
  const Json& choices = chunk["choices"];
  if (choices.size() != 1) return;
  const bool chat = endpoint_ == Endpoint::chat_completions;
  const char* const part = chat ? "delta" : "text";
  for (const auto& [name, value] : choices[0].items()) {
    if (name != "index" && name != part && !value.is_null()) return;
  }
  choice_ = count_member(choices[0], "index");
  JsonPath path = {"choices", "", part};
  name_ = part;
  if (chat) {
    const Json* delta = object_member(choices[0], "delta");
    if (!delta) return;
    name_.clear();
    for (const auto& [name, value] : delta->items()) {
      if (is_repeatable(name, value)) continue;
      if (!name_.empty()) return;
      name_ = name;
    }
    if (name_ == "tool_calls") {
      const Json& calls = (*delta)["tool_calls"];
      if (!calls.is_array() || calls.size() != 1 || !is_indexed(calls)) return;
      call_index_ = count_member(calls[0], "index");
      call_type_ = has_value(calls[0], "type") ? calls[0]["type"] : Json();
      for (const auto& [name, value] : calls[0].items()) {
        if (name != "index" && name != "function" && !is_repeatable(name, value)) return;
      }
      const Json* function = object_member(calls[0], "function");
      if (!function) return;
      for (const auto& [name, value] : function->items()) {
        if (name != "arguments" && !is_repeatable(name, value)) return;
      }
      path.insert(path.end(), {"tool_calls", "", "function", "arguments"});
    } else {
      if (!is_text(name_)) return;
      path.emplace_back(name_);
    }
  }
  template_.learn(text, path, {{"obfuscation"}, {"p"}});
}

std::string* ChatAssembler::repeated_target() {
  Json& whole = choices_[choice_];
  if (endpoint_ == Endpoint::completions) return whole["text"].get_ptr<std::string*>();
  Json& message = whole["message"];
  const auto found = message.find(name_);
  if (found == message.end()) return nullptr;
  if (name_ != "tool_calls") return found->get_ptr<std::string*>();
  const Json* type = call_type_.is_null() ? nullptr : &call_type_;
  Json* call = found->is_array() ? find_indexed(*found, call_index_, type) : nullptr;
  if (!call || !object_member(*call, "function")) return nullptr;
  Json& function = (*call)["function"];
  const auto arguments = function.find("arguments");
  return arguments == function.end() ? nullptr : arguments->get_ptr<std::string*>();
}

Json ChatAssembler::assemble() const {
  Json answer = Json::object();
  if (answer_.contains("id")) answer["id"] = answer_["id"];
  const bool chat = endpoint_ == Endpoint::chat_completions;
  answer["object"] = chat ? "chat.completion" : "text_completion";
  Json choices = Json::array();
  for (auto choice : choices_) {
    if (choice.is_null()) continue;
    if (chat) {
      auto& message = choice["message"];
      if (!message.contains("role")) message["role"] = "assistant";
      if (!message.contains("content")) message["content"] = Json();
      drop_indices(message);
    }
    choices.push_back(std::move(choice));
  }
  for (const auto& [name, value] : answer_.items()) {
    if (name != "id" && name != "usage") answer[name] = value;
  }
  answer["choices"] = std::move(choices);
  if (has_value(answer_, "usage")) answer["usage"] = answer_["usage"];
  return answer;
}

}  // namespace fixpoint::dialects
