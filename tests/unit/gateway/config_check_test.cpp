// What the gateway itself needs to agree in a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/config_text.hpp"

namespace fixpoint {
namespace {

using test::errors_of;
using test::parse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct BadFile {
  const char* yaml;
  const char* message;
};

class BadGateway : public testing::TestWithParam<BadFile> {};

TEST_P(BadGateway, IsRefused) {
  EXPECT_THAT(errors_of(GetParam().yaml), ElementsAre(HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadGateway,
    testing::Values(
        BadFile{"server: {tls_cert_file: c.pem}",
                "f.yaml:1:25: server.tls_cert_file: tls_cert_file and tls_key_file must be set"},
        BadFile{"server: {tls_key_file: k.pem}", "must be set together"},
        BadFile{"server: {allow_public: true}", "unknown key \"server.allow_public\""},
        BadFile{"cache: {redis_url: 'http://h'}",
                "f.yaml:1:20: cache.redis_url: redis url: the scheme is"},
        BadFile{"cache: {redis_url: 'redis://'}", "redis url: the host is"},
        BadFile{"cache: {redis_url: 'redis://h:99999'}", "redis url: the port is"},
        BadFile{"cache: {redis_url: 'redis://h/one'}", "the path is not the number of a database"},
        BadFile{"cache: {redis_url: 'redis://h/1', redis_cluster: true}", "has database 0 only"},
        BadFile{"cache: {redis_cluster: true}", "f.yaml:1:24: cache.redis_cluster: has no effect"},
        BadFile{"cache: {redis_ca_file: x}", "cache.redis_ca_file: has no effect"},
        BadFile{"cache: {redis_prefix: ''}", "cache.redis_prefix: must not be empty"},
        BadFile{"cache: {replay: slow}", "must be one of full, recorded"},
        BadFile{"cache: {ttl: 4000d}", "out of range: must be in 0s .. 3650d"},
        BadFile{"log: {logprobs: yes}", "must be one of off, client, inject"},
        BadFile{"log: {text: half}", "must be one of off, full"},
        BadFile{"log: {redact: 'a+'}", "log.redact: must be a list"},
        BadFile{"log: {redact: [a, '']}", "f.yaml:1:19: log.redact[1]: must not be empty"},
        BadFile{"access_log: {format: xml}", "must be one of text, json"},
        BadFile{"admin: {tokens: a}", "unknown key \"admin.tokens\"; known are: token"},
        BadFile{"telemetry: {otlp_endpoint: 'localhost:4318'}", "must be an http or https URL"},
        BadFile{"telemetry: {headers: {Host: a}}", "telemetry.headers.Host: is written by"},
        BadFile{"telemetry: {interval: 1ms}", "out of range: must be in 100ms .. 1h"}));

TEST(ConfigGateway, IsRead) {
  const auto config = parse(
      "server: {tls_cert_file: c.pem, tls_key_file: k.pem, heartbeat: 5s, listen: '0.0.0.0:1'}\n"
      "cache: {store_length: true, ttl: 30d, max_bytes: 1GiB, memory_bytes: 0, replay: recorded,\n"
      "        redis_url: 'rediss://u:long%2Fpassword@h:7000', redis_cluster: true}\n"
      "log: {logprobs: inject, text: off, redact: ['[0-9]{16}$', 'a b'], max_age: 2d}\n"
      "access_log: {format: json}\n"
      "admin: {token: t0ken}\n"
      "telemetry: {otlp_endpoint: 'http://h:4318', headers: {x-key: h3ader}, interval: 1s}\n");
  ASSERT_TRUE(config) << config.error()[0].text();
  EXPECT_EQ(config->server.tls_cert_file, "c.pem");
  EXPECT_EQ(config->server.heartbeat, std::chrono::seconds(5));
  EXPECT_TRUE(config->cache.store_length);
  EXPECT_EQ(config->cache.ttl, std::chrono::hours(30 * 24));
  EXPECT_EQ(config->cache.memory_bytes, 0u);
  EXPECT_EQ(config->cache.replay, ReplayPace::recorded);
  EXPECT_EQ(config->log.logprobs, LogprobCapture::inject);
  EXPECT_EQ(config->log.text, TextCapture::off);
  EXPECT_THAT(config->log.redact, ElementsAre("[0-9]{16}$", "a b"));
  EXPECT_EQ(config->access_log.format, LogFormat::json);
  EXPECT_EQ(config->telemetry.otlp_endpoint, "http://h:4318");
  EXPECT_THAT(config->secrets(),
              ElementsAre("rediss://u:long%2Fpassword@h:7000", "long/password", "t0ken", "h3ader"));
}

TEST(ConfigGateway, ErrorsNeverShowTheRedisPassword) {
  for (const char* url : {"redis://u:hunter2@h:99999", "http://u:hunter2@h", "hunter2 x"}) {
    for (const std::string& error : errors_of("cache: {redis_url: '" + std::string(url) + "'}")) {
      EXPECT_THAT(error, Not(HasSubstr("hunter2")));
    }
  }
}

}  // namespace
}  // namespace fixpoint
