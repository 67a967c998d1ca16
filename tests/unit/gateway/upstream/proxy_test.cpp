// Upstreams behind a forward proxy, and the limit of a whole call.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gateway/upstream/tls.hpp"
#include "tests/support/certificate.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/gateway/upstream/client_fixture.hpp"

namespace fixpoint {
namespace {

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

class ProxyTest : public ClientTest {
 protected:
  static std::string proxy_url(const ScriptedServer& proxy, const std::string& user = "") {
    return "http://" + user + "127.0.0.1:" + std::to_string(proxy.port());
  }
  static std::string proxy_name(const ScriptedServer& proxy) {
    return "proxy 127.0.0.1:" + std::to_string(proxy.port());
  }
};

TEST_F(ProxyTest, AbsoluteFormForHttp) {
  std::vector<std::string> seen;
  ScriptedServer proxy({[&](ScriptedPeer& peer) {
    for (std::string request; !(request = peer.read_request()).empty();) {
      seen.push_back(request);
      peer.send(kOk);
    }
  }});
  {
    UpstreamOptions o = options("http://model.example:8000/v1");
    o.proxy = proxy_url(proxy, "us%40er:p%3Ass@");
    UpstreamClient client(context_, o);
    UpstreamRequest request;
    request.path = "/chat?x=1";
    request.headers.add("Proxy-Authorization", "evil");
    ASSERT_TRUE(get(client, request)) << "the upstream's name is resolved by the proxy alone";
    ASSERT_TRUE(get(client, request));
    EXPECT_EQ(proxy.connections(), 1);
  }
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0],
            "POST http://model.example:8000/v1/chat?x=1 HTTP/1.1\r\n"
            "Host: model.example:8000\r\n"
            "Proxy-Authorization: Basic dXNAZXI6cDpzcw==\r\n"
            "Accept-Encoding: identity\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(seen[1], seen[0]);
}

TEST_F(ProxyTest, TheRootInAbsoluteForm) {
  std::string seen;
  ScriptedServer proxy({[&](ScriptedPeer& peer) {
    seen = peer.read_request();
    peer.send(kOk);
  }});
  UpstreamOptions o = options("http://model.example");
  o.proxy = proxy_url(proxy);
  UpstreamClient client(context_, o);
  UpstreamRequest request;
  request.path = "?x=1";
  ASSERT_TRUE(get(client, request));
  EXPECT_TRUE(seen.starts_with("POST http://model.example/?x=1 HTTP/1.1\r\n")) << seen;
}

TEST_F(ProxyTest, ATunnelForHttpsAndResumptionThroughIt) {
  test::TempDir folder;
  const auto files = test::make_certificate(folder.path().string(), "good", "localhost");
  test::MockUpstreamOptions secure;
  secure.cert_file = files.certificate;
  secure.key_file = files.key;
  MockUpstream mock(secure);
  const auto policy =
      TlsPolicy::get(files.certificate, true);  // keeps the sessions of both clients
  std::atomic<int> tunnels{0};
  std::string asked;
  ScriptedServer proxy({[&](ScriptedPeer& peer) {
    asked = peer.read_request();
    peer.send("HTTP/1.1 102 Processing\r\n\r\n");
    peer.send(kEstablished);
    ++tunnels;
    peer.tunnel_to(mock.port());
  }});
  UpstreamOptions o = options(mock.base_url());
  o.ca_file = files.certificate;
  o.proxy = proxy_url(proxy, "user:secret@");
  {
    UpstreamClient client(context_, o);
    for (int i = 0; i < 3; ++i) {
      const Result<Answer> answer = get(client, chat("mock"));
      ASSERT_TRUE(answer) << answer.error().message;
    }
    EXPECT_EQ(tunnels, 1) << "the tunnel is kept";
    const std::string authority = "localhost:" + std::to_string(mock.port());
    EXPECT_EQ(asked, "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority +
                         "\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n");
    EXPECT_EQ(mock.stats().find("dXNlcjpzZWNyZXQ"), std::string::npos)
        << "the proxy's credentials reached the upstream";
  }
  o.max_idle_connections = 0;
  UpstreamClient client(context_, o);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(get(client, chat("mock")));
  EXPECT_EQ(mock.tls_resumed(), 3u);
}

TEST_F(ProxyTest, TheHostInsideTheTunnelIsVerified) {
  test::TempDir folder;
  const auto files = test::make_certificate(folder.path().string(), "other", "elsewhere.example");
  test::MockUpstreamOptions secure;
  secure.cert_file = files.certificate;
  secure.key_file = files.key;
  MockUpstream mock(secure);
  ScriptedServer proxy({[&](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(kEstablished);
    peer.tunnel_to(mock.port());
  }});
  UpstreamOptions o = options(mock.base_url());
  o.ca_file = files.certificate;
  o.proxy = proxy_url(proxy);
  UpstreamClient client(context_, o);
  const Result<Answer> answer = get(client, chat("mock"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unreachable);
  EXPECT_NE(answer.error().message.find(proxy_name(proxy)), std::string::npos);
  EXPECT_EQ(mock.requests(), 0u);
}

TEST_F(ProxyTest, ProxiesThatRefuseOrBreak) {
  struct Case {
    std::string answer;
    ErrorCode code;
  };
  const std::vector<Case> cases = {
      {"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno",
       ErrorCode::unreachable},
      {"HTTP/1.1 502 Bad Gateway\r\n\r\n", ErrorCode::unreachable},
      {"", ErrorCode::closed},
      {"HTTP/1.1 200 OK\r\n", ErrorCode::closed},
      {"nonsense\r\n\r\n", ErrorCode::protocol},
      {"HTTP/1.1 2000 OK\r\n\r\n", ErrorCode::protocol},
      {"HTTP/1.1 200 OK\n\n", ErrorCode::protocol},
      {"HTTP/1.1 200 OK\r\n\r\nearly bytes", ErrorCode::protocol},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", ErrorCode::protocol},
  };
  for (const Case& c : cases) {
    ScriptedServer proxy({[&](ScriptedPeer& peer) {
      peer.read_request();
      peer.send(c.answer);
    }});
    UpstreamOptions o = options("https://model.example");
    o.proxy = proxy_url(proxy, "user:secret@");
    UpstreamClient client(context_, o);
    const Result<Answer> answer = get(client);
    ASSERT_FALSE(answer) << c.answer;
    EXPECT_EQ(answer.error().code, c.code) << c.answer << answer.error().message;
    EXPECT_NE(answer.error().message.find(proxy_name(proxy)), std::string::npos)
        << answer.error().message;
    EXPECT_EQ(answer.error().message.find("secret"), std::string::npos);
    EXPECT_EQ(proxy.connections(), 1);
  }
}

TEST_F(ProxyTest, PlainProxyThatWantsOtherCredentials) {
  ScriptedServer proxy({[&](ScriptedPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno");
  }});
  UpstreamOptions o = options("http://model.example");
  o.proxy = proxy_url(proxy);
  UpstreamClient client(context_, o);
  const Result<Answer> answer = get(client);
  ASSERT_FALSE(answer) << "407 is not the upstream's answer";
  EXPECT_NE(answer.error().message.find(proxy_name(proxy)), std::string::npos);
}

TEST_F(ProxyTest, UnreachableAndSilentProxies) {
  std::string gone;
  {
    ScriptedServer proxy({[](ScriptedPeer&) {}});
    gone = proxy_url(proxy);
  }
  UpstreamOptions o = options("https://model.example");
  o.proxy = gone;
  UpstreamClient client(context_, o);
  const Result<Answer> refused = get(client);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unreachable);
  EXPECT_NE(refused.error().message.find("cannot connect to proxy 127.0.0.1:"), std::string::npos);
  ScriptedServer silent({[](ScriptedPeer& peer) { peer.client_left(); }});
  o.proxy = proxy_url(silent);
  o.connect_timeout = milliseconds(100);
  UpstreamClient waits(context_, o);
  const Result<Answer> late = get(waits);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  EXPECT_NE(late.error().message.find(proxy_name(silent)), std::string::npos);
}

TEST_F(ProxyTest, TheAddress) {
  const Result<Proxy> plain = parse_proxy("http://proxy.example:3128/");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host, "proxy.example");
  EXPECT_EQ(plain->port, 3128);
  EXPECT_EQ(plain->authorization, "");
  const Result<Proxy> v6 = parse_proxy("HTTP://a@[::1]");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 80);
  EXPECT_EQ(v6->authorization, "Basic YTo=");
  for (const char* bad :
       {"", "proxy:3128", "https://proxy", "socks5://proxy", "http://", "http://p:0", "http://p:x",
        "http://p/path", "http://p?x", "http://se%zzcret@p", "http://secret%3@p",
        "http://se%3Acret:x@p", "http://a:secret%0d%0a@p"}) {
    const Result<Proxy> proxy = parse_proxy(bad);
    ASSERT_FALSE(proxy) << bad;
    EXPECT_EQ(proxy.error().code, ErrorCode::invalid);
    EXPECT_EQ(proxy.error().message.find("cret"), std::string::npos);
  }
  EXPECT_THROW(
      {
        UpstreamOptions o = options("http://a");
        o.proxy = "nonsense";
        UpstreamClient client(context_, o);
      },
      std::runtime_error);
}

TEST_F(ProxyTest, TheWholeCallHasALimit) {
  // A byte every few milliseconds, for ever: no single wait is long.
  const auto drip = [](ScriptedPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.send("x")) std::this_thread::sleep_for(milliseconds(2));
  };
  ScriptedServer server({drip});
  UpstreamOptions o = options(server.url());
  o.total_timeout = milliseconds(150);
  UpstreamClient client(context_, o);
  const Result<Answer> answer = get(client);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::timeout);
  EXPECT_NE(answer.error().message.find("total_timeout"), std::string::npos);
  // The request's own deadline goes before the option.
  ScriptedServer silent({[](ScriptedPeer& peer) { peer.client_left(); }});
  o = options(silent.url());
  o.total_timeout = std::chrono::hours(1);
  UpstreamClient patient(context_, o);
  UpstreamRequest request;
  request.deadline = Clock::now() + milliseconds(100);
  const Result<Answer> late = get(patient, request);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  EXPECT_NE(late.error().message.find("total_timeout"), std::string::npos);
}

TEST_F(ProxyTest, ADeadlineThatIsNotReachedChangesNothing) {
  MockUpstream mock;
  UpstreamOptions o = options(mock.base_url());
  o.total_timeout = std::chrono::seconds(30);
  UpstreamClient client(context_, o);
  const Result<Answer> answer = get(client, chat("mock-stream-20-1", true));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->body.ends_with("data: [DONE]\n\n"));
}

}  // namespace
}  // namespace fixpoint
