// The default model against an fp32 reference (tests/golden/make_smollm2.py): llama.cpp on an F32 copy
// of the same weights. Skipped where the model is not on the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>

#include "local_engine/engine.hpp"
#include "local_engine/sampler.hpp"
#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using Json = nlohmann::ordered_json;

// Two right fp32 forwards that sum in different orders stay within this of each other.
constexpr double kTolerance = 1e-3;
// A margin below twice the tolerance may flip between them.
constexpr double kNearTie = 2 * kTolerance;

class Smollm2Golden : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = test::smollm2_path();
    if (path_.empty()) {
      GTEST_SKIP() << "the default model is not here: `fixpoint model pull smollm2-135m`, or set "
                      "FIXPOINT_TEST_MODEL";
    }
    std::ifstream in(FIXPOINT_SOURCE_DIR "/tests/golden/smollm2/greedy.json");
    golden_ = Json::parse(in);
  }

  std::string path_;
  Json golden_;
};

double difference(const std::vector<float>& logprobs, const Json& top) {
  double largest = 0;
  for (const Json& entry : top) {
    const double own = static_cast<double>(logprobs[entry[0].get<std::size_t>()]);
    largest = std::max(largest, std::abs(own - entry[1].get<double>()));
  }
  return largest;
}

TEST_F(Smollm2Golden, ForcedLogprobsAndGreedyTokens) {
  constexpr std::size_t kChunk = 128;
  const auto model = test::load_llama(path_, 2, kChunk);
  const std::size_t vocabulary = model->config().vocabulary;
  auto pool = KvPool::create(model->config(), KvPool::pages_for(1024)).value();
  std::vector<float> logprobs(vocabulary);

  double largest = 0;
  std::size_t compared = 0, near_ties = 0;
  for (const Json& item : golden_["cases"]) {
    const auto prompt = item["ids"].get<std::vector<TokenId>>();
    const auto greedy = item["greedy"].get<std::vector<TokenId>>();
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
  EXPECT_EQ(compared, 640U);
  EXPECT_LE(largest, kTolerance);
  RecordProperty("largest_logprob_difference", std::to_string(largest));
  RecordProperty("near_ties", std::to_string(near_ties));
  std::cout << compared << " greedy tokens, " << near_ties
            << " near-ties chosen otherwise, largest logprob difference " << largest << "\n";
}

// The way a request goes: template, tokenizer, engine, text. The reference goes on past the end of a
// turn, the engine does not.
TEST_F(Smollm2Golden, AnswersThroughTheEngine) {
  const auto engine = Engine::load(path_, {.threads = 2}).value();
  EXPECT_EQ(engine->info().weights_digest, golden_["about"]["model_sha256"].get<std::string>());
  for (const Json& item : golden_["cases"]) {
    const std::string name = item["name"];
    std::string text = item["text"];
    if (!item["messages"].is_null()) {
      ChatInput input;
      input.messages = item["messages"];
      const auto rendered = engine->chat_template()->render(input);
      ASSERT_TRUE(rendered) << name << ": " << rendered.error().message;
      EXPECT_EQ(*rendered, text) << name;
    }
    GenerateRequest request;
    request.prompt = engine->tokenizer().encode(text, true);
    ASSERT_EQ(request.prompt, item["ids"].get<std::vector<TokenId>>()) << name;
    auto expected = item["greedy"].get<std::vector<TokenId>>();
    request.max_tokens = expected.size();
    const bool ends = !item["end_of_turn_at"].is_null();
    if (ends) expected.resize(item["end_of_turn_at"].get<std::size_t>() + 1);

    std::promise<GenerateEvent> ended;
    std::vector<TokenId> ids;
    std::string answer;
    ASSERT_TRUE(engine->submit(request, [&](GenerateEvent event) {
      for (const GeneratedToken& token : event.tokens) ids.push_back(token.id);
      answer += event.text;
      if (event.finish || event.error) ended.set_value(std::move(event));
    }));
    const GenerateEvent last = ended.get_future().get();
    ASSERT_FALSE(last.error) << name << ": " << last.error->message;
    EXPECT_EQ(last.finish, ends ? FinishReason::stop : FinishReason::length) << name;
    EXPECT_EQ(ids, expected) << name;
    if (ends) {
      EXPECT_EQ(answer, "The capital of France is Paris.");
    } else {
      EXPECT_EQ(answer, item["answer"].get<std::string>()) << name;
    }
  }
}

}  // namespace
}  // namespace fixpoint::engine
