#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/gateway.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/raw_http.hpp"

namespace fixpoint {
namespace {

// A body over the limit never reaches the handler; its sender's SDK reads the answer all the same.
TEST(Router, RefusesInTheShapeOfTheClientsApi) {
  Cores cores{1};
  Gateway gateway(Config(), cores);
  ServerOptions options;
  options.max_body_bytes = 1000;
  options.refusal = make_refusal(gateway);
  const test::TestServer server([](const RequestPtr&, ResponseWriter&) -> Task<void> { co_return; },
                                options);
  const auto refused = [&](const std::string& path, const std::string& head, std::size_t chunk) {
    const auto body = chunk == 0 ? std::string() : "7d0\r\n" + std::string(chunk, 'x');
    return test::raw_exchange(server.port(),
                              "POST " + path + " HTTP/1.1\r\nHost: a\r\n" + head + "\r\n" + body);
  };
  for (const bool chunked : {false, true}) {
    const std::string head =
        chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: 2000\r\n";
    const auto message = refused("/v1/messages?beta=true", head, chunked ? 2000 : 0);
    EXPECT_EQ(message.status, 413);
    const auto body = nlohmann::json::parse(message.body);
    EXPECT_EQ(body["error"]["type"], "request_too_large");
    EXPECT_EQ(body["request_id"], message.headers.at("request-id"));
    const auto chat = refused("/v1/chat/completions", head, chunked ? 2000 : 0);
    EXPECT_EQ(chat.status, 413);
    EXPECT_EQ(nlohmann::json::parse(chat.body)["error"]["code"], "request_too_large");
    EXPECT_EQ(chat.headers.count("x-request-id"), 1u);
  }
  const auto broken = test::raw_exchange(server.port(), "POST\r\n\r\n");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(nlohmann::json::parse(broken.body)["error"]["code"], "invalid_http");
}

}  // namespace
}  // namespace fixpoint
