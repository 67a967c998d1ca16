#include "gateway/upstream/client.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/gateway/upstream/client_fixture.hpp"

namespace fixpoint {
namespace {

TEST_F(ClientTest, PlainAndStreamed) {
  MockUpstream mock;
  UpstreamClient client(context_, options(mock.base_url()));
  const Result<Answer> plain = get(client, chat("mock"));
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->status, 200);
  EXPECT_NE(plain->body.find("mock answer body="), std::string::npos);
  const Result<Answer> stream = get(client, chat("mock-stream-50-0", true));
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_TRUE(stream->body.ends_with("data: [DONE]\n\n"));
  const Result<Answer> split = get(client, chat("mock-split", true));
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_TRUE(split->body.ends_with("data: [DONE]\n\n"));
  const Result<Answer> limited = get(client, chat("mock-error-429"));
  ASSERT_TRUE(limited);
  EXPECT_EQ(limited->status, 429);
  EXPECT_EQ(*limited->headers.find("Retry-After"), "1");
  EXPECT_EQ(mock.connections(), 1u) << "one connection served all";
  const Result<Answer> large = get(client, chat("mock-big-5000000"));
  ASSERT_TRUE(large);
  EXPECT_GT(large->body.size(), 5000000u);
}

TEST_F(ClientTest, WhatGoesOut) {
  std::string seen;
  ScriptedServer server({[&](ScriptedPeer& peer) {
    seen = peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  }});
  UpstreamClient client(context_, options(server.url() + "/base/"));
  UpstreamRequest request;
  request.path = "/x?y=z";
  request.body = std::make_shared<const std::string>("hello");
  for (const char* name :
       {"Connection", "Transfer-Encoding", "TE", "Upgrade", "Content-Length", "Host", "Expect",
        "Accept-Encoding", "Keep-Alive", "Proxy-Authorization"}) {
    request.headers.add(name, "evil");
  }
  request.headers.add("Authorization", "Bearer key");
  ASSERT_TRUE(get(client, std::move(request)));
  EXPECT_EQ(seen, "POST /base/x?y=z HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                      "\r\nAuthorization: Bearer key\r\nAccept-Encoding: identity\r\n"
                      "Content-Length: 5\r\n\r\nhello");
}

TEST_F(ClientTest, TellsWhetherTheRequestWentOut) {
  bool written = false;
  const auto ask = [&](const std::string& url) {
    UpstreamClient client(context_, options(url));
    UpstreamRequest request = chat("mock");
    request.written = &written;
    return get(client, std::move(request));
  };
  EXPECT_FALSE(ask("http://127.0.0.1:1/v1"));
  EXPECT_FALSE(written) << "nobody is there";
  ScriptedServer server({[](ScriptedPeer& peer) { peer.read_request(); }});
  EXPECT_FALSE(ask(server.url()));
  EXPECT_TRUE(written) << "it left without an answer";
}

TEST_F(ClientTest, MalformedRequestsDoNotLeave) {
  ScriptedServer server({[](ScriptedPeer& peer) { peer.read_request(); }});
  UpstreamClient client(context_, options(server.url()));
  std::vector<UpstreamRequest> bad(4);
  bad[0].headers.add("X", "a\r\nY: b");
  bad[1].headers.add("X Y", "a");
  bad[2].path = "/a b";
  bad[3].method = "GET /";
  for (const UpstreamRequest& request : bad) {
    const Result<Answer> answer = get(client, request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::invalid);
  }
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(ClientTest, HopByHopFieldsAreRemoved) {
  const Result<Answer> answer = answer_to(
      "HTTP/1.1 200 OK\r\nConnection: close, X-Private\r\nKeep-Alive: timeout=5\r\nX-Private: 1\r\n"
      "Upgrade: h2c\r\nX-Request-Id: 7\r\nContent-Length: 2\r\n\r\nok");
  ASSERT_TRUE(answer) << answer.error().message;
  for (const char* name : {"Connection", "Keep-Alive", "X-Private", "Upgrade"}) {
    EXPECT_EQ(answer->headers.find(name), nullptr) << name;
  }
  EXPECT_EQ(*answer->headers.find("x-request-id"), "7");
}

TEST_F(ClientTest, BodiesOfEachFraming) {
  EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")->body, "abc");
  EXPECT_EQ(
      answer_to("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n"
                "0\r\nT: t\r\n\r\n")
          ->body,
      "abc");
  EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\n\r\nabc")->body, "abc");
  EXPECT_EQ(answer_to("HTTP/1.0 200 OK\r\n\r\nabc")->body, "abc");
  EXPECT_EQ(answer_to("HTTP/1.1 204 No Content\r\n\r\n")->body, "");
  EXPECT_EQ(answer_to("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
                ->body,
            "abc");
  UpstreamRequest head;
  head.method = "HEAD";
  EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", head)->body, "");
}

TEST_F(ClientTest, ATruncatedBodyIsNeverAnAnswer) {
  const std::string wholes[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n",
  };
  for (const std::string& whole : wholes) {
    ASSERT_TRUE(answer_to(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      for (const bool reset : {false, true}) {
        const Result<Answer> answer = answer_to(whole.substr(0, size), {}, reset);
        ASSERT_FALSE(answer) << "cut after " << size << " of " << whole;
        EXPECT_EQ(answer.error().code, ErrorCode::closed) << answer.error().message;
      }
    }
  }
  const Result<Answer> reset = answer_to("HTTP/1.1 200 OK\r\n\r\nabc", {}, true);
  ASSERT_FALSE(reset) << "only a proper close ends a body without framing";
}

TEST_F(ClientTest, MalformedResponses) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& bytes : std::vector<std::string>{
           "hello\r\n\r\n",
           "HTTP/2.0 200 OK\r\n\r\n",
           "HTTP/1.1 99 No\r\n\r\n",
           "HTTP/1.1 600 No\r\n\r\n",
           ok + "Transfer-Encoding: gzip\r\n\r\nabc",
           ok + "Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
           ok + "Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\nabc",
           ok + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
           ok + "Content-Length: 3, 3\r\n\r\nabc",
           ok + "Content-Length: -3\r\n\r\nabc",
           ok + "X: a\r\n b\r\n\r\n",
           ok + "X : a\r\n\r\n",
           ok + "X: a\nY: b\r\n\r\n",
           "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
           "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           ok + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
           "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
           ok + "X: " + std::string(70000, 'x') + "\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\n3;" + std::string(20000, 'x') +
               "\r\nabc\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(20000, 'x') +
               "\r\n\r\n"}) {
    expect_error(bytes, ErrorCode::protocol);
  }
  std::string interim;
  for (int i = 0; i < 100; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  expect_error(interim, ErrorCode::protocol);
}

TEST_F(ClientTest, AnErrorKeepsItsStatusInAnyEncoding) {
  const auto answer = answer_to(
      "HTTP/1.1 429 Slow\r\nContent-Encoding: gzip\r\nRetry-After: 1\r\nContent-Length: 3\r\n\r\n"
      "abc");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 429);
  EXPECT_NE(answer->headers.find("Retry-After"), nullptr);
}

TEST_F(ClientTest, TheLimitOfAResponse) {
  const std::string heads[] = {
      "Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'),
      "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x') + "\r\n0\r\n\r\n",
      "\r\n" + std::string(1001, 'x')};
  for (const std::string& head : heads) {
    ScriptedServer server({[&](ScriptedPeer& peer) {
      peer.read_request();
      peer.send("HTTP/1.1 200 OK\r\n" + head);
    }});
    UpstreamOptions limited = options(server.url());
    limited.max_response_bytes = 1000;
    UpstreamClient client(context_, limited);
    const Result<Answer> answer = get(client);
    ASSERT_FALSE(answer) << head;
    EXPECT_EQ(answer.error().code, ErrorCode::invalid);
    EXPECT_NE(answer.error().message.find("upstreams[].max_response_bytes of 1000"),
              std::string::npos);
  }
}

TEST_F(ClientTest, Deadlines) {
  ScriptedServer silent({[](ScriptedPeer& peer) { peer.client_left(); }});
  UpstreamOptions o = options(silent.url());
  o.first_byte_timeout = milliseconds(100);
  UpstreamClient client(context_, o);
  EXPECT_EQ(get(client).error().code, ErrorCode::timeout);
  EXPECT_EQ(silent.connections(), 1) << "a timeout is not tried again";
  ScriptedServer stalls({[](ScriptedPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab");
    peer.client_left();
  }});
  o = options(stalls.url());
  o.between_bytes_timeout = milliseconds(100);
  UpstreamClient stalled(context_, o);
  EXPECT_EQ(get(stalled).error().code, ErrorCode::timeout);
}

TEST_F(ClientTest, UnreachableUpstreams) {
  std::string url;
  {
    ScriptedServer gone({[](ScriptedPeer&) {}});
    url = gone.url();
  }
  UpstreamClient refused(context_, options(url));
  EXPECT_EQ(get(refused).error().code, ErrorCode::unreachable);
  // RFC 6761: this name never resolves.
  UpstreamClient unknown(context_, options("http://fixpoint.invalid"));
  const Result<Answer> answer = get(unknown);
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().code == ErrorCode::unreachable ||
              answer.error().code == ErrorCode::timeout);
  EXPECT_THROW(UpstreamClient(context_, options("nonsense")), std::runtime_error);
}

}  // namespace
}  // namespace fixpoint
