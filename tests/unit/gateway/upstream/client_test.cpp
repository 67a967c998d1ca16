#include "gateway/upstream/client.hpp"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/http_fixture.hpp"
#include "tests/support/mock_upstream.hpp"
#include "tests/support/scripted_server.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;
using test::MockUpstream;
using test::ScriptedPeer;
using test::ScriptedServer;

struct Answer {
  int status = 0;
  Headers headers;
  std::string body;
};

Task<Result<Answer>> fetch(UpstreamClient& client, UpstreamRequest request) {
  const Result<std::unique_ptr<UpstreamResponse>> sent = co_await client.send(request);
  if (!sent) co_return tl::make_unexpected(sent.error());
  UpstreamResponse& response = **sent;
  Answer answer;
  answer.status = response.status();
  answer.headers = response.headers();
  Result<std::string> body = co_await UpstreamClient::read_all(response);
  if (!body) co_return tl::make_unexpected(body.error());
  answer.body = std::move(*body);
  co_return answer;
}

UpstreamRequest chat(const std::string& model, bool stream = false) {
  UpstreamRequest request;
  request.path = "/chat/completions";
  request.headers.add("Content-Type", "application/json");
  request.body = std::make_shared<const std::string>(
      "{\"model\":\"" + model + "\",\"messages\":[]" + (stream ? ",\"stream\":true}" : "}"));
  return request;
}

class ClientTest : public testing::Test {
 protected:
  net::io_context context_{1};

  static UpstreamOptions options(const std::string& url) {
    UpstreamOptions o;
    o.base_url = url;
    return o;
  }
  Result<Answer> get(UpstreamClient& client, UpstreamRequest request = {}) {
    return test::run(context_, fetch(client, std::move(request)));
  }
  // What a client makes of exactly these bytes, followed by the end of the connection.
  Result<Answer> answer_to(const std::string& bytes, UpstreamRequest request = {},
                           bool reset = false) {
    ScriptedServer server({[&](ScriptedPeer& peer) {
      peer.read_request();
      peer.send(bytes);
      if (reset) peer.reset();
    }});
    UpstreamClient client(context_, options(server.url()));
    return get(client, std::move(request));
  }
  void expect_error(const std::string& bytes, ErrorCode code) {
    const Result<Answer> answer = answer_to(bytes);
    ASSERT_FALSE(answer) << bytes;
    EXPECT_EQ(answer.error().code, code) << bytes << "\n" << answer.error().message;
  }
};

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
  for (const char* name : {"Connection", "Transfer-Encoding", "TE", "Upgrade", "Content-Length",
                           "Host", "Expect", "Accept-Encoding", "Keep-Alive", "Proxy-Authorization"}) {
    request.headers.add(name, "evil");
  }
  request.headers.add("Authorization", "Bearer key");
  ASSERT_TRUE(get(client, std::move(request)));
  EXPECT_EQ(seen, "POST /base/x?y=z HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                      "\r\nAuthorization: Bearer key\r\nAccept-Encoding: identity\r\n"
                      "Content-Length: 5\r\n\r\nhello");
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
  EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n"
                      "0\r\nT: t\r\n\r\n")->body, "abc");
  EXPECT_EQ(answer_to("HTTP/1.1 200 OK\r\n\r\nabc")->body, "abc");
  EXPECT_EQ(answer_to("HTTP/1.0 200 OK\r\n\r\nabc")->body, "abc");
  EXPECT_EQ(answer_to("HTTP/1.1 204 No Content\r\n\r\n")->body, "");
  EXPECT_EQ(answer_to("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")->body, "abc");
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
           "hello\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 99 No\r\n\r\n",
           "HTTP/1.1 600 No\r\n\r\n", ok + "Transfer-Encoding: gzip\r\n\r\nabc",
           ok + "Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
           ok + "Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\nabc",
           ok + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
           ok + "Content-Length: 3, 3\r\n\r\nabc", ok + "Content-Length: -3\r\n\r\nabc",
           ok + "X: a\r\n b\r\n\r\n", ok + "X : a\r\n\r\n", ok + "X: a\nY: b\r\n\r\n",
           "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
           "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           ok + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
           "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
           ok + "X: " + std::string(70000, 'x') + "\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\n3;" + std::string(20000, 'x') + "\r\nabc\r\n0\r\n\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"}) {
    expect_error(bytes, ErrorCode::protocol);
  }
  std::string interim;
  for (int i = 0; i < 100; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  expect_error(interim, ErrorCode::protocol);
}

TEST_F(ClientTest, TheLimitOfAResponse) {
  const std::string heads[] = {"Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'),
                               "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x') +
                                   "\r\n0\r\n\r\n",
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
    EXPECT_EQ(answer.error().code, ErrorCode::overloaded);
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

TEST_F(ClientTest, TheConnectionUsedLastIsUsedFirst) {
  MockUpstream mock;
  UpstreamClient client(context_, options(mock.base_url()));
  int left = 3;
  for (int i = 0; i < 3; ++i) {
    net::co_spawn(context_.get_executor(), fetch(client, chat("mock-delay-50")),
                  [&](std::exception_ptr, Result<Answer> answer) {
                    EXPECT_TRUE(answer);
                    if (--left == 0) context_.stop();
                  });
  }
  context_.run();
  EXPECT_EQ(mock.connections(), 3u);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(get(client, chat("mock")));
  EXPECT_EQ(mock.connections(), 3u);
}

TEST_F(ClientTest, AConnectionClosedWhileIdleIsNotUsed) {
  MockUpstream mock;
  UpstreamClient client(context_, options(mock.base_url()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(get(client, chat("mock")));
    mock.close_idle();
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(mock.requests(), 3u) << "no request was sent twice";
}

TEST_F(ClientTest, AStaleConnectionIsReplacedOnce) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  // The second request on the first connection meets a close, the retry a fresh connection.
  ScriptedServer server({[&](ScriptedPeer& peer) {
                           peer.read_request();
                           peer.send(ok);
                           peer.read_request();
                         },
                         [&](ScriptedPeer& peer) {
                           peer.read_request();
                           peer.send(ok);
                           peer.client_left();
                         }});
  UpstreamClient client(context_, options(server.url()));
  ASSERT_TRUE(get(client));
  const Result<Answer> second = get(client);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(ClientTest, AFreshConnectionThatFailsIsNotTriedAgain) {
  ScriptedServer server({[](ScriptedPeer& peer) { peer.read_request(); }});
  UpstreamClient client(context_, options(server.url()));
  EXPECT_EQ(get(client).error().code, ErrorCode::closed);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(ClientTest, AfterAResponseByteNothingIsTriedAgain) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    peer.read_request();
    peer.send("H");
  }});
  UpstreamClient client(context_, options(server.url()));
  ASSERT_TRUE(get(client));
  EXPECT_EQ(get(client).error().code, ErrorCode::closed);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(ClientTest, ConnectionsThatCannotBeReusedAreClosed) {
  for (const std::string& reply : std::vector<std::string>{
           "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
           "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
           "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"}) {
    std::atomic<bool> left{false};
    ScriptedServer server({[&](ScriptedPeer& peer) {
      peer.read_request();
      peer.send(reply);
      left = peer.client_left();
    }});
    UpstreamClient client(context_, options(server.url()));
    ASSERT_TRUE(get(client)) << reply;
    EXPECT_TRUE(test::eventually([&] { return left.load(); })) << reply;
  }
}

TEST_F(ClientTest, AnEarlyAnswerToALargeBodyIsRead) {
  ScriptedServer server({[](ScriptedPeer& peer) {
    peer.send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
  }});
  UpstreamClient client(context_, options(server.url()));
  UpstreamRequest request;
  request.body = std::make_shared<const std::string>(std::size_t{30} << 20, 'x');
  const Result<Answer> answer = get(client, std::move(request));
  // A reset may overtake the answer; a success it is never.
  if (answer) {
    EXPECT_EQ(answer->status, 413);
  } else {
    EXPECT_EQ(answer.error().code, ErrorCode::closed);
  }
}

TEST_F(ClientTest, MaxConnectionsIsAnError) {
  MockUpstream mock;
  UpstreamOptions o = options(mock.base_url());
  o.max_connections = 2;
  UpstreamClient client(context_, o);
  int good = 0;
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    net::co_spawn(context_.get_executor(), fetch(client, chat("mock-delay-100")),
                  [&](std::exception_ptr, Result<Answer> answer) {
                    if (answer) ++good;
                    if (!answer && answer.error().code == ErrorCode::overloaded) ++refused;
                    if (good + refused == 5) context_.stop();
                  });
  }
  context_.run();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(refused, 3);
  EXPECT_TRUE(get(client, chat("mock"))) << "room again";
}

TEST_F(ClientTest, IdleConnectionsEnd) {
  MockUpstream mock;
  UpstreamOptions o = options(mock.base_url());
  o.idle_ttl = milliseconds(150);
  UpstreamClient client(context_, o);
  ASSERT_TRUE(get(client, chat("mock")));
  // Once the idle connection is closed nothing is left to do and run() returns.
  context_.restart();
  context_.run_for(std::chrono::seconds(5));
  EXPECT_TRUE(context_.stopped());
  ASSERT_TRUE(get(client, chat("mock")));
  EXPECT_EQ(mock.connections(), 2u);
}

TEST_F(ClientTest, CancellationClosesTheConnection) {
  MockUpstream mock;
  UpstreamClient client(context_, options(mock.base_url()));
  for (const char* model : {"mock-delay-10000", "mock-stream-100-100"}) {
    const std::uint64_t before = mock.aborted();
    net::cancellation_signal cancel;
    bool ended = false;
    auto done = [&](std::exception_ptr, Result<Answer> answer) {
      EXPECT_FALSE(answer);
      ended = true;
    };
    // NB an exception leaves the value empty; Result needs a value to be made.
    net::co_spawn(context_.get_executor(), fetch(client, chat(model, true)),
                  net::bind_cancellation_slot(cancel.slot(), done));
    context_.restart();
    context_.run_for(milliseconds(250));
    EXPECT_FALSE(ended);
    cancel.emit(net::cancellation_type::terminal);
    context_.run_for(milliseconds(250));
    EXPECT_TRUE(ended);
    EXPECT_TRUE(test::eventually([&] { return mock.aborted() == before + 1; })) << model;
  }
}

TEST_F(ClientTest, AResponseOutlivesItsClient) {
  MockUpstream mock;
  auto client = std::make_unique<UpstreamClient>(context_, options(mock.base_url()));
  const UpstreamRequest request = chat("mock-stream-20-5", true);
  auto sent = test::run(context_, client->send(request));
  ASSERT_TRUE(sent);
  client.reset();
  const Result<std::string> body = test::run(context_, UpstreamClient::read_all(**sent));
  ASSERT_TRUE(body);
  EXPECT_TRUE(body->ends_with("data: [DONE]\n\n"));
}

}  // namespace
}  // namespace fixpoint
