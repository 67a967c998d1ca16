// Reuse, retry, limits and cancellation of the client's connections.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/gateway/upstream/client_fixture.hpp"

namespace fixpoint {
namespace {

class PoolTest : public ClientTest {};

TEST_F(PoolTest, TheConnectionUsedLastIsUsedFirst) {
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

TEST_F(PoolTest, AConnectionClosedWhileIdleIsNotUsed) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  std::promise<void> idle, closed;
  ScriptedServer server({[&](ScriptedPeer& peer) {
                           peer.read_request();
                           peer.send(ok);
                           idle.get_future().wait();
                           // What some servers say before they close: nobody's answer.
                           peer.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
                           closed.set_value();
                         },
                         [&](ScriptedPeer& peer) {
                           peer.read_request();
                           peer.send(ok);
                           peer.client_left();
                         }});
  UpstreamClient client(context_, options(server.url()));
  ASSERT_TRUE(get(client));
  idle.set_value();
  closed.get_future().wait();
  const auto second = get(client);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status, 200);
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(PoolTest, AStaleConnectionIsReplacedOnce) {
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
  auto o = options(server.url());
  o.stale_close = std::chrono::hours(1);
  UpstreamClient client(context_, o);
  bool sent_again = false;
  UpstreamRequest request;
  request.sent_again = &sent_again;
  ASSERT_TRUE(get(client, request));
  EXPECT_FALSE(sent_again);
  const Result<Answer> second = get(client, request);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE(sent_again);
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(PoolTest, ACloseThatComesLateIsAnError) {
  // A server that may have begun to work on the request.
  ScriptedServer server({[](ScriptedPeer& peer) {
    peer.read_request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    peer.read_request();
  }});
  auto o = options(server.url());
  o.stale_close = milliseconds(0);
  UpstreamClient client(context_, o);
  ASSERT_TRUE(get(client));
  EXPECT_EQ(get(client).error().code, ErrorCode::closed);
  EXPECT_EQ(server.connections(), 1);
}

// R8: an idle connection that was reset, seen before its use or met by it.
TEST_F(PoolTest, AnIdleConnectionThatWasResetIsReplaced) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  for (const bool before_use : {true, false}) {
    std::atomic<bool> gone{false};
    ScriptedServer server({[&](ScriptedPeer& peer) {
                             peer.read_request();
                             peer.send(ok);
                             if (!before_use) peer.read_request();
                             peer.reset();
                             gone = true;
                           },
                           [&](ScriptedPeer& peer) {
                             peer.read_request();
                             peer.send(ok);
                             peer.client_left();
                           }});
    auto o = options(server.url());
    o.stale_close = std::chrono::hours(1);
    UpstreamClient client(context_, o);
    ASSERT_TRUE(get(client));
    if (before_use) {
      ASSERT_TRUE(test::eventually([&] { return gone.load(); }));
      std::this_thread::sleep_for(milliseconds(20));
    }
    const Result<Answer> second = get(client);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(server.connections(), 2);
  }
}

TEST_F(PoolTest, AFreshConnectionThatFailsIsNotTriedAgain) {
  ScriptedServer server({[](ScriptedPeer& peer) { peer.read_request(); }});
  UpstreamClient client(context_, options(server.url()));
  EXPECT_EQ(get(client).error().code, ErrorCode::closed);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(PoolTest, AfterAResponseByteNothingIsTriedAgain) {
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

TEST_F(PoolTest, ConnectionsThatCannotBeReusedAreClosed) {
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

TEST_F(PoolTest, AnEarlyAnswerToALargeBodyIsRead) {
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

TEST_F(PoolTest, MaxConnectionsIsAnError) {
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

TEST_F(PoolTest, IdleConnectionsEnd) {
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

TEST_F(PoolTest, CancellationClosesTheConnection) {
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

TEST_F(PoolTest, AResponseOutlivesItsClient) {
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
