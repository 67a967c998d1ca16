// What the APIs of the mock upstream share; inside of the mock only.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/mock_answers.hpp"
#include "tests/support/mock_behaviour.hpp"

namespace fixpoint::test {

constexpr std::int64_t kMockCreated = 1700000000;  // Unix seconds

// One request, read.
struct MockCall {
  const MockRequest& http;
  nlohmann::json body;
  MockBehaviour how;
  std::string model;  // as answers name it
  std::uint64_t call = 0;

  // Of equal width for all calls of "mock-cut" and its like, so that streams have equal lengths.
  std::string number() const;
  // "mock answer body=<hash> call=<number>", and what the behaviour adds.
  std::string content() const;
  bool streams() const;
  std::size_t prompt_tokens() const { return http.body.size() / 4; }
};

// A tool that the answer calls.
struct MockToolCall {
  std::string id, name, arguments;
};

// What is to be said, whatever the API.
struct MockSpeech {
  std::string content;
  std::string reasoning;            // empty: none
  std::vector<MockToolCall> tools;  // instead of the content
  std::vector<std::string> tokens() const;
};

// `tools`: the request's, each with its name and the schema of its arguments; `schema` of a
// structured answer, or null.
struct MockTool {
  std::string name;
  nlohmann::json parameters;
};
MockSpeech mock_speech(const MockCall& call, const std::vector<MockTool>& tools,
                       const nlohmann::json& schema);

// Content in "tokens": a word with the space before it.
std::vector<std::string> mock_tokens(const std::string& content);
// `text` in about `count` pieces, never inside a UTF-8 character.
std::vector<std::string> mock_pieces(const std::string& text, std::size_t count);
double mock_logprob(const std::string& token, std::size_t rank);
nlohmann::json mock_bytes(const std::string& text);
// OpenAI's list of tokens with `top` alternatives each.
nlohmann::json mock_logprobs(const std::vector<std::string>& tokens, std::size_t top);
// A value that satisfies the schema; strings that may be anything are `text`.
nlohmann::json mock_value(const nlohmann::json& schema, const std::string& text);

struct MockEvent {
  std::string name;  // empty: no event field
  std::string data;
};
// The stream of these events, written as the behaviour asks. `error` is what the API sends when it
// fails halfway; `end` its end marker.
MockAnswer mock_stream(const MockCall& call, std::vector<MockEvent> events, const MockEvent& error,
                       const std::vector<MockEvent>& end);

enum class MockApi { openai, anthropic };
MockAnswer mock_error(MockApi api, int status, const std::string& message, const std::string& code);
// Delays, cuts and headers that plain answers and streams have in common.
void apply_behaviour(const MockCall& call, MockAnswer& answer);

MockAnswer mock_chat(const MockCall& call);
MockAnswer mock_completions(const MockCall& call);
MockAnswer mock_responses(const MockCall& call);
MockAnswer mock_embeddings(const MockCall& call);
MockAnswer mock_messages(const MockCall& call);
MockAnswer mock_count_tokens(const MockCall& call);

}  // namespace fixpoint::test
