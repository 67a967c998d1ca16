// Which changes a running gateway takes over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/config_keys.hpp"
#include "tests/support/config_text.hpp"

namespace fixpoint {
namespace {

using test::parse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> problems(const std::string& running, const std::string& fresh) {
  const auto one = parse(running), other = parse(fresh);
  EXPECT_TRUE(one && other) << running << " / " << fresh;
  return reload_problems(*one, *other);
}

constexpr const char* kUpstream = "upstreams: [{name: u, base_url: 'http://h'}]\n";

TEST(ConfigReload, TakesOverWhatRequestsRead) {
  EXPECT_THAT(problems("", ""), IsEmpty());
  EXPECT_THAT(problems(kUpstream,
                       "server: {heartbeat: 1s, drain_timeout: 1s}\n"
                       "cache: {policy: all, ttl: 1h, store_length: true, replay: recorded}\n"
                       "log: {top_logprobs: 2, logprobs: inject, fingerprint_epoch: true}\n"
                       "access_log: {level: error, format: json}\n"
                       "admin: {token: a-longer-token-16}\n"
                       "prices: [{model: a, input: 1, output: 2}]\n"
                       "upstreams:\n"
                       "  - {name: u, base_url: 'http://other', api_keys: [k], retries: 0}\n"
                       "  - {name: v, base_url: 'http://i'}\n"
                       "routes: [{model: a, weights: {u: 1, v: 2}}]\n"),
              IsEmpty());
}

TEST(ConfigReload, NamesWhatNeedsARestart) {
  EXPECT_THAT(
      problems(kUpstream, std::string(kUpstream) + "data_dir: /d\n"
                                                   "server: {listen: '127.0.0.1:1', threads: 2}\n"
                                                   "cache: {redis_url: 'redis://u:hunter2@h'}\n"
                                                   "log: {redact: [a]}\n"
                                                   "telemetry: {headers: {a: b}}\n"
                                                   "models: [{name: m, path: p}]\n"),
      ElementsAre("data_dir: differs from what runs, and is read at the start only",
                  StartsWith("server.listen: differs"), StartsWith("server.threads:"),
                  StartsWith("cache.path:"), StartsWith("cache.redis_url:"),
                  StartsWith("log.path:"), StartsWith("log.redact:"),
                  StartsWith("telemetry.headers:"), StartsWith("models:")));
  const std::string models = std::string(kUpstream) + "models: [{name: m, path: p";
  EXPECT_THAT(problems(models + "}]", models + ", threads: 3}]"),
              ElementsAre(StartsWith("models[0].threads: differs")));
  EXPECT_THAT(problems("cache: {redis_url: 'redis://u:hunter2@h'}",
                       "cache: {redis_url: 'redis://u:hunter3@h'}"),
              ElementsAre(Not(HasSubstr("hunter"))));
}

TEST(ConfigReload, NamesRoutesWhoseModelIsNotLoaded) {
  const auto unloaded = [](const std::string& running, const std::string& fresh) {
    return unloaded_models(*parse(running), *parse(fresh));
  };
  const std::string one = "models: [{name: m, path: p}]\nroutes: [{model: a, local: m}]\n";
  EXPECT_THAT(unloaded(one, one), IsEmpty());
  EXPECT_THAT(unloaded(one, "models: [{name: m, path: q}]\nroutes: [{model: b, local: m}]\n"),
              IsEmpty());
  EXPECT_THAT(unloaded(one, std::string(kUpstream) + "models: [{name: n, path: p}]\n"), IsEmpty())
      << "nothing asks for it";
  EXPECT_THAT(
      unloaded(one, std::string(kUpstream) + "models: [{name: m, path: p}, {name: n, path: p}]\n"
                                             "routes: [{model: a, local: n},\n"
                                             "         {model: b, upstream: u, repro_model: n},\n"
                                             "         {model: c, local: m}]\n"),
      ElementsAre("routes[0].local: the model 'n' is not loaded: models are read at the "
                  "start only",
                  StartsWith("routes[1].repro_model: the model 'n' is not loaded")));
}

// Whatever a key of the table holds, a different value is seen as one.
template <class Section>
void expect_differences_seen() {
  for (const config::Key<Section>& key : config::keys<Section>()) {
    Section one, other;
    std::visit(
        []<class T>(T* value) {
          if constexpr (std::is_same_v<T, std::string>) {
            *value += "x";
          } else if constexpr (std::is_same_v<T, bool>) {
            *value = !*value;
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            value->push_back("x");
          } else if constexpr (std::is_same_v<T, std::vector<NamedValue>>) {
            value->push_back({"x", "y"});
          } else if constexpr (std::is_same_v<T, std::optional<CachePolicy>>) {
            *value = CachePolicy::off;
          } else if constexpr (std::is_enum_v<T>) {
            *value = *value == T{} ? T{1} : T{};
          } else {
            *value += T{1};
          }
        },
        key.slot(other));
    EXPECT_FALSE(config::same_value(key.slot(one), key.slot(other))) << key.info.name;
    EXPECT_TRUE(config::same_value(key.slot(other), key.slot(other))) << key.info.name;
  }
}

TEST(ConfigReload, SeesADifferenceInEveryKey) {
  expect_differences_seen<Config>();
  expect_differences_seen<ServerConfig>();
  expect_differences_seen<CacheConfig>();
  expect_differences_seen<TokenLogConfig>();
  expect_differences_seen<AccessLogConfig>();
  expect_differences_seen<AdminConfig>();
  expect_differences_seen<TelemetryConfig>();
  expect_differences_seen<PriceConfig>();
  expect_differences_seen<ModelConfig>();
  expect_differences_seen<UpstreamConfig>();
  expect_differences_seen<RouteConfig>();
}

}  // namespace
}  // namespace fixpoint
