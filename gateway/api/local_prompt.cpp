#include "gateway/api/local_prompt.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "local_engine/text/text_stream.hpp"

namespace fixpoint {
namespace {

// A message's content as text. Parts other than text are refused: the engine has no eyes.
std::optional<ApiError> flatten_content(Json& message, const std::string& path) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) {
    message["content"] = "";  // templates join it with text
    return {};
  }
  if (found->is_string()) return {};
  if (!found->is_array())
    return bad_request("'" + path + ".content' must be a string or an array", path);
  std::string text;
  for (const auto& part : *found) {
    const bool is_text = part.is_object() && part.value("type", Json()) == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) {
      return bad_request("'" + path + ".content': the local engine takes parts of type text only",
                         path);
    }
    text += part["text"].get_ref<const std::string&>();
  }
  *found = std::move(text);
  return {};
}

ApiResult<std::string> render_chat(const Json& body, const engine::Engine& engine) {
  const auto* chat_template = engine.chat_template();
  if (!chat_template) {
    return refuse(
        bad_request("Model '" + engine.info().name + "' has no chat template; use /v1/completions",
                    "messages"));
  }
  engine::ChatInput input;
  input.messages = body["messages"];
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    auto& message = input.messages[i];
    const auto path = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return refuse(bad_request("'" + path + "' must be an object", path));
    if (!message.value("role", Json()).is_string()) {
      return refuse(bad_request("'" + path + ".role' must be a string", path + ".role"));
    }
    for (const auto& [name, value] : message.items()) {
      // An answer that is sent back has null, or an empty array, for what it lacks.
      const bool absent = value.is_null() || (value.is_array() && value.empty());
      // What an SDK has parsed is the content once more.
      const bool parsed = name == "parsed" && message["role"] == "assistant";
      if (name == "role" || name == "content" || absent || parsed) continue;
      // Translated from another API, the request had no member of this name.
      if (name == "tool_calls" || name == "tool_call_id") {
        return refuse(bad_request(
            "'" + path + "." + name + "': tool calls are not supported by the local engine",
            path + "." + name, "unsupported_parameter"));
      }
      return refuse(bad_request("'" + path + "." + name + "' is not supported by the local engine",
                                path + "." + name, "unsupported_parameter"));
    }
    if (auto error = flatten_content(message, path)) return refuse(*error);
    message = {{"role", std::move(message["role"])}, {"content", std::move(message["content"])}};
    auto& role = message["role"].get_ref<std::string&>();
    if (role == "developer") role = "system";  // OpenAI's newer name for the same turn
    if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
      return refuse(
          bad_request("'" + path + ".role' must be system, developer, user, assistant or tool",
                      path + ".role"));
    }
  }
  auto rendered = chat_template->render(input);
  if (!rendered) return refuse(engine_error(rendered.error(), "messages"));
  return std::move(*rendered);
}

// What token ids spell; bytes that are no character show as U+FFFD, as in a generated text.
std::string spell(const std::vector<engine::TokenId>& ids, const engine::Tokenizer& tokenizer) {
  engine::TextStream text({});
  std::string out = text.push(tokenizer.decode(ids));
  out += text.finish();
  return out;
}

// Text, or an array of token ids.
ApiResult<LocalPrompt> read_prompt(const Json& given, const engine::Tokenizer& tokenizer) {
  LocalPrompt prompt;
  if (given.is_string()) {
    prompt.text = given.get<std::string>();
    prompt.tokens = tokenizer.encode(prompt.text, false);
    return prompt;
  }
  if (!given.is_array()) {
    return refuse(bad_request(
        "'prompt' must be text, an array of token ids, or an array of several of either",
        "prompt"));
  }
  prompt.tokens.reserve(given.size());
  for (const auto& item : given) {
    const bool in_range = item.is_number_integer() && item.get<std::int64_t>() >= 0 &&
                          item.get<std::int64_t>() < static_cast<std::int64_t>(tokenizer.size());
    if (!in_range) {
      return refuse(bad_request("'prompt': a token id must be a whole number from 0 to " +
                                    std::to_string(tokenizer.size() - 1),
                                "prompt"));
    }
    prompt.tokens.push_back(item.get<engine::TokenId>());
  }
  prompt.text = spell(prompt.tokens, tokenizer);
  return prompt;
}

void add_bos(LocalPrompt& prompt, const engine::Tokenizer& tokenizer) {
  const auto bos = tokenizer.bos();
  if (!tokenizer.add_bos() || !bos) return;
  // A template may have written it already.
  if (!prompt.tokens.empty() && prompt.tokens.front() == *bos) return;
  prompt.tokens.insert(prompt.tokens.begin(), *bos);
  prompt.has_bos = true;
}

ApiError no_tokens(const std::string& member) {
  return bad_request("'" + member + "' must have at least one token", member);
}

}  // namespace

ApiResult<std::vector<LocalPrompt>> read_prompts(Endpoint endpoint, const Json& body,
                                                 const engine::Engine& engine, std::size_t n) {
  const auto& tokenizer = engine.tokenizer();
  std::vector<LocalPrompt> prompts;
  if (endpoint == Endpoint::chat_completions) {
    auto rendered = render_chat(body, engine);
    if (!rendered) return refuse(rendered.error());
    auto& prompt = prompts.emplace_back();
    prompt.tokens = tokenizer.encode(*rendered, true);
    prompt.text = std::move(*rendered);
    add_bos(prompt, tokenizer);
    if (prompt.tokens.empty()) return refuse(no_tokens("messages"));
    return prompts;
  }
  const Json& given = body["prompt"];
  const bool several =
      given.is_array() && !given.empty() && (given[0].is_string() || given[0].is_array());
  const std::size_t count = several ? given.size() : 1;
  if (count > kMaxChoices / n) {
    return refuse(bad_request("'prompt' has " + std::to_string(count) + " prompts and 'n' is " +
                                  std::to_string(n) + "; together they may make at most " +
                                  std::to_string(kMaxChoices) + " choices",
                              "prompt"));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Json& one = several ? given[i] : given;
    auto prompt = read_prompt(one, tokenizer);
    if (!prompt) return refuse(prompt.error());
    if (one.is_string()) add_bos(*prompt, tokenizer);
    if (prompt->tokens.empty()) return refuse(no_tokens("prompt"));
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

}  // namespace fixpoint
