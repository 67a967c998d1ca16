#include "gateway/http/server.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/support/http_fixture.hpp"
#include "tests/support/raw_http.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;
using test::eventually;
using test::RawClient;
using test::RawReply;
using test::TestServer;

std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

// What happened inside the handlers of one test.
struct Seen {
  std::atomic<int> started{0};
  std::atomic<int> ended{0};
  std::atomic<int> cancelled{0};
};

struct CountEnd {
  explicit CountEnd(Seen& s) : seen(s) { ++seen.started; }
  ~CountEnd() { ++seen.ended; }
  CountEnd(const CountEnd&) = delete;
  CountEnd& operator=(const CountEnd&) = delete;
  Seen& seen;
};

Task<void> pause(milliseconds time, Seen& seen) {
  const Executor executor = co_await net::this_coro::executor;
  Timer timer(executor);
  timer.expires_after(time);
  error_code ec;
  co_await timer.async_wait(net::redirect_error(use_task, ec));
  if (ec == net::error::operation_aborted) ++seen.cancelled;
}

Task<void> reply_with(ResponseWriter& writer, const std::string& text) {
  Response response;
  response.body = std::make_shared<const std::string>(text);
  const Result<void> sent = co_await writer.send(response);
  (void)sent;
}

// "/sleep-<ms>", "/stream-<n>", "/large-<bytes>", "/fields", "/inject", "/silent", "/throw", "/half", "/abort", "/endless";
// any other path is echoed.
Task<void> serve(Seen& seen, const Request& request, ResponseWriter& writer) {
  const CountEnd end(seen);
  const std::string& path = request.path;
  const int number = std::atoi(path.substr(path.find('-') + 1).c_str());
  if (path == "/silent") co_return;
  if (path == "/fields" || path == "/inject") {
    Response response;
    response.headers.add("X-Good", "1");
    for (const char* name : {"Content-Length", "Transfer-Encoding", "Connection", "Date"}) {
      response.headers.add(name, "evil");
    }
    if (path == "/inject") response.headers.add("X-Bad", "a\r\nSet-Cookie: b");
    const Result<void> sent = co_await writer.send(response);
    (void)sent;
    co_return;
  }
  if (path == "/throw") throw std::runtime_error("a bug");
  if (path.starts_with("/sleep-")) co_await pause(milliseconds(number), seen);
  if (path.starts_with("/large-")) {
    const std::string text(static_cast<std::size_t>(number), 'x');
    co_await reply_with(writer, text);
    co_return;
  }
  if (path.starts_with("/stream-") || path == "/half" || path == "/abort" || path == "/endless") {
    Response head;
    head.content_type = "text/event-stream";
    Result<void> sent = co_await writer.begin(head);
    const bool endless = path == "/endless";
    const int pieces = path.starts_with("/stream-") ? number : 1;
    for (int i = 0; sent && (i < pieces || endless); ++i) {
      const std::string piece = "data: " + std::to_string(i) + "\n\n";
      sent = co_await writer.write(piece);
      const Result<void> empty = co_await writer.write("");
      EXPECT_EQ(empty.has_value(), sent.has_value());
      if (endless) co_await pause(milliseconds(5), seen);
    }
    if (path == "/half") co_return;
    if (path == "/abort") {
      writer.abort();
      co_return;
    }
    const Result<void> finished = co_await writer.finish();
    (void)finished;
    co_return;
  }
  const std::string text = request.method + " " + path + " " + request.body;
  co_await reply_with(writer, text);
}

class ServerTest : public testing::Test {
 protected:
  Seen seen_;
  std::unique_ptr<TestServer> server_;

  void start(ServerOptions options = {}, std::size_t cores = 1) {
    Seen* seen = &seen_;
    server_ = std::make_unique<TestServer>(
        [seen](const Request& request, ResponseWriter& writer) {
          return serve(*seen, request, writer);
        },
        options, cores);
  }
  std::uint16_t port() const { return server_->port(); }
};

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  start();
  RawClient client(port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(get("/" + std::to_string(i))));
    const RawReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "GET /" + std::to_string(i) + " ");
    EXPECT_EQ(reply.headers.at("server"), "fixpoint");
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    EXPECT_TRUE(reply.headers.at("date").ends_with(" GMT"));
    EXPECT_EQ(reply.headers.count("connection"), 0u);
  }
  EXPECT_EQ(server_->server().connections(), 1u);
  ASSERT_TRUE(client.send(get("/", "Connection: close\r\n")));
  EXPECT_EQ(client.read_reply().headers.at("connection"), "close");
  EXPECT_TRUE(client.closed_within(milliseconds(2000)));
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
}

TEST_F(ServerTest, PipelinedRequestsAreServedInOrder) {
  start();
  RawClient client(port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += i % 3 == 0 ? get("/sleep-2") : get("/" + std::to_string(i));
    all += "POST /p" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
  }
  ASSERT_TRUE(client.send(all));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(client.read_reply().body,
              i % 3 == 0 ? "GET /sleep-2 " : "GET /" + std::to_string(i) + " ");
    EXPECT_EQ(client.read_reply().body, "POST /p" + std::to_string(i) + " hi");
  }
}

TEST_F(ServerTest, PipelinedBytesSurviveTheDisconnectWatch) {
  start();
  RawClient client(port());
  ASSERT_TRUE(client.send(get("/sleep-400")));
  std::this_thread::sleep_for(milliseconds(150));
  ASSERT_TRUE(client.send(get("/next")));
  EXPECT_EQ(client.read_reply().body, "GET /sleep-400 ");
  EXPECT_EQ(client.read_reply().body, "GET /next ");
}

TEST_F(ServerTest, Http10) {
  start();
  EXPECT_EQ(test::raw_exchange(port(), "GET /a HTTP/1.0\r\n\r\n").headers.at("connection"), "close");
  RawClient client(port());
  ASSERT_TRUE(client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_EQ(client.read_reply().headers.at("connection"), "keep-alive");
  ASSERT_TRUE(client.send("GET /stream-3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  const RawReply reply = client.read_reply();
  EXPECT_EQ(reply.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_EQ(reply.body, "data: 0\n\ndata: 1\n\ndata: 2\n\n");
  EXPECT_TRUE(reply.complete);
}

TEST_F(ServerTest, HeadAndOptions) {
  start();
  RawClient client(port());
  ASSERT_TRUE(client.send("HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(client.read_reply(true).headers.at("content-length"), "10");
  ASSERT_TRUE(client.send("HEAD /stream-2 HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(client.read_reply(true).headers.at("transfer-encoding"), "chunked");
  ASSERT_TRUE(client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"));
  const RawReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.headers.count("content-length"), 0u);
  EXPECT_EQ(reply.headers.at("allow"), "GET, HEAD, POST, OPTIONS");
  ASSERT_TRUE(client.send(get("/still-in-step")));
  EXPECT_EQ(client.read_reply().body, "GET /still-in-step ");
}

TEST_F(ServerTest, StreamsOneChunkPerWrite) {
  start();
  RawClient client(port());
  ASSERT_TRUE(client.send(get("/stream-20")));
  const RawReply reply = client.read_reply();
  EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(reply.chunks, 20u);
  EXPECT_TRUE(reply.complete);
  ASSERT_TRUE(client.send(get("/after")));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(ServerTest, FailingHandlers) {
  start();
  RawClient client(port());
  for (const char* path : {"/silent", "/throw"}) {
    ASSERT_TRUE(client.send(get(path)));
    const RawReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 500) << path;
    EXPECT_NE(reply.body.find("\"server_error\""), std::string::npos);
    EXPECT_EQ(reply.body.find("a bug"), std::string::npos) << "the inside is not told";
  }
  for (const char* path : {"/half", "/abort"}) {
    const RawReply reply = test::raw_exchange(port(), get(path));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "data: 0\n\n");
    EXPECT_FALSE(reply.complete) << path;
    RawClient old(port());
    ASSERT_TRUE(old.send("GET " + std::string(path) + " HTTP/1.0\r\n\r\n"));
    EXPECT_FALSE(old.read_reply().complete) << "a client of HTTP/1.0 must see a reset";
  }
}

TEST_F(ServerTest, FieldsOfTheHandler) {
  start();
  const RawReply good = test::raw_exchange(port(), get("/fields"));
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.headers.at("x-good"), "1");
  EXPECT_EQ(good.headers.at("content-length"), "0");
  EXPECT_EQ(good.head.find("evil"), std::string::npos);
  const RawReply bad = test::raw_exchange(port(), get("/inject"));
  EXPECT_EQ(bad.status, 500) << "a value with a line end never leaves";
  EXPECT_EQ(bad.headers.count("set-cookie"), 0u);
}

TEST_F(ServerTest, ADisconnectCancelsTheHandler) {
  start();
  for (const bool reset : {false, true}) {
    for (const bool pipelined : {false, true}) {
      const int before = seen_.cancelled;
      const auto begin = Clock::now();
      {
        RawClient client(port());
        ASSERT_TRUE(client.send(get("/sleep-10000") + (pipelined ? get("/next") : "")));
        ASSERT_TRUE(eventually([&] { return seen_.started == seen_.ended + 1; }));
        if (reset) client.reset();
      }
      EXPECT_TRUE(eventually([&] { return seen_.cancelled == before + 1; }));
      EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5)) << "far from the handler's ten";
    }
  }
}

TEST_F(ServerTest, ADisconnectEndsAStream) {
  start();
  {
    RawClient client(port());
    ASSERT_TRUE(client.send(get("/endless")));
    ASSERT_TRUE(eventually([&] { return seen_.started == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return seen_.ended == 1; }));
}

TEST_F(ServerTest, AClientThatTakesNothingIsCut) {
  ServerOptions options;
  options.write_timeout = milliseconds(200);
  start(options);
  RawClient client(port(), 4096);
  ASSERT_TRUE(client.send(get("/large-50000000")));
  EXPECT_TRUE(eventually([&] { return seen_.ended == 1; }));
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
  RawClient reader(port());
  ASSERT_TRUE(reader.send(get("/large-50000000")));
  EXPECT_EQ(reader.read_reply().body.size(), 50000000u);
}

TEST_F(ServerTest, SlowHeadersAndBodiesTimeOut) {
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

TEST_F(ServerTest, ConnectionsBeyondTheLimitWait) {
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

TEST_F(ServerTest, NoMoreFileDescriptorsIsSurvived) {
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

TEST_F(ServerTest, DrainLetsRequestsEndAndClosesTheRest) {
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

TEST_F(ServerTest, DrainCutsWhatIsLeftAtTheDeadline) {
  start();
  RawClient stuck(port());
  ASSERT_TRUE(stuck.send(get("/sleep-60000")));
  ASSERT_TRUE(eventually([&] { return seen_.started == 1; }));
  server_->server().drain(milliseconds(100));
  EXPECT_EQ(seen_.cancelled, 1);
  EXPECT_EQ(server_->server().connections(), 0u);
  EXPECT_TRUE(stuck.closed_within(milliseconds(2000)));
}

TEST_F(ServerTest, AnAddressInUseIsAnErrorAtStart) {
  start();
  Cores cores(1);
  ServerOptions options;
  options.port = port();
  EXPECT_THROW(Server(cores, options, nullptr), std::system_error);
  options.address = "not an address";
  EXPECT_THROW(Server(cores, options, nullptr), std::system_error);
}

TEST_F(ServerTest, ManyClientsOnTwoCores) {
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
