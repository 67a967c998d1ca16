#include "gateway/telemetry/span_exporter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "gateway/log.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/scripted_server.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;
using test::ScriptedPeer;
using test::ScriptedServer;
using testing::HasSubstr;

constexpr std::string_view kAccepted =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

Span span_named(const std::string& name) {
  Span span;
  span.trace = new_trace_id();
  span.span = new_span_id();
  span.name = name;
  span.start = std::chrono::system_clock::now();
  span.end = span.start + std::chrono::milliseconds(1);
  return span;
}

json attributes_of(const json& object) {
  json all = json::object();
  for (const json& attribute : object["attributes"]) all[attribute["key"]] = attribute["value"];
  return all;
}

TEST(OtlpJson, IsAnExportRequest) {
  Span span = span_named("chat \"gpt\"");
  span.parent = new_span_id();
  span.state = "a=1";
  span.start =
      std::chrono::system_clock::time_point(std::chrono::microseconds(1'700'000'000'000'001));
  span.end = span.start + std::chrono::microseconds(5);
  span.failed = true;
  span.status = 429;
  span.method = "POST";
  span.path = "/v1/chat/completions";
  span.operation = "chat";
  span.provider = "openai";
  span.request_model = "gpt-4o";
  span.response_model = "gpt-4o-2024-08-06";
  span.finish_reasons = {"stop", "length"};
  span.has_usage = true;
  span.input_tokens = 12;
  span.output_tokens = UINT64_MAX;
  span.cache_result = "miss";
  span.request_id = "req-1";
  span.upstream_request_id = "up-1";
  span.attempt = 1;
  const json body = json::parse(otlp_json({span, span_named("second")}, "my gateway"));
  const json& resource = body["resourceSpans"][0];
  EXPECT_EQ(attributes_of(resource["resource"])["service.name"]["stringValue"], "my gateway");
  const json& scope = resource["scopeSpans"][0];
  EXPECT_EQ(scope["scope"]["name"], "fixpoint");
  ASSERT_EQ(scope["spans"].size(), 2u);
  const json& first = scope["spans"][0];
  EXPECT_EQ(first["traceId"], std::string(span.trace.text()));
  EXPECT_EQ(first["spanId"], std::string(span.span.text()));
  EXPECT_EQ(first["parentSpanId"], std::string(span.parent.text()));
  EXPECT_EQ(first["traceState"], "a=1");
  EXPECT_EQ(first["name"], "chat \"gpt\"");
  EXPECT_EQ(first["kind"], 2);
  EXPECT_EQ(first["startTimeUnixNano"], "1700000000000001000");
  EXPECT_EQ(first["endTimeUnixNano"], "1700000000000006000");
  EXPECT_EQ(first["status"]["code"], 2);
  EXPECT_EQ(attributes_of(first), json::parse(R"({
      "http.request.method": {"stringValue": "POST"},
      "url.path": {"stringValue": "/v1/chat/completions"},
      "http.response.status_code": {"intValue": "429"},
      "error.type": {"stringValue": "429"},
      "gen_ai.operation.name": {"stringValue": "chat"},
      "gen_ai.provider.name": {"stringValue": "openai"},
      "gen_ai.request.model": {"stringValue": "gpt-4o"},
      "gen_ai.response.model": {"stringValue": "gpt-4o-2024-08-06"},
      "gen_ai.response.finish_reasons":
          {"arrayValue": {"values": [{"stringValue": "stop"}, {"stringValue": "length"}]}},
      "gen_ai.usage.input_tokens": {"intValue": "12"},
      "gen_ai.usage.output_tokens": {"intValue": "9223372036854775807"},
      "fixpoint.cache.result": {"stringValue": "miss"},
      "fixpoint.request.id": {"stringValue": "req-1"},
      "fixpoint.upstream.request.id": {"stringValue": "up-1"},
      "fixpoint.attempt": {"intValue": "1"}})"));
  const json& second = scope["spans"][1];
  EXPECT_FALSE(second.contains("parentSpanId"));
  EXPECT_FALSE(second.contains("status"));
  EXPECT_EQ(second["attributes"], json::array());
}

class SpanExporterTest : public testing::Test {
 protected:
  SpanExporterTest() { init_log(LogLevel::off); }
  ~SpanExporterTest() override { init_log(LogLevel::info); }

  static TelemetryConfig config_for(const std::string& url) {
    TelemetryConfig config;
    config.otlp_endpoint = url;
    config.headers = {{"x-key", "h3ader"}};
    config.interval = std::chrono::hours(1);  // full batches and the end send
    return config;
  }

  // Answers every request with `response` and keeps what came.
  ScriptedServer::Script collect(std::string response) {
    return [this, response](ScriptedPeer& peer) {
      for (std::string request = peer.read_request(); !request.empty();
           request = peer.read_request()) {
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
        }
        peer.send(response);
      }
    };
  }

  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const std::string& request : requests()) {
      const json body = json::parse(request.substr(request.find("\r\n\r\n") + 4));
      for (const json& span : body["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        all.push_back(span["name"]);
      }
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> requests_;
};

TEST_F(SpanExporterTest, SendsWhatWaitsAtTheEnd) {
  ScriptedServer collector({collect(std::string(kAccepted))});
  {
    SpanExporter exporter(config_for(collector.url() + "/prefix"));
    exporter.add(span_named("one"));
    exporter.add(span_named("two"));
  }
  ASSERT_EQ(requests().size(), 1u);
  EXPECT_THAT(requests()[0], testing::StartsWith("POST /prefix/v1/traces HTTP/1.1\r\n"));
  EXPECT_THAT(requests()[0], HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(requests()[0], HasSubstr("x-key: h3ader\r\n"));
  EXPECT_THAT(names(), testing::ElementsAre("one", "two"));
}

TEST_F(SpanExporterTest, SendsFullBatchesAtOnce) {
  ScriptedServer collector({collect(std::string(kAccepted))});
  std::promise<void> sent;
  SpanExporter exporter(config_for(collector.url()));
  for (std::size_t i = 0; i < SpanExporter::kBatch; ++i) exporter.add(span_named("s"));
  EXPECT_TRUE(test::eventually([&] { return exporter.exported() == SpanExporter::kBatch; }));
}

TEST_F(SpanExporterTest, SendsAfterTheInterval) {
  ScriptedServer collector({collect(std::string(kAccepted))});
  TelemetryConfig config = config_for(collector.url());
  config.interval = std::chrono::milliseconds(100);
  SpanExporter exporter(config);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    exporter.add(span_named("s"));
    ASSERT_TRUE(test::eventually([&] { return exporter.exported() >= i; }));
  }
  EXPECT_EQ(collector.connections(), 1) << "the connection is kept";
}

TEST_F(SpanExporterTest, CountsWhatTheCollectorRefuses) {
  const std::string partial = R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"no"}})";
  ScriptedServer collector({collect("HTTP/1.1 200 OK\r\nContent-Length: " +
                                    std::to_string(partial.size()) + "\r\n\r\n" + partial)});
  ScriptedServer refusing({collect("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")});
  constexpr auto kAll = SpanExporter::kBatch;
  for (const auto& [server, rejected] :
       {std::pair(&collector, std::size_t{2}), std::pair(&refusing, kAll)}) {
    SpanExporter exporter(config_for(server->url()));
    for (std::size_t i = 0; i < kAll; ++i) exporter.add(span_named("s"));
    EXPECT_TRUE(test::eventually([&] { return exporter.failed() + exporter.exported() == kAll; }));
    EXPECT_EQ(exporter.failed(), rejected);
  }
}

TEST_F(SpanExporterTest, ACollectorThatIsAwayCostsACounter) {
  std::string url;
  {
    const ScriptedServer gone({[](ScriptedPeer&) {}});
    url = gone.url();
  }
  TelemetryConfig config = config_for(url);
  config.interval = std::chrono::milliseconds(100);
  SpanExporter exporter(config);
  exporter.add(span_named("s"));
  EXPECT_TRUE(test::eventually([&] { return exporter.failed() == 1; }));
  EXPECT_EQ(exporter.exported(), 0u);
}

// A collector that takes requests and never answers: the queue fills, then spans are dropped, and
// the end does not wait for it longer than it says.
TEST_F(SpanExporterTest, ASilentCollectorHoldsNobodyUp) {
  ScriptedServer collector({[](ScriptedPeer& peer) {
    peer.read_request();
    peer.client_left();
  }});
  const auto begin = std::chrono::steady_clock::now();
  {
    SpanExporter exporter(config_for(collector.url()));
    for (std::size_t i = 0; i < SpanExporter::kMaxQueue + 2 * SpanExporter::kBatch; ++i) {
      exporter.add(span_named("s"));
    }
    EXPECT_GT(exporter.dropped(), 0u);
    EXPECT_LE(exporter.dropped(), 2 * SpanExporter::kBatch);
  }
  // Generous: kShutdownTimeout is what the exporter allows itself on a machine that is not busy.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3 * SpanExporter::kShutdownTimeout);
}

TEST_F(SpanExporterTest, WithNothingToSendTheEndWaitsForNothing) {
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {  // a busy machine may be late, but not each time
    auto exporter = std::make_unique<SpanExporter>(config_for("http://127.0.0.1:9"));
    const auto begin = std::chrono::steady_clock::now();
    exporter.reset();
    quickest = std::min(quickest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(quickest, SpanExporter::kShutdownTimeout);
}

TEST_F(SpanExporterTest, ThreadsLoseNothing) {
  ScriptedServer collector({collect(std::string(kAccepted))});
  std::uint64_t dropped = 0;
  {
    SpanExporter exporter(config_for(collector.url()));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) exporter.add(span_named("s"));
      });
    }
    for (std::thread& thread : threads) thread.join();
    dropped = exporter.dropped();
  }
  EXPECT_EQ(names().size() + dropped, 2000u);
}

}  // namespace
}  // namespace fixpoint
