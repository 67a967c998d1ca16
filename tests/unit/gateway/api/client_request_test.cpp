#include "gateway/api/client_request.hpp"

#include <gtest/gtest.h>

#include <list>

namespace fixpoint {
namespace {

constexpr auto kChat = Endpoint::chat_completions;

// Requests live as long as the views into them.
ApiResult<ClientRequest> read(Endpoint endpoint, std::string body, const Headers& headers = {}) {
  static std::list<Request> requests;
  auto& request = requests.emplace_back();
  request.body = std::move(body);
  request.headers = headers;
  return read_request(endpoint, request);
}

ApiResult<ClientRequest> parse(const std::string& extra, const Headers& headers = {}) {
  return read(kChat, R"({"model":"m","messages":[{"role":"user","content":"x"}])" + extra + "}",
              headers);
}

TEST(ClientRequest, ReadsWhatTheGatewayNeeds) {
  const auto request =
      parse(R"(,"stream":true,"stream_options":{"include_usage":true},"temperature":0.0,"seed":-5,
                                "logprobs":true)");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->model, "m");
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_TRUE(request->one_answer);
  EXPECT_TRUE(request->wants_logprobs);
}

TEST(ClientRequest, AbsentAndNullAreNotZero) {
  for (const char* extra :
       {"", R"(,"temperature":null,"seed":null,"stream":null,"stream_options":null)"}) {
    const auto request = parse(extra);
    ASSERT_TRUE(request) << extra;
    EXPECT_FALSE(request->one_answer);
    EXPECT_FALSE(request->stream);
  }
}

TEST(ClientRequest, NamesOfModelsHaveALimit) {
  const auto with_model = [](std::size_t bytes) {
    return read(kChat, R"({"messages":[{"role":"user","content":"x"}],"model":")" +
                           std::string(bytes, 'm') + "\"}");
  };
  EXPECT_TRUE(with_model(512));
  const auto refused = with_model(513);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 400);
  EXPECT_EQ(refused.error().param, "model");
  EXPECT_NE(refused.error().message.find("at most 512"), std::string::npos);
}

TEST(ClientRequest, NamesTheMemberThatIsWrong) {
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
  EXPECT_FALSE(read(kChat, R"({"model":"m","messages":[]})"));
  EXPECT_FALSE(read(Endpoint::completions, R"({"model":"m"})"));
  EXPECT_TRUE(read(Endpoint::completions, R"({"model":"m","prompt":[1,2]})"));
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

TEST(ClientRequest, EndpointsThatComputeAskForOneAnswer) {
  Request request;
  request.body = R"({"model":"e","input":"x"})";
  EXPECT_TRUE(read_request(Endpoint::embeddings, request)->one_answer);
  EXPECT_FALSE(read_request(Endpoint::responses, request)->one_answer);
  request.body = R"({"model":"c","messages":[{"role":"user","content":"x"}]})";
  EXPECT_TRUE(read_request(Endpoint::count_tokens, request)->one_answer);
  EXPECT_FALSE(read_request(Endpoint::messages, request)->one_answer);
}

TEST(ClientRequest, TheCanonicalFormLeavesOutWhatDecidesNothing) {
  const auto request = parse(R"(,"user":"u","stream":true,"top_p":0.50,"b":1e2)");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->canonical,
            R"({"b":100,"messages":[{"content":"x","role":"user"}],"model":"m","top_p":0.5})");
  EXPECT_EQ(request->find("top_p"), "0.50");
  EXPECT_FALSE(request->find("absent"));
}

TEST(ClientRequest, TextOfStrings) {
  EXPECT_EQ(string_value(R"("a\u00e9\n")"), "a\u00e9\n");
  EXPECT_FALSE(string_value("1"));
  EXPECT_FALSE(string_value("\""));
}

}  // namespace
}  // namespace fixpoint
