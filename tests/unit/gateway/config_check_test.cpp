// What the gateway itself needs to agree in a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/certificate.hpp"
#include "tests/support/config_text.hpp"
#include "tests/support/temp_dir.hpp"

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
        BadFile{"log: {redact: [a, '(']}",
                "f.yaml:1:19: log.redact[1]: '(' is no PCRE2 pattern: missing closing"},
        BadFile{"access_log: {format: xml}", "must be one of text, json"},
        BadFile{"admin: {tokens: a}", "unknown key \"admin.tokens\"; known are: token"},
        BadFile{"admin: {token: hunter2-hunter2}",
                "f.yaml:1:16: admin.token: must have at least 16 bytes"},
        BadFile{"upstreams: [{name: \"a\xff\", base_url: 'http://h'}]",
                "f.yaml:1:20: upstreams[0].name: must be UTF-8"},
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
      "admin: {token: t0ken-of-16-bytes}\n"
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
  EXPECT_THAT(config->secrets(), ElementsAre("rediss://u:long%2Fpassword@h:7000", "long/password",
                                             "t0ken-of-16-bytes", "h3ader"));
}

TEST(ConfigGateway, AsManyPatternsAsTheLogTakes) {
  std::string patterns;
  for (int i = 0; i < 64; ++i) patterns += "a,";
  EXPECT_THAT(errors_of("log: {redact: [" + patterns + "]}"), ElementsAre());
  EXPECT_THAT(errors_of("log: {redact: [" + patterns + "b]}"),
              ElementsAre(HasSubstr("log.redact: redact: 65 patterns, at most 64")));
}

// Only where they are asked for: other tools need not be able to read a private key.
TEST(ConfigGateway, FilesThatCannotBeServedWith) {
  const test::TempDir folder;
  const std::string path = folder.path().string();
  const auto one = test::make_certificate(path, "one", "localhost");
  const auto other = test::make_certificate(path, "other", "localhost");
  const std::string empty = folder.file("empty.pem");
  std::ofstream(empty) << "no certificate\n";
  auto options = test::with({});
  options.check_files = true;
  const auto server = [](const std::string& cert, const std::string& key) {
    return "server: {tls_cert_file: '" + cert + "', tls_key_file: '" + key + "'}";
  };
  const auto upstream = [](const std::string& url, const std::string& more) {
    return "upstreams: [{name: u, base_url: '" + url + "', ca_file: '" + more + "}]";
  };
  const auto redis = [](const std::string& url, const std::string& ca_file) {
    return "cache: {redis_url: '" + url + "', redis_ca_file: '" + ca_file + "'}";
  };
  for (const std::string& good :
       {server(one.certificate, one.key), upstream("https://h", one.certificate + "'"),
        upstream("http://h", empty + "'"), upstream("https://h", empty + "', verify_tls: false"),
        redis("rediss://h", one.certificate), redis("redis://h", empty)}) {
    EXPECT_THAT(errors_of(good, options), ElementsAre()) << good;
  }
  for (const auto& [bad, message] : std::vector<std::pair<std::string, std::string>>{
           {server(one.key, one.certificate), "f.yaml:1:25: server.tls_cert_file: tls_cert_file"},
           {server(one.certificate, other.key),
            "tls_key_file \"" + other.key + "\" cannot be used"},
           {server(one.certificate, path + "/none"), "cannot be used"},
           {upstream("https://h", empty + "'"), "upstreams[0].ca_file: ca_file"},
           {upstream("https://h", path + "/none'"), "upstreams[0].ca_file: ca_file"},
           {redis("rediss://h", empty), "cache.redis_ca_file: redis CA file"}}) {
    EXPECT_THAT(errors_of(bad, options), ElementsAre(HasSubstr(message))) << bad;
    EXPECT_THAT(errors_of(bad), ElementsAre()) << bad;
  }
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
