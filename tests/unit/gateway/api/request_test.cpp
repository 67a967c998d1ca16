#include <gtest/gtest.h>

#include "gateway/api/directives.hpp"
#include "gateway/api/job.hpp"
#include "gateway/api/openai_request.hpp"
#include "gateway/api/upstream_answer.hpp"

namespace fixpoint {
namespace {

constexpr auto kChat = Endpoint::chat_completions;

ApiResult<OpenAiRequest> parse(const std::string& extra, const Headers& headers = {}) {
  return parse_request(kChat, headers,
                       R"({"model":"m","messages":[{"role":"user","content":"x"}])" + extra + "}");
}

TEST(OpenAiRequest, ReadsWhatTheGatewayNeeds) {
  const auto request =
      parse(R"(,"stream":true,"stream_options":{"include_usage":true},"temperature":0.0,"seed":-5,
                                "logprobs":true)");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->model, "m");
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_TRUE(request->temperature_zero);
  EXPECT_TRUE(request->has_seed);
  EXPECT_TRUE(request->wants_logprobs);
}

TEST(OpenAiRequest, AbsentAndNullAreNotZero) {
  for (const char* extra :
       {"", R"(,"temperature":null,"seed":null,"stream":null,"stream_options":null)"}) {
    const auto request = parse(extra);
    ASSERT_TRUE(request) << extra;
    EXPECT_FALSE(request->temperature_zero);
    EXPECT_FALSE(request->has_seed);
    EXPECT_FALSE(request->stream);
  }
}

TEST(OpenAiRequest, NamesTheMemberThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(,"stream":1)", "stream"},
      {R"(,"temperature":"0")", "temperature"},
      {R"(,"seed":1.5)", "seed"},
      {R"(,"seed":18446744073709551616)", "seed"},
      {R"(,"stream_options":{"include_usage":1})", "stream_options.include_usage"}};
  for (const auto& [extra, param] : cases) {
    const auto request = parse(extra);
    ASSERT_FALSE(request) << extra;
    EXPECT_EQ(request.error().status, 400);
    EXPECT_EQ(request.error().param, param);
  }
  EXPECT_FALSE(parse(R"(,"model":"again")"));
  EXPECT_FALSE(parse_request(kChat, {}, R"({"model":"m","messages":[]})"));
  EXPECT_FALSE(parse_request(Endpoint::completions, {}, R"({"model":"m"})"));
  EXPECT_TRUE(parse_request(Endpoint::completions, {}, R"({"model":"m","prompt":[1,2]})"));
}

TEST(Directives, CacheControl) {
  Headers headers;
  headers.add("cache-control", "no-cache, Max-Age=\"60\"");
  headers.add("Cache-Control", "something-else, only-if-cached");
  const auto request = parse("", headers);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->directives.cache.no_cache);
  EXPECT_TRUE(request->directives.cache.only_if_cached);
  EXPECT_FALSE(request->directives.cache.no_store);
  EXPECT_EQ(request->directives.cache.max_age_s, 60);
}

TEST(Directives, SampleAndRepro) {
  Headers headers;
  headers.add("X-Fixpoint-Sample", " 7 ");
  headers.add("X-Fixpoint-Repro", "required");
  const auto request = parse(R"(,"metadata":{"fixpoint_repro":"off"})", headers);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->directives.sample, 7u);
  EXPECT_EQ(request->directives.repro, ReproMode::required);  // the header is nearer than the body
  EXPECT_EQ(parse(R"(,"metadata":{"fixpoint_repro":"preferred"})")->directives.repro,
            ReproMode::preferred);
  EXPECT_FALSE(parse(R"(,"metadata":{"fixpoint_repro":"maybe"})"));
  for (const char* bad : {"", "-1", "1.5", "4294967296", "x"}) {
    Headers wrong;
    wrong.add("x-fixpoint-sample", bad);
    EXPECT_FALSE(parse("", wrong)) << bad;
  }
}

TEST(UpstreamCall, ChangesTheBodyOnlyWhenUsageIsNeeded) {
  UpstreamConfig upstream;
  upstream.name = "u";
  upstream.headers.push_back({"x-extra", "1"});
  Request client;
  client.query = "a=b";
  client.headers.add("Authorization", "Bearer own");
  client.headers.add("x-fixpoint-sample", "1");
  client.headers.add("Accept-Encoding", "gzip");
  const std::string body =
      R"({ "model":"m" ,"n":12345678901234567890123,"stream_options":{"x":1}})";
  auto call = build_upstream_call(upstream, client, kChat, body, false);
  ASSERT_TRUE(call);
  EXPECT_EQ(*call->request.body, body);
  EXPECT_EQ(call->request.path, "/chat/completions?a=b");
  EXPECT_EQ(*call->request.headers.find("authorization"), "Bearer own");
  EXPECT_EQ(*call->request.headers.find("x-extra"), "1");
  EXPECT_EQ(call->request.headers.find("x-fixpoint-sample"), nullptr);
  EXPECT_EQ(call->request.headers.find("accept-encoding"), nullptr);

  upstream.api_key = "secret";
  call = build_upstream_call(upstream, client, kChat, body, true);
  ASSERT_TRUE(call);
  EXPECT_EQ(*call->request.headers.find("authorization"), "Bearer secret");
  const auto sent = nlohmann::json::parse(*call->request.body);
  EXPECT_EQ(sent["stream_options"], (nlohmann::json{{"x", 1}, {"include_usage", true}}));
  EXPECT_NE(call->request.body->find("12345678901234567890123"), std::string::npos);
}

TEST(RecordAnswer, TakesTokensAndMargins) {
  GenerationRecord record;
  record_answer(
      kChat,
      R"({"model":"m","system_fingerprint":"fp_1","usage":{"prompt_tokens":3,"completion_tokens":2},
    "choices":[{"finish_reason":"stop","logprobs":{"content":[
      {"token":"a","bytes":[97],"logprob":-0.1,"top_logprobs":[{"token":"b","logprob":-2.5,"bytes":[98]},
                                                              {"token":"a","logprob":-0.5,"bytes":[97]}]},
      {"token":"c","logprob":-1,"top_logprobs":[]}]}}]})",
      true, record);
  ASSERT_EQ(record.tokens.size(), 2u);
  EXPECT_EQ(record.tokens[0].bytes, "a");
  EXPECT_FLOAT_EQ(*record.tokens[0].margin, 2.0f);
  EXPECT_FALSE(record.tokens[1].margin);  // one alternative is no margin
  EXPECT_EQ(record.logprobs_status, "captured");
  EXPECT_EQ(record.fingerprint, "fp_1");
  EXPECT_EQ(record.prompt_tokens, 3u);
  EXPECT_EQ(record.finish_reason, "stop");

  GenerationRecord none;
  record_answer(kChat, R"({"choices":[{"finish_reason":"stop"}]})", false, none);
  EXPECT_EQ(none.logprobs_status, "unavailable: the client did not ask for them");
}

TEST(IsStorable, OnlyWholeAnswers) {
  EXPECT_TRUE(
      is_storable(R"({"choices":[{"finish_reason":"stop"},{"finish_reason":"tool_calls"}]})"));
  for (const char* bad : {R"({"choices":[{"finish_reason":"length"}]})",
                          R"({"choices":[{"finish_reason":"content_filter"}]})",
                          R"({"choices":[{"finish_reason":null}]})", R"({"choices":[]})",
                          R"({"error":{},"choices":[{"finish_reason":"stop"}]})", "[]", "x"}) {
    EXPECT_FALSE(is_storable(bad)) << bad;
  }
}

}  // namespace
}  // namespace fixpoint
