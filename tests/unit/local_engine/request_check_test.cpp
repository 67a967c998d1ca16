#include "local_engine/request_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace fixpoint::engine {
namespace {

using ::testing::HasSubstr;

constexpr RequestLimits kLimits{.context = 100, .vocabulary = 300};

Result<void> check_with(const std::function<void(GenerateRequest&)>& change) {
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  change(request);
  return check_request(request, kLimits);
}

TEST(RequestCheck, AcceptsTheEdges) {
  EXPECT_TRUE(check_with([](GenerateRequest& r) {
    r.prompt.assign(60, 299);
    r.max_tokens = 40;
    r.sampling = {.temperature = 2,
                  .top_k = 1 << 30,
                  .top_p = 1e-9F,
                  .min_p = 0.999F,
                  .presence_penalty = -2,
                  .frequency_penalty = 2,
                  .logit_bias = {{0, -100.0F}, {299, 100.0F}}};
    r.stop.assign(kMaxStops, std::string(kMaxStopBytes, 'x'));
    r.top_logprobs = 20;
  }));
  EXPECT_TRUE(check_with([](GenerateRequest& r) { r.prompt.assign(99, 0); }));
  EXPECT_TRUE(check_with([](GenerateRequest& r) {
    r.prompt.assign(100, 0);  // nothing must fit behind it
    r.max_tokens = 0;
  }));
}

TEST(RequestCheck, NamesFieldAndLimit) {
  struct Case {
    std::function<void(GenerateRequest&)> change;
    const char* field;
    const char* limit;
  };
  const float nan = NAN;
  const std::vector<Case> cases = {
      {[](auto& r) { r.prompt.clear(); }, "prompt", "at least one"},
      {[](auto& r) { r.prompt[1] = 300; }, "prompt", "0 to 299"},
      {[](auto& r) { r.prompt[1] = -1; }, "prompt", "0 to 299"},
      {[](auto& r) { r.sampling.temperature = 2.5F; }, "temperature is 2.5", "0 to 2"},
      {[](auto& r) { r.sampling.temperature = -1; }, "temperature is -1", "0 to 2"},
      {[nan](auto& r) { r.sampling.temperature = nan; }, "temperature", "0 to 2"},
      {[](auto& r) { r.sampling.top_k = -1; }, "top_k", "0 (off) or more"},
      {[](auto& r) { r.sampling.top_p = 0; }, "top_p", "at most 1"},
      {[nan](auto& r) { r.sampling.top_p = nan; }, "top_p", "at most 1"},
      {[](auto& r) { r.sampling.min_p = 1; }, "min_p", "less than 1"},
      {[](auto& r) { r.sampling.presence_penalty = 3; }, "presence_penalty", "-2 to 2"},
      {[](auto& r) { r.sampling.frequency_penalty = -3; }, "frequency_penalty", "-2 to 2"},
      {[](auto& r) { r.sampling.logit_bias = {{300, 1.0F}}; }, "logit_bias", "0 to 299"},
      {[](auto& r) { r.sampling.logit_bias = {{1, 101.0F}}; }, "logit_bias", "-100 to 100"},
      {[nan](auto& r) { r.sampling.logit_bias = {{1, nan}}; }, "logit_bias", "-100 to 100"},
      {[](auto& r) { r.sampling.logit_bias.assign(1025, {1, 0.0F}); }, "logit_bias", "1024"},
      {[](auto& r) { r.stop = {""}; }, "stop", "1 to 256"},
      {[](auto& r) { r.stop = {std::string(257, 'x')}; }, "stop", "256"},
      {[](auto& r) { r.stop.assign(17, "x"); }, "stop", "16"},
      {[](auto& r) { r.top_logprobs = 21; }, "top_logprobs", "0 to 20"},
      {[](auto& r) { r.top_logprobs = -1; }, "top_logprobs", "0 to 20"},
  };
  for (const Case& c : cases) {
    const auto checked = check_with(c.change);
    ASSERT_FALSE(checked) << c.field;
    EXPECT_EQ(checked.error().code, ErrorCode::bad_request);
    EXPECT_THAT(checked.error().message, HasSubstr(c.field));
    EXPECT_THAT(checked.error().message, HasSubstr(c.limit));
  }
}

TEST(RequestCheck, NamesTheContext) {
  const auto long_prompt = check_with([](GenerateRequest& r) { r.prompt.assign(100, 0); });
  EXPECT_EQ(long_prompt.error().code, ErrorCode::context_exceeded);
  EXPECT_THAT(long_prompt.error().message, HasSubstr("context of 100 tokens"));
  const auto absurd = check_with([](GenerateRequest& r) { r.max_tokens = SIZE_MAX; });
  EXPECT_EQ(absurd.error().code, ErrorCode::context_exceeded);
  EXPECT_FALSE(check_with([](GenerateRequest& r) { r.max_tokens = 98; }));
  EXPECT_TRUE(check_with([](GenerateRequest& r) { r.max_tokens = 97; }));
  EXPECT_FALSE(check_with([](GenerateRequest& r) {
    r.prompt.assign(101, 0);
    r.max_tokens = 0;
  }));
}

}  // namespace
}  // namespace fixpoint::engine
