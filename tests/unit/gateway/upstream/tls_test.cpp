#include "gateway/upstream/tls.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "gateway/upstream/client.hpp"
#include "tests/support/certificate.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/mock_upstream.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using test::CertificateFiles;
using test::MockUpstream;
using test::MockUpstreamOptions;

Task<Result<std::string>> ask(UpstreamClient& client, const UpstreamRequest& request) {
  const Result<std::unique_ptr<UpstreamResponse>> sent = co_await client.send(request);
  if (!sent) co_return tl::make_unexpected(sent.error());
  UpstreamResponse& response = **sent;
  Result<std::string> body = co_await UpstreamClient::read_all(response);
  co_return body;
}

class TlsTest : public testing::Test {
 protected:
  test::TempDir folder_;
  net::io_context context_{1};

  CertificateFiles make(const std::string& name, const std::string& host, int days = 1) {
    return test::make_certificate(folder_.path().string(), name, host, days);
  }
  std::unique_ptr<MockUpstream> serve(const CertificateFiles& files) {
    MockUpstreamOptions options;
    options.cert_file = files.certificate;
    options.key_file = files.key;
    return std::make_unique<MockUpstream>(options);
  }
  UpstreamOptions options(const MockUpstream& mock, const std::string& ca_file) {
    UpstreamOptions o;
    o.base_url = mock.base_url();
    o.ca_file = ca_file;
    return o;
  }
  Result<std::string> get(UpstreamClient& client, const std::string& model = "mock") {
    UpstreamRequest request;
    request.path = "/chat/completions";
    request.body = std::make_shared<const std::string>("{\"model\":\"" + model +
                                                       "\",\"messages\":[],\"stream\":true}");
    return test::run(context_, ask(client, request));
  }
};

TEST_F(TlsTest, ATrustedCertificate) {
  const CertificateFiles good = make("good", "localhost");
  const auto mock = serve(good);
  UpstreamClient client(context_, options(*mock, good.certificate));
  for (const char* model : {"mock", "mock-split", "mock-stream-100-0", "mock-big-1000000"}) {
    const Result<std::string> body = get(client, model);
    ASSERT_TRUE(body) << body.error().message;
    EXPECT_TRUE(body->ends_with("data: [DONE]\n\n"));
  }
  EXPECT_EQ(mock->connections(), 1u);
}

TEST_F(TlsTest, WhatIsNotTrusted) {
  const CertificateFiles other = make("other", "localhost");
  struct {
    const char* name;
    CertificateFiles server;
    std::string ca_file;
  } const cases[] = {
      {"signed by itself", make("self", "localhost"), ""},
      {"another authority", make("mine", "localhost"), other.certificate},
      {"another host", make("host", "elsewhere.example"), folder_.file("host.crt")},
      {"expired", make("old", "localhost", -1), folder_.file("old.crt")},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto mock = serve(c.server);
    UpstreamClient client(context_, options(*mock, c.ca_file));
    const Result<std::string> body = get(client);
    ASSERT_FALSE(body);
    EXPECT_EQ(body.error().code, ErrorCode::unreachable) << body.error().message;
    EXPECT_EQ(mock->requests(), 0u) << "no request may leave";
    UpstreamOptions unverified = options(*mock, "");
    unverified.verify_tls = false;
    UpstreamClient careless(context_, unverified);
    EXPECT_TRUE(get(careless)) << "verify_tls: false takes anything";
  }
}

TEST_F(TlsTest, SessionsAreResumed) {
  const CertificateFiles good = make("good", "localhost");
  const auto mock = serve(good);
  UpstreamOptions o = options(*mock, good.certificate);
  o.max_idle_connections = 0;  // each request has a connection of its own
  UpstreamClient client(context_, o);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(get(client));
  EXPECT_EQ(mock->connections(), 10u);
  EXPECT_EQ(mock->tls_resumed(), 9u);
  // Another client with the same policy, as on another core, shares the sessions.
  UpstreamClient second(context_, o);
  ASSERT_TRUE(get(second));
  EXPECT_EQ(mock->tls_resumed(), 10u);
}

TEST_F(TlsTest, ACutConnectionIsAnError) {
  const CertificateFiles good = make("good", "localhost");
  const auto mock = serve(good);
  UpstreamClient client(context_, options(*mock, good.certificate));
  const Result<std::string> body = get(client, "mock-cut-100");
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, ErrorCode::closed);
}

TEST_F(TlsTest, IdleConnectionsAreChecked) {
  const CertificateFiles good = make("good", "localhost");
  const auto mock = serve(good);
  UpstreamClient client(context_, options(*mock, good.certificate));
  ASSERT_TRUE(get(client));
  ASSERT_TRUE(get(client));
  EXPECT_EQ(mock->connections(), 1u);
  // The connection may not be idle yet on the mock's side when the answer is here.
  std::uint64_t requests = 2;
  EXPECT_TRUE(test::eventually([&] {
    mock->close_idle();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(get(client));
    ++requests;
    return mock->connections() == 2;
  }));
  EXPECT_EQ(mock->requests(), requests) << "no request was sent twice";
}

TEST_F(TlsTest, PlainTextWhereTlsIsExpected) {
  MockUpstream plain;
  UpstreamOptions o;
  o.base_url = "https://localhost:" + std::to_string(plain.port());
  o.verify_tls = false;
  o.connect_timeout = std::chrono::milliseconds(500);
  UpstreamClient client(context_, o);
  const Result<std::string> body = get(client);
  ASSERT_FALSE(body);
}

TEST_F(TlsTest, PoliciesAreShared) {
  const CertificateFiles good = make("good", "localhost");
  EXPECT_EQ(TlsPolicy::get(good.certificate, true), TlsPolicy::get(good.certificate, true));
  const auto held = TlsPolicy::get(good.certificate, true);
  EXPECT_EQ(held, TlsPolicy::get(good.certificate, true));
  EXPECT_NE(held, TlsPolicy::get(good.certificate, false));
  std::filesystem::copy_file(make("rotated", "localhost").certificate, good.certificate,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(held, TlsPolicy::get(good.certificate, true)) << "what the file holds now counts";
  EXPECT_THROW(TlsPolicy::get(folder_.file("missing"), true), std::runtime_error);
}

}  // namespace
}  // namespace fixpoint
