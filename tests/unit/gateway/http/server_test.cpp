#include "gateway/http/server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/unit/gateway/http/server_fixture.hpp"

namespace fixpoint {
namespace {

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
  EXPECT_EQ(test::raw_exchange(port(), "GET /a HTTP/1.0\r\n\r\n").headers.at("connection"),
            "close");
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
  EXPECT_EQ(reply.headers.at("allow"), "GET, HEAD, POST, PATCH, OPTIONS");
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

TEST_F(ServerTest, TheHeadAndTheEndOfAStreamMayCarryAPiece) {
  start();
  RawClient client(port());
  ASSERT_TRUE(client.send(get("/joined")));
  const RawReply reply = client.read_reply();
  EXPECT_EQ(reply.body, "first second last");
  EXPECT_EQ(reply.chunks, 3u);
  EXPECT_TRUE(reply.complete);
  ASSERT_TRUE(client.send("HEAD /joined HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(client.read_reply(true).headers.at("transfer-encoding"), "chunked");
  ASSERT_TRUE(client.send(get("/still-in-step")));
  EXPECT_EQ(client.read_reply().body, "GET /still-in-step ");
  const RawReply old = test::raw_exchange(port(), "GET /joined HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.body, "first second last");
  EXPECT_TRUE(old.complete);
}

TEST_F(ServerTest, ARequestThatSomebodyKeepsStaysAsItIs) {
  start();
  RawClient client(port());
  ASSERT_TRUE(client.send("POST /keep HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"));
  EXPECT_EQ(client.read_reply().body, "POST /keep body");
  ASSERT_TRUE(client.send(get("/next", "x-other: 1\r\n")));
  EXPECT_EQ(client.read_reply().body, "GET /next ");
  const RequestPtr kept = seen_.kept;
  EXPECT_EQ(kept->path, "/keep");
  EXPECT_EQ(kept->body, "body");
  EXPECT_EQ(kept->headers.find("x-other"), nullptr);
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

}  // namespace
}  // namespace fixpoint
