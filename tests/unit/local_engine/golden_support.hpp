// Comparison of a model with a golden file of tests/golden: prompts, ids, greedy tokens and
// log-probabilities, as a reference that we did not write computed them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "local_engine/engine.hpp"
#include "local_engine/sampler.hpp"
#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine::test_golden {

using Json = nlohmann::ordered_json;

// Two right fp32 forwards that sum in different orders stay within this of each other.
inline constexpr double kTolerance = 1e-3;
// A margin below twice the tolerance may flip between them.
inline constexpr double kNearTie = 2 * kTolerance;

// Sanitizers slow a forward pass down by more than ten; there, two cases have to do.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t kMostCases = 2;
#else
inline constexpr std::size_t kMostCases = 100;
#endif

// The file under tests/golden, cut to what a sanitized build has time for.
inline Json read_golden(const std::string& name) {
  std::ifstream in(FIXPOINT_SOURCE_DIR "/tests/golden/" + name);
  Json golden = Json::parse(in);
  Json& cases = golden["cases"];
  while (cases.size() > kMostCases) cases.erase(cases.size() - 1);
  return golden;
}

inline double difference(const std::vector<float>& logprobs, const Json& top) {
  double largest = 0;
  for (const Json& entry : top) {
    const double own = static_cast<double>(logprobs[entry[0].get<std::size_t>()]);
    largest = std::max(largest, std::abs(own - entry[1].get<double>()));
  }
  return largest;
}

// Runs each prompt and its greedy tokens through the forward pass: every log-probability that the
// file has, and each next token, which may differ at a near-tie only.
inline void expect_logprobs_and_greedy(const std::string& path, const Json& golden) {
  constexpr std::size_t kChunk = 128;
  const auto model = test::load_llama(path, 2, kChunk);
  const std::size_t vocabulary = model->config().vocabulary;
  auto pool = KvPool::create(model->config(), KvPool::pages_for(1024)).value();
  std::vector<float> logprobs(vocabulary);

  double largest = 0;
  std::size_t compared = 0, expected_tokens = 0, near_ties = 0;
  for (const Json& item : golden["cases"]) {
    const auto prompt = item["ids"].get<std::vector<TokenId>>();
    const auto greedy = item["greedy"].get<std::vector<TokenId>>();
    expected_tokens += greedy.size();
    std::vector<TokenId> tokens = prompt;
    tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
    const auto kv = pool->reserve(tokens.size()).value();

    for (std::size_t start = 0; start < tokens.size(); start += kChunk) {
      std::vector<ForwardRow> rows;
      for (std::size_t i = start; i < std::min(tokens.size(), start + kChunk); ++i) {
        rows.push_back({tokens[i], i, &kv, item.contains("prefill") || i + 1 >= prompt.size()});
      }
      auto logits = model->forward(rows);
      for (const auto& [token, position, pages, wants_logits] : rows) {
        if (!wants_logits) continue;
        const auto row = logits.first(vocabulary);
        logits = logits.subspan(vocabulary);
        kernels::log_softmax(row.data(), logprobs.data(), vocabulary);
        if (item.contains("prefill") && position < prompt.size()) {
          largest = std::max(largest, difference(logprobs, item["prefill"][position]["top"]));
        }
        if (position + 1 < prompt.size()) continue;
        const std::size_t step = position + 1 - prompt.size();
        const Json& expected = item["tokens"][step];
        largest = std::max(largest, difference(logprobs, expected["top"]));
        ++compared;
        const TokenId best = top_candidates(row, 1)[0].id;
        if (best == greedy[step]) continue;
        ++near_ties;
        EXPECT_LT(expected["margin"].get<double>(), kNearTie)
            << item["name"] << ", token " << step << ": " << best << " instead of " << greedy[step];
      }
    }
  }
  EXPECT_EQ(compared, expected_tokens);
  EXPECT_LE(largest, kTolerance);
  ::testing::Test::RecordProperty("largest_logprob_difference", std::to_string(largest));
  ::testing::Test::RecordProperty("near_ties", std::to_string(near_ties));
  std::cout << compared << " greedy tokens, " << near_ties
            << " near-ties chosen otherwise, largest logprob difference " << largest << "\n";
}

// The way a request goes: template, tokenizer, engine, text; all cases at once, so that they share
// batches. The reference goes on past the end of a turn, the engine does not.
inline void expect_answers(Engine& engine, const Json& golden) {
  struct Answer {
    std::vector<TokenId> ids;
    std::string text;
    std::promise<GenerateEvent> end;
  };
  const Json& cases = golden["cases"];
  std::vector<Answer> answers(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json& item = cases[i];
    const std::string text = item["text"];
    if (!item["messages"].is_null()) {
      ChatInput input;
      input.messages = item["messages"];
      if (item.contains("tools")) input.tools = item["tools"];
      const auto rendered = engine.chat_template()->render(input);
      ASSERT_TRUE(rendered) << rendered.error().message;
      EXPECT_EQ(*rendered, text);
    }
    GenerateRequest request;
    request.prompt = engine.tokenizer().encode(text, true);
    EXPECT_EQ(request.prompt, item["ids"].get<std::vector<TokenId>>()) << item["name"];
    request.max_tokens = item["greedy"].size();
    Answer& answer = answers[i];
    ASSERT_TRUE(engine.submit(request, [&answer](GenerateEvent event) {
      for (const GeneratedToken& token : event.tokens) answer.ids.push_back(token.id);
      answer.text += event.text;
      if (event.finish || event.error) answer.end.set_value(std::move(event));
    }));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json& item = cases[i];
    const GenerateEvent last = answers[i].end.get_future().get();
    ASSERT_FALSE(last.error) << item["name"] << ": " << last.error->message;
    auto expected = item["greedy"].get<std::vector<TokenId>>();
    const bool ends = !item["end_of_turn_at"].is_null();
    if (ends) expected.resize(item["end_of_turn_at"].get<std::size_t>() + 1);
    EXPECT_EQ(last.finish, ends ? FinishReason::stop : FinishReason::length) << item["name"];
    EXPECT_EQ(answers[i].ids, expected) << item["name"];
    const std::string text = item["answer"];
    EXPECT_EQ(answers[i].text, ends ? text.substr(0, text.find("<|im_end|>")) : text);
  }
}

}  // namespace fixpoint::engine::test_golden
