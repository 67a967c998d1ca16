#include "gateway/telemetry/access_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "gateway/log.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kTime = "2026-11-29T21:00:00.123Z";

AccessRecord whole_record() {
  AccessRecord record;
  record.id = "req-1";
  record.upstream_request_id = "up-1";
  record.generation = "gen-1";
  record.peer = "127.0.0.1:5";
  record.tenant = "team";
  record.method = "POST";
  record.path = "/v1/messages";
  record.endpoint = "messages";
  record.model = "claude-x";
  record.upstream = "anthropic";
  record.status = 200;
  record.duration = std::chrono::microseconds(1234567);
  record.first_byte = std::chrono::microseconds(12);
  record.bytes_in = 10;
  record.bytes_out = 20;
  record.cache = "miss";
  record.attempts = 2;
  record.prompt_tokens = 3;
  record.completion_tokens = 0;
  record.cost = 0.0000125;
  record.trace_id = "0123456789abcdef0123456789abcdef";
  return record;
}

TEST(AccessLine, AsText) {
  EXPECT_EQ(access_line(whole_record(), LogFormat::text, kTime),
            "2026-11-29T21:00:00.123Z info request id=req-1 upstream_request_id=up-1 "
            "generation=gen-1 peer=127.0.0.1:5 tenant=team "
            "method=POST path=/v1/messages endpoint=messages model=claude-x upstream=anthropic "
            "status=200 ms=1234.567 first_byte_ms=0.012 bytes_in=10 bytes_out=20 cache=miss "
            "attempts=2 prompt_tokens=3 completion_tokens=0 cost=0.000012500 "
            "trace=0123456789abcdef0123456789abcdef");
}

TEST(AccessLine, AsJson) {
  const json line = json::parse(access_line(whole_record(), LogFormat::json, kTime));
  EXPECT_EQ(line, json::parse(R"({"time": "2026-11-29T21:00:00.123Z", "level": "info",
      "event": "request", "id": "req-1", "upstream_request_id": "up-1", "generation": "gen-1",
      "peer": "127.0.0.1:5", "tenant": "team", "method": "POST",
      "path": "/v1/messages", "endpoint": "messages", "model": "claude-x",
      "upstream": "anthropic", "status": 200, "ms": 1234.567, "first_byte_ms": 0.012,
      "bytes_in": 10, "bytes_out": 20, "cache": "miss", "attempts": 2, "prompt_tokens": 3,
      "completion_tokens": 0, "cost": 0.0000125,
      "trace": "0123456789abcdef0123456789abcdef"})"));
}

TEST(AccessLine, LeavesOutWhatIsNotKnown) {
  AccessRecord record;
  record.method = "GET";
  record.status = 404;
  EXPECT_EQ(access_line(record, LogFormat::text, kTime),
            "2026-11-29T21:00:00.123Z info request method=GET status=404 ms=0.000 bytes_in=0 "
            "bytes_out=0");
  EXPECT_EQ(json::parse(access_line(record, LogFormat::json, kTime)).size(), 8u);
}

// What a client can choose must not look like another field or another line.
TEST(AccessLine, PeersCannotForgeFields) {
  AccessRecord record;
  for (const std::string model :
       {"a status=500", "a\nb", "a=b", "\"", "a\\", "\x1b[2J", "\xff", "\xe2\x80\xae"}) {
    record.model = model;
    const std::string text = access_line(record, LogFormat::text, kTime);
    EXPECT_THAT(text, HasSubstr(" model=\"")) << text;
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    const std::string line = access_line(record, LogFormat::json, kTime);
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    EXPECT_EQ(json::parse(line)["status"], 0);
    const std::string kept = model == "\xff" ? "\xef\xbf\xbd" : model;
    EXPECT_EQ(json::parse(line)["model"], kept);
  }
}

TEST(AccessLine, NumbersOfAnySize) {
  AccessRecord record;
  record.bytes_in = UINT64_MAX;
  record.bytes_out = 1;
  record.duration = std::chrono::hours(24);
  for (const double cost : {0.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    record.cost = cost;
    const json line = json::parse(access_line(record, LogFormat::json, kTime));
    EXPECT_EQ(line["bytes_in"], INT64_MAX);
    EXPECT_EQ(line["ms"], 86'400'000.0);
    EXPECT_EQ(line.contains("cost"), cost == 0.0);
  }
}

TEST(AccessLog, WritesOneLinePerRequestFromLevelInfoOn) {
  const auto written = [](LogLevel level, LogFormat format) {
    init_log(level, {}, format);
    testing::internal::CaptureStderr();
    log_access(whole_record());
    flush_log();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(written(LogLevel::info, LogFormat::text), HasSubstr(" info request id=req-1 "));
  EXPECT_EQ(json::parse(written(LogLevel::info, LogFormat::json))["id"], "req-1");
  EXPECT_EQ(written(LogLevel::warning, LogFormat::json), "");
  init_log(LogLevel::info);
}

}  // namespace
}  // namespace fixpoint
