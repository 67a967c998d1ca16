// What the tests of the server share: a server whose handler does what the path says.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "gateway/http/server.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/raw_http.hpp"

namespace fixpoint {

using std::chrono::milliseconds;
using test::eventually;
using test::RawClient;
using test::RawReply;
using test::TestServer;

inline std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + more + "\r\n";
}

// What happened inside the handlers of one test.
struct Seen {
  std::atomic<int> started{0};
  std::atomic<int> ended{0};
  std::atomic<int> cancelled{0};
  std::atomic<RequestPtr> kept;  // the last request for "/keep"
};

struct CountEnd {
  explicit CountEnd(Seen& s) : seen(s) { ++seen.started; }
  ~CountEnd() { ++seen.ended; }
  CountEnd(const CountEnd&) = delete;
  CountEnd& operator=(const CountEnd&) = delete;
  Seen& seen;
};

inline Task<void> pause(milliseconds time, Seen& seen) {
  const Executor executor = co_await net::this_coro::executor;
  Timer timer(executor);
  timer.expires_after(time);
  error_code ec;
  co_await timer.async_wait(net::redirect_error(use_task, ec));
  if (ec == net::error::operation_aborted) ++seen.cancelled;
}

inline Task<void> reply_with(ResponseWriter& writer, const std::string& text) {
  Response response;
  response.body = std::make_shared<const std::string>(text);
  const Result<void> sent = co_await writer.send(response);
  (void)sent;
}

// "/sleep-<ms>", "/stream-<n>", "/large-<bytes>", "/fields", "/inject", "/silent", "/throw",
// "/half", "/abort", "/endless", "/joined", "/last-words"; any other path is echoed.
inline Task<void> serve(Seen& seen, const Request& request, ResponseWriter& writer) {
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
    Result<void> sent = co_await writer.begin(head, "");
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
    const Result<void> finished = co_await writer.finish("");
    (void)finished;
    co_return;
  }
  if (path == "/joined") {  // the first piece with the head, the last one with the end
    const Response head;
    Result<void> sent = co_await writer.begin(head, "first ");
    if (sent) sent = co_await writer.write("second ");
    if (sent) sent = co_await writer.finish("last");
    co_return;
  }
  if (path == "/last-words") {  // what it says when the server is about to cut it
    const Executor executor = co_await net::this_coro::executor;
    Timer timer(executor, Timer::time_point::max());
    writer.before_cut([&timer] { timer.cancel(); });
    error_code ec;
    co_await timer.async_wait(net::redirect_error(use_task, ec));
    co_await reply_with(writer, "goodbye");
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
        [seen](const RequestPtr& request, ResponseWriter& writer) {
          if (request->path == "/keep") seen->kept = request;
          return serve(*seen, *request, writer);
        },
        options, cores);
  }
  std::uint16_t port() const { return server_->port(); }
};

}  // namespace fixpoint
