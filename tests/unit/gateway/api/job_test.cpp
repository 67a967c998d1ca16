#include "gateway/api/job.hpp"

#include <gtest/gtest.h>

#include <cctype>

#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

// Whether an answer of so many bytes is kept.
bool is_kept(Recording recording, std::size_t bytes) {
  Cores cores(1);
  Config config;
  config.cache.max_body_bytes = 1000;
  Gateway gateway(config, cores);
  gateway.store = make_memory_store(1 << 20);
  gateway.recording = recording;
  AnswerJob job(gateway);
  job.settings = gateway.settings();
  job.flight = std::make_shared<AnswerFlight>();
  job.store = true;
  job.key = {KeyKind::body, std::string(64, '0'), ""};
  EXPECT_TRUE(job.complete(std::string(bytes, ' ') + "{}", Json::object(), SseEvent{}, true));
  return gateway.store->stats()->entries == 1;
}

TEST(AnswerJob, ALongAnswerIsRecordedButNotCached) {
  EXPECT_TRUE(is_kept(Recording::off, 100));
  EXPECT_FALSE(is_kept(Recording::off, 1000));
  EXPECT_TRUE(is_kept(Recording::record, 1000));
}

struct Nobody final : Sleeper {
  void wake() override {}
};

TEST(AnswerJob, AStreamThatCannotBePutTogetherHasNoOtherForm) {
  Cores cores(1);
  Gateway gateway(Config(), cores);
  for (const bool faithful : {true, false}) {
    AnswerJob job(gateway);
    job.settings = gateway.settings();
    job.flight = std::make_shared<AnswerFlight>();
    job.faithful = faithful;
    const auto reader = job.flight->join(std::make_shared<Nobody>());
    ASSERT_TRUE(job.complete("{}", Json::object(), SseEvent{}, false));
    const auto event = reader->next();
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(std::get<AnswerComplete>(*event).body != nullptr, faithful);
  }
}

TEST(GenerationId, BeginsWithItsTime) {
  const auto early = new_generation_id(1'764'000'000'000),
             late = new_generation_id(1'764'000'000'001);
  EXPECT_EQ(early.substr(0, 15), "gen-19ab697e800");
  EXPECT_LT(early.substr(0, 15), late.substr(0, 15));
  EXPECT_NE(new_generation_id(1), new_generation_id(1));
  ASSERT_EQ(early.size(), 28U);
  for (const char c : early.substr(4)) EXPECT_TRUE(std::isxdigit(static_cast<unsigned char>(c)));
}

TEST(RandomHex, HasAsManyDigitsAsAsked) {
  for (const std::size_t digits : {0U, 1U, 13U, 16U, 17U, 32U}) {
    EXPECT_EQ(random_hex(digits).size(), digits);
  }
  EXPECT_NE(random_hex(24), random_hex(24));
}

}  // namespace
}  // namespace fixpoint
