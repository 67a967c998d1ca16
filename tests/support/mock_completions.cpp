// OpenAI's completions: several prompts, token ids, echo.
#include <algorithm>

#include "tests/support/mock_api.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;

using Tokens = std::vector<std::string>;

// A prompt of token ids "says" each id.
Tokens prompt_tokens(const json& prompt) {
  if (prompt.is_string()) return mock_tokens(prompt.get<std::string>());
  Tokens tokens;
  for (const json& id : prompt) tokens.push_back(" t" + id.dump());
  return tokens;
}

std::vector<Tokens> prompts_of(const json& body) {
  const json prompt = body.value("prompt", json(""));
  std::vector<Tokens> prompts;
  const bool several = prompt.is_array() && !prompt.empty() && !prompt[0].is_number();
  if (!several) return {prompt_tokens(prompt)};
  for (const json& one : prompt) prompts.push_back(prompt_tokens(one));
  return prompts;
}

struct Choice {
  Tokens tokens;
  std::string finish;
};

// The first token of an echoed prompt has no log-probability: nothing comes before it.
json logprobs_of(const Tokens& tokens, std::size_t first, std::size_t count, std::size_t top,
                 bool echo) {
  json result = {{"tokens", json::array()},
                 {"token_logprobs", json::array()},
                 {"top_logprobs", json::array()},
                 {"text_offset", json::array()}};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < first; ++i) offset += tokens[i].size();
  for (std::size_t i = first; i < first + count; ++i) {
    const std::string& token = tokens[i];
    const bool unknown = echo && i == 0;
    json alternatives = json::object();
    for (std::size_t rank = 0; rank < top; ++rank) {
      alternatives[rank == 0 ? token : token + "~" + std::to_string(rank)] =
          mock_logprob(token, rank);
    }
    result["tokens"].push_back(token);
    result["token_logprobs"].push_back(unknown ? json() : json(mock_logprob(token, 0)));
    result["top_logprobs"].push_back(unknown ? json() : alternatives);
    result["text_offset"].push_back(offset);
    offset += token.size();
  }
  return result;
}

}  // namespace

MockAnswer mock_completions(const MockCall& call) {
  const json& body = call.body;
  const bool echo = body.value("echo", json()) == true;
  const json asked = body.value("logprobs", json());
  const bool logprobs = asked.is_number_unsigned();
  const std::size_t top = logprobs ? asked.get<std::size_t>() : 0;
  const auto n = body.value("n", std::size_t{1});
  std::vector<Choice> choices;
  std::size_t completion = 0;
  for (const Tokens& prompt : prompts_of(body)) {
    for (std::size_t i = 0; i < n; ++i) {
      Choice choice{{}, call.how.has("length") ? "length" : "stop"};
      if (call.how.has("filter")) choice.finish = "content_filter";
      Tokens said = mock_tokens(call.content());
      if (echo) {  // who scores a prompt counts tokens, so the limit holds
        const auto limit = body.value("max_tokens", said.size());
        if (limit < said.size()) choice.finish = "length";
        said.resize(std::min(limit, said.size()));
        choice.tokens = prompt;
      }
      completion += said.size();
      choice.tokens.insert(choice.tokens.end(), said.begin(), said.end());
      choices.push_back(std::move(choice));
    }
  }
  const json frame = {{"id", "cmpl-mock-" + call.number()},
                      {"object", "text_completion"},
                      {"created", kMockCreated},
                      {"model", call.model},
                      {"system_fingerprint", call.how.fingerprint()}};
  const json usage = {{"prompt_tokens", call.prompt_tokens()},
                      {"completion_tokens", completion},
                      {"total_tokens", call.prompt_tokens() + completion},
                      {"prompt_tokens_details", {{"cached_tokens", 0}}}};
  if (!call.streams()) {
    json whole = frame;
    const bool unfinished = call.how.has("nofinish");
    for (std::size_t i = 0; i < choices.size(); ++i) {
      std::string text;
      for (const auto& token : choices[i].tokens) text += token;
      const auto& tokens = choices[i].tokens;
      whole["choices"].push_back(
          {{"index", i},
           {"text", text},
           {"finish_reason", unfinished ? json() : json(choices[i].finish)},
           {"logprobs", logprobs ? logprobs_of(tokens, 0, tokens.size(), top, echo) : json()}});
    }
    whole["usage"] = usage;
    MockAnswer answer;
    answer.pieces = {whole.dump()};
    apply_behaviour(call, answer);
    return answer;
  }
  const json options = body.value("stream_options", json());
  const bool with_usage = options.is_object() && options.value("include_usage", json()) == true;
  std::vector<MockEvent> events;
  const auto add = [&](std::size_t index, const std::string& text, const json& finish,
                       const json& probs) {
    json chunk = frame;
    chunk["choices"] = json::array(
        {{{"index", index}, {"text", text}, {"finish_reason", finish}, {"logprobs", probs}}});
    if (with_usage) chunk["usage"] = nullptr;
    events.push_back({"", chunk.dump()});
  };
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto& tokens = choices[i].tokens;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      add(i, tokens[t], nullptr, logprobs ? logprobs_of(tokens, t, 1, top, echo) : json());
    }
    if (!call.how.has("nofinish")) add(i, "", choices[i].finish, nullptr);
  }
  if (with_usage) {
    json chunk = frame;
    chunk["choices"] = json::array();
    chunk["usage"] = usage;
    events.push_back({"", chunk.dump()});
  }
  const std::string failure =
      mock_error(MockApi::openai, 500, "the mock failed halfway", "mock_failed").pieces[0];
  return mock_stream(call, events, {"", failure}, {{"", "[DONE]"}});
}

}  // namespace fixpoint::test
