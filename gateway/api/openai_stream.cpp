#include "gateway/api/openai_stream.hpp"

#include <algorithm>
#include <utility>

#include "gateway/json_guard.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kMaxChoices = 128;  // OpenAI's limit of n
constexpr std::size_t kMaxMerged = 1024;  // tool calls and the like in one answer
constexpr std::size_t kPieceBytes = 24;   // text of one replayed chunk when tokens are not known

bool is_indexed(const Json& array) {
  return !array.empty() && std::all_of(array.begin(), array.end(), [](const Json& item) {
    return item.is_object() && item.contains("index") && item["index"].is_number_unsigned();
  });
}

// Strings that arrive in pieces. Any other string (a role, an id, a name, a severity) is sent once
// or repeated as a whole: joining it would double it.
bool is_text(std::string_view name) {
  return name == "content" || name == "text" || name == "refusal" || name == "arguments" ||
         name == "reasoning" || name == "reasoning_content" || name == "thinking" ||
         name == "input";
}

Result<void> merge_delta(Json& into, const Json& delta);

Result<void> merge_value(std::string_view name, Json& into, const Json& value) {
  if (value.is_null()) return {};
  if (into.is_string() && value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (is_text(name)) {
      into.get_ref<std::string&>() += text;
    } else if (!text.empty()) {
      into = text;
    }
    return {};
  }
  if (into.is_object() && value.is_object()) return merge_delta(into, value);
  if (value.is_array() && is_indexed(value)) {
    if (!into.is_array()) into = Json::array();
    for (const auto& item : value) {
      const auto index = item["index"].get<std::size_t>();
      const auto same = std::find_if(into.begin(), into.end(), [&](const Json& seen) {
        return seen.contains("index") && seen["index"] == index;
      });
      if (same != into.end()) {
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

Result<void> merge_delta(Json& into, const Json& delta) {
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

// `index` addresses items of a stream only; a plain message has none.
void drop_indices(Json& message) {
  for (auto& [name, value] : message.items()) {
    if (!value.is_array()) continue;
    for (auto& item : value) {
      if (item.is_object()) item.erase("index");
    }
  }
}

std::string chunk_of(const Json& head, Json choices) {
  Json chunk = head;
  chunk["choices"] = std::move(choices);
  return chunk.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json choice_of(Endpoint endpoint, const Json& index, Json delta, Json finish, Json logprobs) {
  Json choice = {{"index", index}};
  if (endpoint == Endpoint::chat_completions) {
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = delta.value("content", Json(""));
  }
  if (!logprobs.is_null() || endpoint == Endpoint::completions)
    choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish);
  return choice;
}

// Pieces of whole UTF-8 characters.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.size(), at + kPieceBytes);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

// One piece per token where the tokens of `content` spell the text exactly; else none.
std::vector<std::pair<std::string, Json>> token_pieces(const std::string& text,
                                                       const Json& logprobs) {
  std::vector<std::pair<std::string, Json>> pieces;
  if (!logprobs.is_object() || !logprobs.contains("content") || !logprobs["content"].is_array()) {
    return pieces;
  }
  std::string spelled;
  for (const auto& entry : logprobs["content"]) {
    if (!entry.is_object() || !entry.contains("token") || !entry["token"].is_string()) return {};
    const auto& token = entry["token"].get_ref<const std::string&>();
    spelled += token;
    Json one = {{"content", Json::array({entry})}};
    if (logprobs.contains("refusal")) one["refusal"] = Json();
    pieces.emplace_back(token, std::move(one));
  }
  if (spelled != text) return {};
  return pieces;
}

void split_choice(Endpoint endpoint, const Json& head, const Json& choice,
                  std::vector<std::string>& out) {
  const Json index = choice.value("index", Json(0));
  const Json logprobs = choice.value("logprobs", Json());
  Json message = choice.value("message", Json::object());
  if (endpoint == Endpoint::completions) message = {{"content", choice.value("text", Json(""))}};
  if (!message.is_object()) message = Json::object();
  const auto emit = [&](Json delta, Json finish, Json probs) {
    out.push_back(chunk_of(head, Json::array({choice_of(endpoint, index, std::move(delta),
                                                        std::move(finish), std::move(probs))})));
  };

  const Json content = message.value("content", Json());
  bool logprobs_sent = logprobs.is_null();
  if (endpoint == Endpoint::chat_completions) {
    Json first = {{"role", message.value("role", Json("assistant"))}};
    first["content"] = content.is_string() ? Json("") : content;
    emit(std::move(first), Json(), Json());
  }
  if (content.is_string()) {
    const auto& text = content.get_ref<const std::string&>();
    const auto tokens = token_pieces(text, logprobs);
    if (!tokens.empty()) {
      for (const auto& [piece, probs] : tokens) emit({{"content", piece}}, Json(), probs);
      logprobs_sent = true;
    } else if (!logprobs_sent && !text.empty()) {
      emit({{"content", text}}, Json(), logprobs);  // one chunk: entries cannot be dealt out
      logprobs_sent = true;
    } else {
      for (auto& piece : pieces_of(text)) emit({{"content", std::move(piece)}}, Json(), Json());
    }
  }
  if (endpoint == Endpoint::chat_completions) {
    Json rest = Json::object();
    for (const auto& [name, value] : message.items()) {
      if (name == "role" || name == "content" || value.is_null()) continue;
      rest[name] = value;
      if (name != "tool_calls" || !value.is_array()) continue;
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (rest[name][i].is_object()) rest[name][i]["index"] = i;
      }
    }
    if (!rest.empty()) emit(std::move(rest), Json(), Json());
  }
  Json last = choice_of(endpoint, index, Json::object(), choice.value("finish_reason", Json()),
                        logprobs_sent ? Json() : logprobs);
  for (const auto& [name, value] : choice.items()) {  // whatever else the provider says of a choice
    const bool sent = name == "message" || name == "text" || name == "logprobs";
    if (!sent && !last.contains(name)) last[name] = value;
  }
  out.push_back(chunk_of(head, Json::array({std::move(last)})));
}

}  // namespace

std::string_view endpoint_name(Endpoint endpoint) {
  return endpoint == Endpoint::chat_completions ? "chat.completions" : "completions";
}

AnswerFailure to_failure(const ApiError& error) {
  return {error.status, error.headers, error.body()};
}

Result<void> StreamAssembler::add(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed) return fail(ErrorCode::protocol, "sent a chunk that " + parsed.error().message);
  const Json& chunk = *parsed;
  if (!chunk.is_object()) return fail(ErrorCode::protocol, "chunk: not a JSON object");
  for (const auto& [name, value] : chunk.items()) {
    // obfuscation is padding against traffic analysis: it belongs to the chunk, not to the answer.
    if (name == "choices" || name == "obfuscation" || name == "object") continue;
    if (!answer_.contains(name) && answer_.size() >= kMaxMerged) {
      return fail(ErrorCode::protocol, "chunks: more than 1024 members in an answer");
    }
    if (!value.is_null() || !answer_.contains(name)) answer_[name] = value;
  }
  const auto choices = chunk.find("choices");
  if (choices == chunk.end() || !choices->is_array()) return {};
  for (const auto& choice : *choices) {
    if (!choice.is_object()) return fail(ErrorCode::protocol, "chunk: a choice is not an object");
    const auto given = choice.find("index");
    const std::size_t index = given == choice.end()         ? 0
                              : given->is_number_unsigned() ? given->get<std::size_t>()
                                                            : kMaxChoices;
    if (index >= kMaxChoices) {
      return fail(ErrorCode::protocol, "chunk: choice index is not a number from 0 to 127");
    }
    if (choices_.size() <= index) choices_.resize(index + 1);
    auto& whole = choices_[index];
    if (whole.is_null()) {
      whole = {{"index", index}};
      whole[endpoint_ == Endpoint::chat_completions ? "message" : "text"] =
          endpoint_ == Endpoint::chat_completions ? Json::object() : Json("");
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
      auto merged = target == "finish_reason" && !value.is_null()
                        ? (whole[target] = value, Result<void>{})
                        : merge_value(target, whole[target], value);
      if (!merged) return merged;
    }
  }
  return {};
}

Json StreamAssembler::assemble() const {
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
  if (answer_.contains("usage") && !answer_["usage"].is_null()) answer["usage"] = answer_["usage"];
  return answer;
}

std::vector<std::string> split_answer(Endpoint endpoint, const Json& answer) {
  Json head = Json::object();
  for (const auto& [name, value] : answer.items()) {
    if (name == "choices" || name == "usage") continue;
    head[name] = value;
    if (name == "object" && endpoint == Endpoint::chat_completions)
      head[name] = "chat.completion.chunk";
  }
  std::vector<std::string> out;
  for (const auto& choice : answer.value("choices", Json::array())) {
    if (choice.is_object()) split_choice(endpoint, head, choice, out);
  }
  if (answer.contains("usage") && !answer["usage"].is_null()) {
    Json last = head;
    last["choices"] = Json::array();
    last["usage"] = answer["usage"];
    out.push_back(last.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return out;
}

bool is_usage_chunk(std::string_view text) {
  // Most chunks carry no usage object: look before parsing.
  if (text.find("\"usage\"") == std::string_view::npos) return false;
  const Json chunk = Json::parse(text, nullptr, false);
  if (!chunk.is_object()) return false;
  const auto usage = chunk.find("usage");
  const auto choices = chunk.find("choices");
  return usage != chunk.end() && usage->is_object() && choices != chunk.end() &&
         choices->is_array() && choices->empty();
}

}  // namespace fixpoint
