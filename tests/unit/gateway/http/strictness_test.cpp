// Requests that two HTTP parsers could read in two ways, and the limits of what is read at all.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_fixture.hpp"
#include "tests/support/raw_http.hpp"

namespace fixpoint {
namespace {

using test::RawClient;
using test::RawReply;
using test::TestServer;

const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\n";

// Answers with what it understood: method, path, query, fields and body.
Task<void> describe(const RequestPtr& given, ResponseWriter& writer) {
  const Request& request = *given;
  nlohmann::json seen = {{"method", request.method}, {"path", request.path},
                         {"query", request.query},   {"body", request.body},
                         {"peer", request.peer},     {"headers", nlohmann::json::object()}};
  for (const Header& header : request.headers) seen["headers"][header.name] = header.value;
  Response response;
  response.body = std::make_shared<const std::string>(seen.dump());
  const Result<void> sent = co_await writer.send(response);
  (void)sent;
}

struct Case {
  const char* name;
  std::string bytes;
  int status;
};

class Strictness : public testing::Test {
 protected:
  static ServerOptions options() {
    ServerOptions o;
    o.max_body_bytes = 1 << 20;
    return o;
  }
  TestServer server_{describe, options()};

  void expect_refused(const Case& c) {
    SCOPED_TRACE(c.name);
    RawClient client(server_.port());
    // What follows must never be taken for a second request.
    client.send(c.bytes + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    const RawReply reply = client.read_reply();
    EXPECT_EQ(reply.status, c.status) << reply.head << reply.body;
    EXPECT_EQ(reply.headers.count("connection"), 1u);
    const auto error = nlohmann::json::parse(reply.body, nullptr, false);
    ASSERT_TRUE(error.is_object() && error.contains("error")) << reply.body;
    EXPECT_TRUE(error["error"]["message"].is_string());
    EXPECT_EQ(error["error"]["type"], c.status < 500 ? "invalid_request_error" : "server_error");
    EXPECT_TRUE(error["error"]["param"].is_null());
    EXPECT_TRUE(error["error"]["code"].is_string());
    client.finish_sending();
    EXPECT_EQ(client.read_all(), "") << "something was answered after the error";
  }
  nlohmann::json expect_served(const std::string& bytes) {
    const RawReply reply = test::raw_exchange(server_.port(), bytes);
    EXPECT_EQ(reply.status, 200) << reply.head << reply.body;
    return nlohmann::json::parse(reply.body, nullptr, false);
  }
};

TEST_F(Strictness, Framing) {
  const std::string chunks = "3\r\nabc\r\n0\r\n\r\n";
  const Case cases[] = {
      {"TE gzip", kPost + "Transfer-Encoding: gzip\r\n\r\n", 400},
      {"TE xchunked", kPost + "Transfer-Encoding: xchunked\r\n\r\n" + chunks, 400},
      {"TE chunked, identity", kPost + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunks,
       400},
      {"TE gzip, chunked", kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks, 400},
      {"TE identity", kPost + "Transfer-Encoding: identity\r\n\r\n", 400},
      {"TE identity and chunked",
       kPost + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 400},
      {"TE twice",
       kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 400},
      {"TE empty", kPost + "Transfer-Encoding:\r\n\r\n", 400},
      {"TE then CL", kPost + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + chunks,
       400},
      {"CL then TE", kPost + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
       400},
      {"TE xchunked then CL", kPost + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc",
       400},
      {"CL then TE gzip", kPost + "Content-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\nabc", 400},
      {"TE in HTTP/1.0",
       "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, 400},
      {"CL list", kPost + "Content-Length: 3, 3\r\n\r\nabc", 400},
      {"CL twice equal", kPost + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"CL twice", kPost + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
      {"CL signed", kPost + "Content-Length: +3\r\n\r\nabc", 400},
      {"CL negative", kPost + "Content-Length: -3\r\n\r\nabc", 400},
      {"CL hexadecimal", kPost + "Content-Length: 0x3\r\n\r\nabc", 400},
      {"CL empty", kPost + "Content-Length:\r\n\r\nabc", 400},
      {"CL overflow", kPost + "Content-Length: 99999999999999999999\r\n\r\nabc", 400},
      {"chunk size overflow",
       kPost + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n", 400},
      {"chunk size signed", kPost + "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
       400},
      {"chunk size 0x3", kPost + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400},
      {"chunk longer than its size",
       kPost + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400},
      {"chunk line in LF", kPost + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400},
      {"chunk extension of 20 KB",
       kPost + "Transfer-Encoding: chunked\r\n\r\n3;a=" + std::string(20000, 'b') +
           "\r\nabc\r\n0\r\n\r\n",
       400},
      {"trailer of 20 KB",
       kPost + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(20000, 'b') + "\r\n\r\n",
       400},
  };
  for (const Case& c : cases) expect_refused(c);
}

TEST_F(Strictness, HeadersAndTargets) {
  const Case cases[] = {
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"Host with user info", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
      {"obs-fold", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", 400},
      {"obs-fold with a tab", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz\r\n\r\n", 400},
      {"white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"space before the colon", "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400},
      {"empty name", "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", 400},
      {"no colon", "GET / HTTP/1.1\r\nHost: a\r\nXy\r\n\r\n", 400},
      {"bare LF", "GET / HTTP/1.1\nHost: a\n\n", 400},
      {"bare LF in one field", "GET / HTTP/1.1\r\nHost: a\r\nX: y\nZ: z\r\n\r\n", 400},
      {"bare CR", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
      {"NUL", "GET / HTTP/1.1\r\nHost: a\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n", 400},
      {"8-bit target", "GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"target without a slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"star for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"malformed Connection", "GET / HTTP/1.1\r\nHost: a\r\nConnection: ,;@\r\n\r\n", 400},
      {"no request at all", "\x16\x03\x01\x02\r\n\r\n", 400},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
      {"HTTP/0.9", "GET /\r\n\r\n", 400},
      {"CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"method in lower case", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"unknown Expect", kPost + "Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc", 417},
      {"long target", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"long header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(17000, 'a') + "\r\n\r\n",
       431},
  };
  for (const Case& c : cases) expect_refused(c);
  std::string fields = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 200; ++i) fields += "X: y\r\n";
  expect_refused({"200 fields", fields + "\r\n", 431});
  const std::string field = "X: " + std::string(250, 'y') + "\r\n";
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 90; ++i) many += field;
  expect_refused({"header of 23 KB in short fields", many + "\r\n", 431});
}

TEST_F(Strictness, WhatIsRight) {
  EXPECT_EQ(expect_served(kPost + "Content-Length: 3\r\n\r\nabc")["body"], "abc");
  EXPECT_EQ(expect_served(kPost + "Transfer-Encoding: ChunKed\r\n\r\n3;x=y\r\nabc\r\n"
                                  "0A\r\n0123456789\r\n0\r\n\r\n")["body"],
            "abc0123456789");
  EXPECT_EQ(expect_served("\r\nGET /a%20b?c=d?e HTTP/1.1\r\nHost: [::1]:80\r\n\r\n")["path"],
            "/a%20b");
  EXPECT_EQ(expect_served("GET /a?c=d?e HTTP/1.1\r\nhOST: a\r\n\r\n")["query"], "c=d?e");
  EXPECT_EQ(expect_served("GET http://b.example/p?q HTTP/1.1\r\nHost: a\r\n\r\n")["path"], "/p");
  EXPECT_EQ(expect_served("GET http://b.example HTTP/1.1\r\nHost: a\r\n\r\n")["path"], "/");
  EXPECT_EQ(expect_served("GET / HTTP/1.1\r\nHost: a\r\nX:  y z \t\r\n\r\n")["headers"]["X"],
            "y z");
  EXPECT_EQ(expect_served("GET / HTTP/1.0\r\n\r\n")["path"], "/");
}

TEST_F(Strictness, TrailersAreDropped) {
  const auto seen = expect_served(kPost +
                                  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
                                  "Authorization: Bearer evil\r\nHost: evil\r\n\r\n");
  EXPECT_FALSE(seen["headers"].contains("Authorization"));
  EXPECT_EQ(seen["headers"]["Host"], "a");
  EXPECT_EQ(seen["body"], "abc");
}

TEST_F(Strictness, SplitAnywhereReadsTheSame) {
  const std::string whole = kPost +
                            "Transfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
                            "0\r\nT: t\r\n\r\n";
  RawClient client(server_.port());
  for (std::size_t cut = 1; cut < whole.size(); ++cut) {
    ASSERT_TRUE(client.send(whole.substr(0, cut)));
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    ASSERT_TRUE(client.send(whole.substr(cut)));
    const RawReply reply = client.read_reply();
    ASSERT_EQ(reply.status, 200) << "cut at " << cut << reply.body;
    ASSERT_EQ(nlohmann::json::parse(reply.body)["body"], "abcde");
  }
  for (const char c : whole) ASSERT_TRUE(client.send(std::string(1, c)));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(Strictness, BodyLimit) {
  const std::string limit = std::to_string(1 << 20);
  EXPECT_EQ(expect_served(kPost + "Content-Length: " + limit + "\r\n\r\n" +
                          std::string(1 << 20, 'x'))["body"]
                .get<std::string>()
                .size(),
            std::size_t{1} << 20);
  expect_refused({"length beyond the limit", kPost + "Content-Length: 1048577\r\n\r\n", 413});
  std::string chunks = kPost + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 17; ++i) chunks += "10000\r\n" + std::string(65536, 'x') + "\r\n";
  expect_refused({"chunks beyond the limit", chunks + "0\r\n\r\n", 413});
}

TEST_F(Strictness, ABodyOf100MegabytesGets413WithoutBeingRead) {
  RawClient client(server_.port());
  ASSERT_TRUE(client.send(kPost + "Content-Length: 100000000\r\n\r\n"));
  std::atomic<std::size_t> sent{0};
  std::thread sender([&] {
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 96 && client.send(block); ++i) sent += block.size();
  });
  const RawReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 413);
  EXPECT_NE(reply.body.find("1048576"), std::string::npos) << reply.body;
  sender.join();
  // The bounded linger and what the kernel holds, but not all of it.
  EXPECT_LT(sent.load(), 64u << 20);
  EXPECT_EQ(test::raw_exchange(server_.port(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
}

TEST_F(Strictness, AnEarlyErrorIsNotLostInAReset) {
  RawClient client(server_.port());
  ASSERT_TRUE(client.send(kPost + "Content-Length: 100000000\r\n\r\n" + std::string(500000, 'x')));
  EXPECT_EQ(client.read_reply().status, 413);
  EXPECT_TRUE(client.send(std::string(500000, 'x'))) << "what is still on its way is taken";
  client.finish_sending();
  EXPECT_TRUE(client.ends_cleanly());
}

TEST_F(Strictness, ExpectContinue) {
  RawClient client(server_.port());
  ASSERT_TRUE(client.send(kPost + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  EXPECT_EQ(client.read_reply().status, 100);
  ASSERT_TRUE(client.send("abc"));
  EXPECT_EQ(client.read_reply().status, 200);
  // The body is already here, or the client is too old to know 1xx: no interim response.
  ASSERT_TRUE(client.send(kPost + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"));
  EXPECT_EQ(client.read_reply().status, 200);
  RawClient large(server_.port());
  ASSERT_TRUE(large.send(kPost + "Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n"));
  EXPECT_EQ(large.read_reply().status, 413) << "the body must not be asked for";
}

}  // namespace
}  // namespace fixpoint
