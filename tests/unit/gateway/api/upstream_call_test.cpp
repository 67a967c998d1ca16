#include "gateway/api/upstream_call.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

class UpstreamCallTest : public testing::Test {
 protected:
  // Work for the upstream configured so.
  UpstreamWork work_for(const UpstreamConfig& upstream, Endpoint endpoint, std::string body) {
    Config config = config_;
    config.upstreams.push_back(upstream);
    UpstreamWork work;
    work.settings = std::make_shared<const Settings>(config, cores_, metrics_, nullptr);
    work.upstreams.push_back(work.settings->find_upstream(upstream.name));
    work.endpoint = endpoint;
    auto request = std::make_shared<Request>();
    request->body = std::move(body);
    work.request = std::move(request);
    work.model = "m";
    return work;
  }
  static UpstreamConfig named(std::string name) {
    UpstreamConfig upstream;
    upstream.name = std::move(name);
    upstream.base_url = "http://127.0.0.1:1/v1";
    return upstream;
  }
  static nlohmann::json sent(const ApiResult<UpstreamCall>& call) {
    return nlohmann::json::parse(*call->request.body);
  }

  Config config_;
  Cores cores_{1};
  MetricsRegistry registry_;
  RequestMetrics metrics_{registry_};
};

constexpr const char* kBody =
    R"({ "model":"m" ,"n":12345678901234567890123,"messages":[{"role":"user","content":"x"}],"stream_options":{"x":1}})";

TEST_F(UpstreamCallTest, PassesTheClientsBytes) {
  auto upstream = named("u");
  upstream.headers.push_back({"x-extra", "1"});
  auto work = work_for(upstream, Endpoint::chat_completions, kBody);
  auto request = *work.request;
  request.query = "a=b";
  request.headers.add("Authorization", "Bearer own");
  request.headers.add("x-fixpoint-sample", "1");
  request.headers.add("Accept-Encoding", "gzip");
  work.request = std::make_shared<const Request>(std::move(request));
  const auto call = build_upstream_call(work, *work.upstreams[0], false);
  ASSERT_TRUE(call);
  EXPECT_EQ(*call->request.body, kBody);
  EXPECT_EQ(call->request.body.get(), &work.request->body) << "what does not change is not copied";
  EXPECT_EQ(call->request.path, "/chat/completions?a=b");
  EXPECT_EQ(*call->request.headers.find("authorization"), "Bearer own");
  EXPECT_EQ(*call->request.headers.find("x-extra"), "1");
  EXPECT_EQ(call->request.headers.find("x-fixpoint-sample"), nullptr);
  EXPECT_EQ(call->request.headers.find("accept-encoding"), nullptr);
}

TEST_F(UpstreamCallTest, ChangesOnlyWhatTheConfigurationNeeds) {
  auto upstream = named("u");
  upstream.api_key = "secret";
  upstream.model_names.push_back({"m*", "real"});
  auto work = work_for(upstream, Endpoint::chat_completions, kBody);
  work.stream = true;
  const auto call = build_upstream_call(work, *work.upstreams[0], true);
  ASSERT_TRUE(call);
  EXPECT_EQ(*call->request.headers.find("authorization"), "Bearer secret");
  EXPECT_EQ(sent(call)["stream_options"], (nlohmann::json{{"x", 1}, {"include_usage", true}}));
  EXPECT_EQ(sent(call)["model"], "real");
  EXPECT_EQ(sent(call)["logprobs"], true);
  EXPECT_EQ(sent(call)["top_logprobs"], 5);
  EXPECT_TRUE(call->strip_logprobs);
  EXPECT_NE(call->request.body->find("12345678901234567890123"), std::string::npos);

  upstream.ask_for_usage = false;
  work = work_for(upstream, Endpoint::chat_completions, kBody);
  work.stream = work.wants_logprobs = true;
  const auto plain = build_upstream_call(work, *work.upstreams[0], true);
  ASSERT_TRUE(plain);
  EXPECT_EQ(sent(plain)["stream_options"], (nlohmann::json{{"x", 1}}));
  EXPECT_FALSE(sent(plain).contains("logprobs"));  // the client's own wish passes as it is
  EXPECT_FALSE(plain->strip_logprobs);
}

TEST_F(UpstreamCallTest, TheGatewaysDirectivesStayHere) {
  const auto upstream = named("u");
  const auto call_for = [&](const char* body) {
    auto work = work_for(upstream, Endpoint::chat_completions, body);
    work.directives_in_metadata = true;
    return *build_upstream_call(work, *work.upstreams[0], false)->request.body;
  };
  EXPECT_EQ(call_for(R"({"model":"m","metadata":{"fixpoint_repro":"off","b":"\"fixpoint_"}})"),
            R"({"model":"m","metadata":{"b":"\"fixpoint_"}})");
  EXPECT_EQ(call_for(R"({"model":"m","metadata":["fixpoint_repro"]})"),
            R"({"model":"m","metadata":["fixpoint_repro"]})");
}

TEST_F(UpstreamCallTest, TranslatesForAnotherApi) {
  auto upstream = named("u");
  upstream.kind = UpstreamKind::anthropic;
  upstream.api_key = "secret";
  const auto work =
      work_for(upstream, Endpoint::chat_completions,
               R"({"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]})");
  const auto call = build_upstream_call(work, *work.upstreams[0], true);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->endpoint, Endpoint::messages);
  EXPECT_EQ(call->request.path, "/v1/messages");
  EXPECT_NE(call->translator, nullptr);
  EXPECT_EQ(sent(call)["max_tokens"], 5);
  EXPECT_FALSE(call->strip_logprobs);  // Anthropic has none
  const auto embeddings = work_for(upstream, Endpoint::embeddings, R"({"model":"m","input":"x"})");
  const auto refused = build_upstream_call(embeddings, *embeddings.upstreams[0], false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "unsupported_endpoint");
}

TEST_F(UpstreamCallTest, TheKeyIsOfWhatTheUpstreamIsAsked) {
  auto upstream = named("u");
  const auto work = work_for(upstream, Endpoint::chat_completions, kBody);
  upstream.model_names.push_back({"m", "real"});
  const auto renamed = work_for(upstream, Endpoint::chat_completions, kBody);
  const Gateway gateway(config_, cores_);
  const auto key = [&](const UpstreamWork& of) {
    return key_at(gateway, of, *of.upstreams[0]).hex;
  };
  EXPECT_NE(key(work), key(renamed));
  auto other = work_for(upstream, Endpoint::chat_completions, kBody);
  auto request = *other.request;
  request.query = "x=1";
  other.request = std::make_shared<const Request>(std::move(request));
  EXPECT_NE(key(renamed), key(other));
}

TEST_F(UpstreamCallTest, CredentialsInTheQueryDecideButAreNotToBeRead) {
  const auto upstream = named("u");
  const Gateway gateway(config_, cores_);
  const auto key = [&](const char* query) {
    const auto work = work_for(upstream, Endpoint::chat_completions, kBody);
    auto request = *work.request;
    request.query = query;
    auto asked = work;
    asked.request = std::make_shared<const Request>(std::move(request));
    return key_at(gateway, asked, *asked.upstreams[0]);
  };
  const auto alice = key("x=1&api_key=ALICE");
  EXPECT_NE(alice.hex, key("x=1&api_key=BOB").hex);
  EXPECT_NE(alice.hex, key("x=2&api_key=ALICE").hex);
  EXPECT_EQ(alice.material.find("ALICE"), std::string::npos);
  EXPECT_NE(alice.material.find("?x=1"), std::string::npos);
}

TEST_F(UpstreamCallTest, ARecordingIsForEverybody) {
  auto upstream = named("u");
  config_.log.fingerprint_epoch = true;
  Gateway gateway(config_, cores_);
  gateway.recording = Recording::record;
  const auto key = [&](const char* name, const char* value, TenantPtr tenant) {
    auto work = work_for(upstream, Endpoint::chat_completions, kBody);
    auto request = *work.request;
    request.headers.add(name, value);
    work.request = std::make_shared<const Request>(std::move(request));
    work.tenant = std::move(tenant);
    return key_at(gateway, work, *work.upstreams[0]).hex;
  };
  const auto plain = key("accept", "*/*", nullptr);
  for (const char* name : {"authorization", "x-goog-api-key", "OpenAI-Organization"}) {
    EXPECT_EQ(key(name, "secret", nullptr), plain) << name;
  }
  auto tenant = std::make_shared<Tenant>();
  tenant->key.cache_namespace = "n";
  EXPECT_EQ(key("accept", "*/*", tenant), plain);
  EXPECT_NE(key("anthropic-beta", "x", nullptr), plain);
  upstream.headers.push_back({"OpenAI-Project", "of this build"});
  EXPECT_EQ(key("accept", "*/*", nullptr), plain);
}

}  // namespace
}  // namespace fixpoint
