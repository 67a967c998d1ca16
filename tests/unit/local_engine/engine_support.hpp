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
      prompt.insert(prompt.end(), event.prompt_logprobs.begin(), event.prompt_logprobs.end());
      text += event.text;
      tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
      visible_tokens = event.visible_tokens;
      usage = event.usage;
      finish = event.finish;
      stopped_by = event.stopped_by;
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
  std::vector<GeneratedToken> prompt;  // its scores
  std::vector<GeneratedToken> tokens;
  std::size_t visible_tokens = 0, events = 0;
  Usage usage;
  std::optional<FinishReason> finish;
  std::string stopped_by;
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

inline void expect_same(const std::vector<GeneratedToken>& a,
                        const std::vector<GeneratedToken>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].id, b[i].id) << i;
    EXPECT_EQ(a[i].logprob, b[i].logprob) << i;
    EXPECT_EQ(a[i].margin, b[i].margin) << i;
    ASSERT_EQ(a[i].top.size(), b[i].top.size());
    for (std::size_t k = 0; k < a[i].top.size(); ++k) {
      EXPECT_EQ(a[i].top[k].id, b[i].top[k].id);
      EXPECT_EQ(a[i].top[k].logprob, b[i].top[k].logprob);
    }
  }
}

// Everything that a client can see of two generations, logprobs bit for bit.
inline void expect_same(const Collector& a, const Collector& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish, b.finish);
  expect_same(a.prompt, b.prompt);
  expect_same(a.tokens, b.tokens);
}

class EngineTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Engine>> load(EngineOptions options = {},
                                       test::TinyGgufOptions model = {}) {
    if (options.threads == 0) options.threads = 2;
    return Engine::load(test::write_tiny_gguf(directory_ / "tiny.gguf", model), options);
  }

  static GenerateRequest request(std::size_t prompt_tokens, std::optional<std::size_t> max_tokens,
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
