// What the tests of the upstream client share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "gateway/upstream/client.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/mock_upstream.hpp"
#include "tests/support/scripted_server.hpp"

namespace fixpoint {

using std::chrono::milliseconds;
using test::MockUpstream;
using test::ScriptedPeer;
using test::ScriptedServer;

struct Answer {
  int status = 0;
  Headers headers;
  std::string body;
};

inline Task<Result<Answer>> fetch(UpstreamClient& client, UpstreamRequest request) {
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

inline UpstreamRequest chat(const std::string& model, bool stream = false) {
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

}  // namespace fixpoint
