#include "gateway/api/local_answer.hpp"

#include <gtest/gtest.h>

#include "gateway/gateway.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tiny_gguf.hpp"

namespace fixpoint {
namespace {

struct Nobody : Sleeper {
  void wake() override {}
};

class LocalAnswerTest : public testing::Test {
 protected:
  LocalAnswerTest() {
    engine::EngineOptions options;
    options.name = "tiny";
    options.threads = 1;
    options.kv_bytes = std::size_t{8} << 20;
    auto loaded =
        engine::Engine::load(test::write_tiny_gguf(folder_.file("tiny.gguf"), {}), options);
    if (loaded) engine_ = std::move(*loaded);
  }

  // What a client of this endpoint gets for a chat request.
  Json answer(Endpoint client, std::vector<std::string> stop, bool limit_left_out = false) {
    const auto body = Json::parse(
        R"({"model":"tiny","max_tokens":40,"temperature":0,"messages":[{"role":"user","content":"Hi"}]})");
    auto request =
        build_local_request(Endpoint::chat_completions, body, LocalContext{*engine_}).value();
    request.limit_left_out = limit_left_out;
    auto& choice = request.choices[0];
    choice.stop = std::move(stop);
    for (engine::TokenId id = 128; id < 300; ++id) {  // ASCII alone, and no end
      choice.sampling.logit_bias.emplace_back(id, -100.0F);
    }
    auto job = std::make_shared<AnswerJob>(gateway_);
    job->settings = gateway_.settings();
    job->endpoint = client;
    job->record.id = new_generation_id(0);
    if (client != Endpoint::chat_completions) {
      job->translator = make_translator(client, Endpoint::chat_completions, Json::object());
    }
    auto flight = job->flight = std::make_shared<AnswerFlight>();
    const auto reader = flight->join(std::make_shared<Nobody>());
    start_local_answer(*engine_, Endpoint::chat_completions, std::move(request), std::move(job));
    Json result;
    EXPECT_TRUE(test::eventually([&] {
      while (const auto event = reader->next()) {
        const auto* complete = std::get_if<AnswerComplete>(event.get());
        if (complete) result = Json::parse(*complete->body);
        if (complete || std::holds_alternative<AnswerFailure>(*event)) return true;
      }
      return false;
    }));
    return result;
  }

  const test::TempDir folder_;
  Config config_;
  Cores cores_{1};
  Gateway gateway_{config_, cores_};
  std::unique_ptr<engine::Engine> engine_;
};

TEST_F(LocalAnswerTest, NamesTheContextsEndWhereTheApiDoes) {
  ASSERT_NE(engine_, nullptr);
  EXPECT_EQ(answer(Endpoint::messages, {}, true)["stop_reason"], "model_context_window_exceeded");
  EXPECT_EQ(answer(Endpoint::messages, {})["stop_reason"], "max_tokens");
}

TEST_F(LocalAnswerTest, NamesTheStopStringWhereTheApiDoes) {
  ASSERT_NE(engine_, nullptr);
  const auto whole = answer(Endpoint::messages, {"no text has this"});
  EXPECT_EQ(whole["stop_reason"], "max_tokens");
  EXPECT_EQ(whole["stop_sequence"], nullptr);
  const auto text = whole["content"][0]["text"].get<std::string>();
  ASSERT_GT(text.size(), 8u);
  const auto stop = text.substr(5, 2);

  const auto message = answer(Endpoint::messages, {"no text has this", stop});
  EXPECT_EQ(message["stop_reason"], "stop_sequence");
  EXPECT_EQ(message["stop_sequence"], stop);
  const auto chat = answer(Endpoint::chat_completions, {stop})["choices"][0];
  EXPECT_EQ(chat["finish_reason"], "stop");
  EXPECT_FALSE(chat.contains("stop_reason"));
  EXPECT_EQ(answer(Endpoint::responses, {stop})["status"], "completed");
}

}  // namespace
}  // namespace fixpoint
