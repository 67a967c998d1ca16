#include "gateway/api/header_policy.hpp"

#include <gtest/gtest.h>

namespace fixpoint {
namespace {

Headers make(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Headers headers;
  for (const auto& [name, value] : fields) headers.add(name, value);
  return headers;
}

TEST(HeaderPolicy, ForwardsEndToEndFieldsOnly) {
  const auto sent = forwarded_headers({}, nullptr,
                                      make({{"OpenAI-Project", "p"},
                                            {"Connection", "close, X-Internal"},
                                            {"X-Internal", "1"},
                                            {"If-None-Match", "x"},
                                            {"Proxy-Authorization", "secret"},
                                            {"Cookie", "c"},
                                            {"X-Fixpoint-Sample", "1"},
                                            {"Authorization", "Bearer own"},
                                            {"Origin", "http://localhost"}}),
                                      false);
  EXPECT_NE(sent.find("openai-project"), nullptr);
  EXPECT_EQ(*sent.find("authorization"), "Bearer own");
  EXPECT_EQ(*sent.find("content-type"), "application/json");
  EXPECT_EQ(sent.size(), 3u);
}

TEST(HeaderPolicy, AnAnthropicClientsKeyReachesAnOpenAiUpstream) {
  const auto sent = forwarded_headers({}, nullptr, make({{"x-api-key", "own"}}), false);
  EXPECT_EQ(*sent.find("authorization"), "Bearer own");
  EXPECT_EQ(sent.find("x-api-key"), nullptr);
  const auto both =
      forwarded_headers({}, nullptr, make({{"x-api-key", "a"}, {"Authorization", "b"}}), false);
  EXPECT_EQ(*both.find("authorization"), "b");
}

TEST(HeaderPolicy, AFamilyOfHarmlessNamesHidesNoKey) {
  for (const char* name :
       {"cf-aig-authorization", "CF-Access-Client-Secret", "X-Forwarded-Access-Token",
        "X-ARR-ClientCert", "x-goog-api-key", "x-envoy-original-user"}) {
    EXPECT_NE(deciding_headers({}, make({{name, "alice"}}), true),
              deciding_headers({}, make({{name, "bob"}}), true))
        << name;
  }
  EXPECT_EQ(deciding_headers({}, make({{"CF-Ray", "1"}, {"X-Forwarded-For", "192.0.2.1"}}), true),
            "");
}

TEST(HeaderPolicy, WhatNamesOneRequestDecidesNothing) {
  for (const char* name :
       {"x-ms-client-request-id", "Elastic-Apm-Traceparent", "newrelic", "grpc-trace-bin", "Date",
        "x-amzn-requestid", "x-amz-date", "amz-sdk-invocation-id", "x-vercel-id", "sw8",
        "X-INSTANA-T", "x-newrelic-transaction", "langsmith-trace", "Request-Id", "fly-request-id",
        "uberctx-session", "x-goog-api-client"}) {
    EXPECT_EQ(deciding_headers({}, make({{name, "1"}}), true), "") << name;
  }
  for (const char* name : {"x-ms-client-principal", "x-amz-security-token", "x-vercel-oidc-token",
                           "x-session-id", "l5d-client-id"}) {
    EXPECT_NE(deciding_headers({}, make({{name, "1"}}), true), "") << name;
  }
}

TEST(HeaderPolicy, ARecordingShowsWhichHeadersDecideButNoSecret) {
  EXPECT_EQ(shown_headers(make({{"Accept", "*/*"}, {"Authorization", "Bearer secret"}})), "{}");
  EXPECT_EQ(shown_headers(make({{"X-Team", "secret"},
                                {"Anthropic-Beta", "a"},
                                {"anthropic-beta", "b"},
                                {"x-request-id", "1"}})),
            R"({"anthropic-beta":"a, b","x-team":"sha256:2bb80d537b1d"})");
}

TEST(HeaderPolicy, OrdersToAServerInBetweenStayBehind) {
  const auto seen = visible_headers(make({{"X-Accel-Redirect", "/etc/passwd"},
                                          {"X-Accel-Buffering", "yes"},
                                          {"X-Sendfile", "/etc/passwd"},
                                          {"x-ratelimit-limit-requests", "1"}}));
  EXPECT_EQ(seen.size(), 1u);
}

TEST(HeaderPolicy, TheGatewaysKeyReplacesTheClients) {
  UpstreamConfig upstream;
  upstream.api_key = "gateway";
  upstream.headers.push_back({"x-extra", "1"});
  const auto own =
      make({{"Authorization", "Bearer own"}, {"x-api-key", "own"}, {"api-key", "own"}});
  const auto sent = forwarded_headers(upstream, &upstream.api_key, own, false);
  EXPECT_EQ(*sent.find("authorization"), "Bearer gateway");
  EXPECT_EQ(sent.find("x-api-key"), nullptr);
  EXPECT_EQ(sent.find("api-key"), nullptr);
  EXPECT_EQ(*sent.find("x-extra"), "1");
}

TEST(HeaderPolicy, AGatewayKeyGoesNowhere) {
  const auto own = make({{"Authorization", "Bearer fp-secret"}, {"x-api-key", "fp-secret"}});
  const auto sent = forwarded_headers({}, nullptr, own, true);
  EXPECT_EQ(sent.find("authorization"), nullptr);
  EXPECT_EQ(sent.find("x-api-key"), nullptr);
  EXPECT_EQ(deciding_headers({}, own, false), "");
}

TEST(HeaderPolicy, AnthropicGetsItsOwnKeyHeaderAndAVersion) {
  UpstreamConfig upstream;
  upstream.kind = UpstreamKind::anthropic;
  const std::string key = "gateway";
  const auto sent =
      forwarded_headers(upstream, &key, make({{"Authorization", "Bearer own"}}), false);
  EXPECT_EQ(*sent.find("x-api-key"), "gateway");
  EXPECT_EQ(sent.find("authorization"), nullptr);
  EXPECT_EQ(*sent.find("anthropic-version"), "2023-06-01");
  const auto newer =
      forwarded_headers(upstream, &key, make({{"anthropic-version", "2026-10-21"}}), false);
  EXPECT_EQ(*newer.find("anthropic-version"), "2026-10-21");
}

TEST(HeaderPolicy, WhateverIsNotKnownToBeHarmlessDecides) {
  const auto base = deciding_headers({},
                                     make({{"User-Agent", "a"},
                                           {"x-stainless-retry-count", "1"},
                                           {"traceparent", "t"},
                                           {"Accept", "*/*"},
                                           {"Sec-Fetch-Mode", "cors"}}),
                                     false);
  EXPECT_EQ(base, "");
  for (const char* name :
       {"Authorization", "x-api-key", "Ocp-Apim-Subscription-Key", "OpenAI-Project", "x-new"}) {
    EXPECT_NE(deciding_headers({}, make({{name, "alice"}}), true),
              deciding_headers({}, make({{name, "bob"}}), true))
        << name;
  }
  EXPECT_EQ(deciding_headers({}, make({{"X-B", "2"}, {"x-a", "1"}}), true),
            deciding_headers({}, make({{"X-A", "1"}, {"x-b", "2"}}), true));
  UpstreamConfig shared;
  shared.api_key = "gateway";
  EXPECT_EQ(deciding_headers(shared, make({{"Authorization", "Bearer anything"}}), true), "");
  EXPECT_NE(deciding_headers(shared, make({{"OpenAI-Project", "p"}}), true), "");

  // The configuration's own fields count, and stand for the client's of that name.
  UpstreamConfig with_header;
  with_header.headers.push_back({"anthropic-beta", "x"});
  EXPECT_NE(deciding_headers(with_header, {}, true), "");
  EXPECT_EQ(deciding_headers(with_header, make({{"Anthropic-Beta", "client's"}}), true),
            deciding_headers(with_header, {}, true));
}

TEST(HeaderPolicy, ClientsSeeWhatConcernsThem) {
  const auto seen = visible_headers(make({{"x-request-id", "r"},
                                          {"x-ratelimit-remaining-tokens", "5"},
                                          {"Set-Cookie", "c"},
                                          {"Access-Control-Allow-Origin", "*"},
                                          {"Transfer-Encoding", "chunked"},
                                          {"x-fixpoint-key", "forged"}}));
  EXPECT_EQ(seen.size(), 2u);
}

TEST(HeaderPolicy, WhatWasDroppedFitsIntoAHead) {
  const auto announced = [](const std::vector<std::string>& members) {
    Headers headers;
    announce_dropped(members, headers);
    const auto* value = headers.find("x-fixpoint-dropped");
    return value ? *value : std::string("none");
  };
  EXPECT_EQ(announced({}), "none");
  EXPECT_EQ(announced({"seed", "metadata"}), "seed, metadata");
  EXPECT_EQ(announced({std::string(5000, 'x')}), "...");
  const auto many = announced(std::vector<std::string>(500, "member"));
  EXPECT_TRUE(many.ends_with(", member, ..."));
  EXPECT_LE(many.size(), 1024u + 5);
}

TEST(HeaderPolicy, ForeignPages) {
  const auto foreign = [](const char* host, const char* origin, bool loopback = true) {
    Headers headers = make({{"Host", host}});
    if (origin) headers.add("Origin", origin);
    return is_foreign_page(headers, loopback);
  };
  EXPECT_FALSE(foreign("127.0.0.1:8080", nullptr));
  EXPECT_FALSE(foreign("localhost:8080", "http://localhost:3000"));
  EXPECT_FALSE(foreign("[::1]:8080", "http://[::1]:3000"));
  EXPECT_TRUE(foreign("evil.example", nullptr));  // rebinding
  EXPECT_TRUE(foreign("127.0.0.1.evil.example", nullptr));
  EXPECT_TRUE(foreign("127.0.0.1:8080", "http://evil.example"));
  EXPECT_TRUE(foreign("127.0.0.1:8080", "http://localhost.evil.example"));
  EXPECT_TRUE(foreign("127.0.0.1:8080", "null"));
  EXPECT_FALSE(foreign("gateway.example", nullptr, false));
  EXPECT_FALSE(foreign("gateway.example", "https://gateway.example", false));
  EXPECT_TRUE(foreign("gateway.example", "https://evil.example", false));
}

}  // namespace
}  // namespace fixpoint
