// What tests of the whole engine share: one engine on the small model, and a listener per
// generation.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "local_engine/engine.hpp"
#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {

// Collects one generation's events and waits for its end.
class Collector {
 public:
  GenerateCallback callback() {
    return [this](GenerateEvent event) {
      const std::lock_guard lock(mutex_);
      text += event.text;
      tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
      visible_tokens = event.visible_tokens;
      usage = event.usage;
      finish = event.finish;
      error = event.error;
      ++events;
      ended_ = event.finish || event.error;
      changed_.notify_all();
    };
  }
  void wait() {
    wait_for([this] { return ended_; });
  }
  void wait_for_tokens(std::size_t count) {
    wait_for([&] { return ended_ || tokens.size() >= count; });
  }
  std::vector<TokenId> ids() const {
    std::vector<TokenId> out;
    for (const auto& token : tokens) out.push_back(token.id);
    return out;
  }

  std::string text;
  std::vector<GeneratedToken> tokens;
  std::size_t visible_tokens = 0, events = 0;
  Usage usage;
  std::optional<FinishReason> finish;
  std::optional<Error> error;

 private:
  template <class Condition>
  void wait_for(Condition condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

// Everything that a client can see of two generations, logprobs bit for bit.
inline void expect_same(const Collector& a, const Collector& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish, b.finish);
  ASSERT_EQ(a.tokens.size(), b.tokens.size());
  for (std::size_t i = 0; i < a.tokens.size(); ++i) {
    EXPECT_EQ(a.tokens[i].id, b.tokens[i].id) << i;
    EXPECT_EQ(a.tokens[i].logprob, b.tokens[i].logprob) << i;
    EXPECT_EQ(a.tokens[i].margin, b.tokens[i].margin) << i;
    ASSERT_EQ(a.tokens[i].top.size(), b.tokens[i].top.size());
    for (std::size_t k = 0; k < a.tokens[i].top.size(); ++k) {
      EXPECT_EQ(a.tokens[i].top[k].id, b.tokens[i].top[k].id);
      EXPECT_EQ(a.tokens[i].top[k].logprob, b.tokens[i].top[k].logprob);
    }
  }
}

class EngineTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Engine>> load(EngineOptions options = {},
                                       test::TinyGgufOptions model = {}) {
    if (options.threads == 0) options.threads = 2;
    return Engine::load(test::write_tiny_gguf(directory_ / "tiny.gguf", model), options);
  }

  static GenerateRequest request(std::size_t prompt_tokens, std::size_t max_tokens,
                                 TokenId first = 65) {
    GenerateRequest r;
    for (std::size_t i = 0; i < prompt_tokens; ++i) {
      r.prompt.push_back(static_cast<TokenId>((static_cast<std::size_t>(first) + i * 7) % 250));
    }
    r.max_tokens = max_tokens;
    // The end and the other control tokens never come, so that lengths are known.
    r.sampling.logit_bias = {{297, -100.0F}, {298, -100.0F}, {299, -100.0F}};
    return r;
  }

  static void run(Engine& engine, GenerateRequest r, Collector& collector) {
    const auto id = engine.submit(std::move(r), collector.callback());
    ASSERT_TRUE(id) << id.error().message;
    collector.wait();
  }

  const test::TemporaryDirectory directory_;
};

}  // namespace fixpoint::engine
