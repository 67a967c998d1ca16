// Time, connections, descriptors and the end: what the server does when something runs out.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/unit/gateway/http/server_fixture.hpp"

namespace fixpoint {
namespace {

class ServerLimits : public ServerTest {};

TEST_F(ServerLimits, AClientThatTakesNothingIsCut) {
  ServerOptions options;
  options.write_timeout = milliseconds(200);
  start(options);
  RawClient client(port(), 4096);
  ASSERT_TRUE(client.send(get("/large-50000000")));
  EXPECT_TRUE(eventually([&] { return seen_.ended == 1; }));
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
  RawClient reader(port());  // of what the sockets' buffers hold: however slow it is, it is not cut
  ASSERT_TRUE(reader.send(get("/large-1000000")));
  EXPECT_EQ(reader.read_reply().body.size(), 1000000u);
}

TEST_F(ServerLimits, SlowHeadersAndBodiesTimeOut) {
  ServerOptions options;
  options.header_timeout = milliseconds(300);
  options.body_timeout = milliseconds(300);
  options.idle_timeout = milliseconds(500);
  start(options);
  RawClient header(port());
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1000, 'x');
  std::size_t sent = 0;
  // One byte at a time, each of them in time: the header as a whole is not.
  while (sent < text.size() && header.send(text.substr(sent, 1))) {
    ++sent;
    std::this_thread::sleep_for(milliseconds(2));
    if (sent > 300) break;
  }
  EXPECT_EQ(header.read_reply().status, 408);
  EXPECT_TRUE(header.closed_within(milliseconds(5000)));
  RawClient body(port());
  ASSERT_TRUE(body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"));
  EXPECT_EQ(body.read_reply().status, 408);
  RawClient idle(port());
  EXPECT_EQ(idle.read_all(), "") << "an idle connection is closed without a word";
  EXPECT_EQ(seen_.started, 0);
}

// The deadline fires when a part has been read and the read of the next one has ended already:
// there is nothing to cancel.
TEST_F(ServerLimits, ADeadlineHoldsThoughBytesAreThere) {
  ServerOptions options;
  options.header_timeout = milliseconds(300);
  start(options);
  RawClient client(port());
  ASSERT_TRUE(client.send(get("/1") + "GET /2 HTTP/1.1\r\nX: "));
  EXPECT_EQ(client.read_reply().status, 200);
  {
    const test::Blocked blocked(server_->cores().context(0));
    ASSERT_TRUE(client.send(std::string(12000, 'x')));
    std::this_thread::sleep_for(milliseconds(700));
  }
  EXPECT_EQ(client.read_reply().status, 408);
  EXPECT_TRUE(client.closed_within(milliseconds(5000)));
}

TEST_F(ServerLimits, ConnectionsBeyondTheLimitWait) {
  ServerOptions options;
  options.max_connections = 2;
  start(options);
  auto first = std::make_unique<RawClient>(port());
  RawClient second(port());
  RawClient third(port());
  ASSERT_TRUE(first->send(get("/1")));
  EXPECT_EQ(first->read_reply().status, 200);
  ASSERT_TRUE(second.send(get("/2")));
  EXPECT_EQ(second.read_reply().status, 200);
  ASSERT_TRUE(third.send(get("/3")));
  EXPECT_EQ(third.read_reply(false, milliseconds(200)).status, 0);
  EXPECT_EQ(server_->server().connections(), 2u);
  first.reset();
  EXPECT_EQ(third.read_reply().status, 200);
}

TEST_F(ServerLimits, NoMoreFileDescriptorsIsSurvived) {
#ifdef FIXPOINT_UBSAN
  GTEST_SKIP() << "UBSan looks whether an object's memory can be read through a pipe, and without "
                  "descriptors takes every object for a wrong one";
#endif
  start();
  RawClient early(port());
  RawClient late(port());  // its descriptor exists before the limit falls
  ASSERT_TRUE(early.send(get("/1")));
  ASSERT_EQ(early.read_reply().status, 200);
  ASSERT_TRUE(eventually([&] { return server_->server().connections() == 2; }));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  RawClient* waiting = nullptr;
  // Take every descriptor but the one that the client's own socket needs.
  std::vector<int> taken;
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) taken.push_back(fd);
  ASSERT_FALSE(taken.empty());
  close(taken.back());
  taken.pop_back();
  const auto client = std::make_unique<RawClient>(port());
  waiting = client.get();
  ASSERT_TRUE(waiting->send(get("/waiting")));
  EXPECT_EQ(waiting->read_reply(false, milliseconds(300)).status, 0);
  ASSERT_TRUE(early.send(get("/2")));
  EXPECT_EQ(early.read_reply().status, 200) << "open connections are served on";
  for (const int fd : taken) close(fd);
  EXPECT_EQ(waiting->read_reply().status, 200) << "accept goes on once there is room";
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(ServerLimits, DrainLetsRequestsEndAndClosesTheRest) {
  start({}, 2);
  RawClient busy(port());
  RawClient idle(port());
  ASSERT_TRUE(idle.send(get("/1")));
  EXPECT_EQ(idle.read_reply().status, 200);
  ASSERT_TRUE(busy.send(get("/sleep-300")));
  ASSERT_TRUE(eventually([&] { return seen_.started == 2; }));
  std::thread drain([&] { server_->server().drain(std::chrono::seconds(10)); });
  EXPECT_TRUE(idle.closed_within(milliseconds(2000)));
  const RawReply reply = busy.read_reply();
  EXPECT_EQ(reply.body, "GET /sleep-300 ");
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(busy.closed_within(milliseconds(2000)));
  drain.join();
  EXPECT_EQ(server_->server().connections(), 0u);
  EXPECT_THROW(RawClient refused(port()), std::runtime_error);
}

TEST_F(ServerLimits, DrainCutsWhatIsLeftAtTheDeadline) {
  start();
  RawClient stuck(port());
  ASSERT_TRUE(stuck.send(get("/sleep-60000")));
  ASSERT_TRUE(eventually([&] { return seen_.started == 1; }));
  server_->server().drain(milliseconds(100));
  EXPECT_EQ(seen_.cancelled, 1);
  EXPECT_EQ(server_->server().connections(), 0u);
  EXPECT_TRUE(stuck.closed_within(milliseconds(2000)));
}

TEST_F(ServerLimits, HandlersHearBeforeTheyAreCut) {
  start();
  RawClient busy(port());
  ASSERT_TRUE(busy.send(get("/last-words")));
  ASSERT_TRUE(eventually([&] { return seen_.started == 1; }));
  std::thread drain([&] { server_->server().drain(milliseconds(100)); });
  EXPECT_EQ(busy.read_reply().body, "goodbye");
  drain.join();
  EXPECT_EQ(server_->server().connections(), 0u);
}

TEST_F(ServerLimits, RefusedRequestsAreTold) {
  std::mutex mutex;
  std::vector<std::string> told;
  ServerOptions options;
  options.max_body_bytes = 1024;
  options.header_timeout = milliseconds(200);
  options.refusal = [&](const Request& request, const RequestError& error) {
    const std::lock_guard lock(mutex);
    told.push_back(std::to_string(error.status) + " " + request.method + " " + request.path);
    EXPECT_TRUE(request.peer.starts_with("127.0.0.1:")) << request.peer;
    Response response;
    response.status = error.status;
    return response;
  };
  start(options);
  for (const std::string& text :
       {get("/1", "X: " + std::string(20'000, 'x') + "\r\n"), std::string("nonsense\r\n\r\n"),
        std::string("POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n"),
        std::string("GET /slow HTTP/1.1\r\n"), get("/good")}) {
    RawClient client(port());
    ASSERT_TRUE(client.send(text));
    EXPECT_NE(client.read_reply().status, 0);
  }
  const std::lock_guard lock(mutex);
  ASSERT_EQ(told.size(), 4u);
  EXPECT_TRUE(told[0].starts_with("431 ")) << told[0];
  EXPECT_TRUE(told[1].starts_with("400 ")) << told[1];
  EXPECT_EQ(told[2], "413 POST /v1/big");
  EXPECT_TRUE(told[3].starts_with("408 ")) << told[3];
}

TEST_F(ServerLimits, AHeadThatIsRefusedSparesItsBody) {
  std::atomic<int> looks{0};
  ServerOptions options;
  options.head_check = [&](const Request& request) -> std::optional<Response> {
    ++looks;
    if (request.path != "/forbidden") return {};
    Response response;
    response.status = 401;
    return response;
  };
  start(options);
  const auto post = [](const std::string& path, const std::string& more) {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + more + "\r\n";
  };
  // Nothing of the body, a part of it, and one that waits to be asked.
  for (const std::string& text : {post("/forbidden", ""), post("/forbidden", "") + "abc",
                                  post("/forbidden", "Expect: 100-continue\r\n")}) {
    RawClient client(port());
    ASSERT_TRUE(client.send(text));
    EXPECT_EQ(client.read_reply().status, 401);
  }
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(seen_.started, 0);
  // Those who may pass are looked at once, however their body comes.
  RawClient client(port());
  ASSERT_TRUE(client.send(post("/open", "Expect: 100-continue\r\n")));
  EXPECT_EQ(client.read_reply().status, 100);
  ASSERT_TRUE(client.send("abc"));
  std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(client.send("de"));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(looks, 4);
  // One that is all there is for its handler alone, and its connection goes on.
  ASSERT_TRUE(client.send(post("/forbidden", "") + "abcde"));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(looks, 4);
}

// With HTTP/1.0 the end of the connection is the end of the body: only a reset shows the cut.
TEST_F(ServerLimits, ABodyWithoutFramingIsCutByAReset) {
  ServerOptions options;
  options.write_timeout = milliseconds(200);
  start(options);
  RawClient slow(port(), 4096);
  ASSERT_TRUE(slow.send("GET /stream-10000000 HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(eventually([&] { return seen_.ended == 1; }, std::chrono::seconds(60)));
  EXPECT_FALSE(slow.ends_cleanly());
  RawClient late(port());
  ASSERT_TRUE(late.send("GET /endless HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(late.read_reply(true).status, 200);
  server_->server().drain(milliseconds(100));
  EXPECT_EQ(server_->server().connections(), 0u);
  EXPECT_FALSE(late.ends_cleanly());
}

TEST_F(ServerLimits, AnAddressInUseIsAnErrorAtStart) {
  start();
  Cores cores(1);
  ServerOptions options;
  options.port = port();
  EXPECT_THROW(Server(cores, options, nullptr), std::system_error);
  options.address = "not an address";
  EXPECT_THROW(Server(cores, options, nullptr), std::system_error);
}

TEST_F(ServerLimits, ManyClientsOnTwoCores) {
  start({}, 2);
  std::atomic<int> good{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 8; ++t) {
    clients.emplace_back([&, t] {
      for (int c = 0; c < 5; ++c) {
        RawClient client(port());
        for (int i = 0; i < 20; ++i) {
          const std::string path = "/" + std::to_string(t) + "." + std::to_string(i);
          client.send(get(path));
          if (client.read_reply().body == "GET " + path + " ") ++good;
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 800);
}

}  // namespace
}  // namespace fixpoint
