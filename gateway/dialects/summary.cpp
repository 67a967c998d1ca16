#include <algorithm>

#include "gateway/dialects/answer_form.hpp"
#include "gateway/dialects/json_access.hpp"

namespace fixpoint {
namespace {

using dialects::array_member;
using dialects::count_member;
using dialects::has_value;
using dialects::member;
using dialects::object_member;
using dialects::text_member;
using dialects::text_or_empty;

// A token's bytes: `bytes` where the provider sends them, else its text.
std::string token_bytes(const Json& entry) {
  const Json* bytes = array_member(entry, "bytes");
  if (!bytes) return text_or_empty(entry, "token");
  std::string out;
  for (const auto& byte : *bytes) {
    if (byte.is_number_unsigned()) out += static_cast<char>(byte.get<unsigned>() & 0xFF);
  }
  return out;
}

float logprob_of(const Json& entry) {
  const Json* found = member(entry, "logprob");
  return found && found->is_number() ? found->get<float>() : 0;
}

void set_margin(LoggedToken& token) {
  std::stable_sort(token.top.begin(), token.top.end(),
                   [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
  if (token.top.size() >= 2) token.margin = token.top[0].logprob - token.top[1].logprob;
}

// Entries {token, logprob, bytes, top_logprobs}: choices[].logprobs.content of chat completions,
// logprobs of a Responses text.
void add_entries(const Json& entries, std::uint32_t choice, std::uint32_t position,
                 std::vector<LoggedToken>& out) {
  for (const auto& entry : entries) {
    if (!entry.is_object()) continue;
    LoggedToken token;
    token.choice = choice;
    token.position = position++;
    token.bytes = token_bytes(entry);
    token.logprob = logprob_of(entry);
    if (const Json* top = array_member(entry, "top_logprobs")) {
      for (const auto& other : *top) {
        if (other.is_object()) token.top.push_back({{}, token_bytes(other), logprob_of(other)});
      }
    }
    set_margin(token);
    out.push_back(std::move(token));
  }
}

// choices[].logprobs of completions: parallel arrays.
void add_parallel(const Json& logprobs, std::uint32_t choice, std::vector<LoggedToken>& out) {
  const Json* tokens = array_member(logprobs, "tokens");
  const Json* values = array_member(logprobs, "token_logprobs");
  const Json* tops = array_member(logprobs, "top_logprobs");
  if (!tokens || !values || tokens->size() != values->size()) return;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    if (!(*tokens)[i].is_string() || !(*values)[i].is_number()) continue;
    LoggedToken token;
    token.choice = choice;
    token.position = static_cast<std::uint32_t>(i);
    token.bytes = (*tokens)[i].get<std::string>();
    token.logprob = (*values)[i].get<float>();
    if (tops && i < tops->size() && (*tops)[i].is_object()) {
      for (const auto& [text, value] : (*tops)[i].items()) {
        if (value.is_number()) token.top.push_back({{}, text, value.get<float>()});
      }
    }
    set_margin(token);
    out.push_back(std::move(token));
  }
}

// Bytes of all strings but those that are names of things. The depth is the parser's.
std::uint64_t text_bytes(const Json& value) {
  constexpr std::string_view kNames[] = {
      "id",      "type",     "role",      "status",           "index", "finish_reason", "object",
      "call_id", "logprobs", "signature", "encrypted_content"};
  if (value.is_string()) return value.get_ref<const std::string&>().size();
  std::uint64_t bytes = 0;
  if (value.is_array()) {
    for (const auto& item : value) bytes += text_bytes(item);
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
        bytes += text_bytes(member);
      }
    }
  }
  return bytes;
}

// Completions with `echo` begin with the prompt's tokens, which nobody generated. The first of them
// has no log-probability, which tells such answers; the rest is what is beyond the count of
// generated ones, as much of it in each choice.
void drop_echoed(const Json& choices, AnswerSummary& out) {
  const Json* logprobs = object_member(choices[0], "logprobs");
  const Json* values = logprobs ? array_member(*logprobs, "token_logprobs") : nullptr;
  const bool echoed = values && !values->empty() && (*values)[0].is_null();
  if (!echoed || out.prompt_tokens == 0 || out.tokens.size() <= out.completion_tokens) return;
  const std::size_t each = (out.tokens.size() - out.completion_tokens) / choices.size();
  std::uint32_t choice = 0;
  std::size_t seen = 0;
  std::erase_if(out.tokens, [&](const LoggedToken& token) {
    if (token.choice != choice) seen = 0;
    choice = token.choice;
    return seen++ < each;
  });
}

void add_choices(const Json& answer, bool chat, AnswerSummary& out) {
  const Json* choices = array_member(answer, "choices");
  if (!choices || choices->empty()) return;
  bool natural = true, only_length = true;
  for (std::size_t i = 0; i < choices->size(); ++i) {
    const Json& choice = (*choices)[i];
    const std::string reason = text_or_empty(choice, "finish_reason");
    if (i == 0) out.finish_reason = reason;
    const Json* message = object_member(choice, "message");
    const std::string* refusal = message ? text_member(*message, "refusal") : nullptr;
    const bool refused = refusal && !refusal->empty();
    const bool whole =
        !refused && (reason == "stop" || reason == "tool_calls" || reason == "function_call");
    natural = natural && whole;
    only_length = only_length && (whole || (reason == "length" && !refused));
    const Json* logprobs = object_member(choice, "logprobs");
    if (!logprobs) continue;
    const auto index = static_cast<std::uint32_t>(i);
    if (!chat) {
      add_parallel(*logprobs, index, out.tokens);
    } else if (const Json* content = array_member(*logprobs, "content")) {
      add_entries(*content, index, 0, out.tokens);
    }
  }
  if (!chat) drop_echoed(*choices, out);
  out.whole = natural;
  out.length = !natural && only_length;
}

void add_message(const Json& answer, AnswerSummary& out) {
  const std::string reason = text_or_empty(answer, "stop_reason");
  out.finish_reason = reason;
  out.whole = array_member(answer, "content") &&
              (reason == "end_turn" || reason == "stop_sequence" || reason == "tool_use");
  out.length = reason == "max_tokens" || reason == "model_context_window_exceeded";
}

void add_response(const Json& answer, AnswerSummary& out) {
  const Json* output = array_member(answer, "output");
  const std::string status = text_or_empty(answer, "status");
  out.finish_reason = status;
  if (const Json* details = object_member(answer, "incomplete_details")) {
    if (status == "incomplete") out.finish_reason = text_or_empty(*details, "reason");
  }
  out.length = status == "incomplete" && out.finish_reason == "max_output_tokens";
  out.whole = status == "completed" && output;
  if (!output) return;
  for (const auto& item : *output) {
    const Json* content = array_member(item, "content");
    if (!content) continue;
    for (const auto& part : *content) {
      if (text_or_empty(part, "type") == "refusal") out.whole = out.length = false;
      if (const Json* logprobs = array_member(part, "logprobs")) {
        add_entries(*logprobs, 0, static_cast<std::uint32_t>(out.tokens.size()), out.tokens);
      }
    }
  }
}

// By the names that each API gives its counts; an answer has those of one.
void add_usage(Endpoint endpoint, const Json& usage, AnswerSummary& out) {
  switch (endpoint) {
    case Endpoint::messages:
      out.cached_tokens = count_member(usage, "cache_read_input_tokens");
      out.prompt_tokens = count_member(usage, "input_tokens") + out.cached_tokens +
                          count_member(usage, "cache_creation_input_tokens");
      out.completion_tokens = count_member(usage, "output_tokens");
      return;
    case Endpoint::responses:
      out.prompt_tokens = count_member(usage, "input_tokens");
      out.completion_tokens = count_member(usage, "output_tokens");
      if (const Json* details = object_member(usage, "input_tokens_details")) {
        out.cached_tokens = count_member(*details, "cached_tokens");
      }
      return;
    default:
      out.prompt_tokens = count_member(usage, "prompt_tokens");
      out.completion_tokens = count_member(usage, "completion_tokens");
      if (const Json* details = object_member(usage, "prompt_tokens_details")) {
        out.cached_tokens = count_member(*details, "cached_tokens");
      }
  }
}

}  // namespace

AnswerSummary summarize(Endpoint endpoint, const Json& answer) {
  AnswerSummary out;
  out.model = text_or_empty(answer, "model");
  out.fingerprint = text_or_empty(answer, "system_fingerprint");
  if (const Json* usage = object_member(answer, "usage")) add_usage(endpoint, *usage, out);
  switch (endpoint) {
    case Endpoint::chat_completions:
    case Endpoint::completions:
      add_choices(answer, endpoint == Endpoint::chat_completions, out);
      break;
    case Endpoint::messages:
      add_message(answer, out);
      break;
    case Endpoint::responses:
      add_response(answer, out);
      break;
    case Endpoint::embeddings: {
      const Json* data = array_member(answer, "data");
      out.whole = data && !data->empty();
      break;
    }
    case Endpoint::count_tokens: {
      const Json* count = member(answer, "input_tokens");
      out.whole = count && count->is_number();
      break;
    }
  }
  const bool told = out.completion_tokens > 0 && !out.finish_reason.empty();
  for (const char* name : {"choices", "content", "output"}) {
    if (told) break;
    if (const Json* text = array_member(answer, name)) out.text_bytes += text_bytes(*text);
  }
  if (has_value(answer, "error")) out.whole = out.length = false;
  return out;
}

}  // namespace fixpoint
