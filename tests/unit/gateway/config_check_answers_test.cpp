// Upstreams, routes and prices of a configuration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/config_text.hpp"

namespace fixpoint {
namespace {

using test::errors_of;
using test::parse;
using test::with;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct BadFile {
  const char* yaml;
  const char* message;
};

class BadAnswers : public testing::TestWithParam<BadFile> {};

TEST_P(BadAnswers, AreRefused) {
  EXPECT_THAT(errors_of(GetParam().yaml), ElementsAre(HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Upstreams, BadAnswers,
    testing::Values(
        BadFile{"upstreams: [{name: u, base_url: 'ftp://h'}]", "must be an http or https URL"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h'}, {name: u, base_url: 'http://i'}]",
                "upstreams[1].name: \"u\" is already used"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', headers: {'a b': c}}]",
                "is not an HTTP field name"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', headers: {Host: c}}]",
                "cannot be set"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', headers: {x-A: c, X-a: d}}]",
                "is set twice"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', headers: {x: c, x: d}}]",
                "\"upstreams[0].headers.x\" is given twice"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', api_key: k, "
                "headers: {authorization: c}}]",
                "together with api_key"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', kind: anthropic, api_keys: [k], "
                "headers: {X-Api-Key: c}}]",
                "together with api_key"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', kind: cohere}]",
                "must be one of openai, anthropic"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', api_key: k, api_keys: [l]}]",
                "upstreams[0].api_keys: cannot be set together with api_key"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', api_keys: [k, l, k]}]",
                "f.yaml:1:62: upstreams[0].api_keys[2]: is the same key as an earlier one"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', api_keys: ['']}]",
                "upstreams[0].api_keys[0]: must not be empty"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', api_keys: k}]",
                "upstreams[0].api_keys: must be a list"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', api_keys: [[k]]}]",
                "upstreams[0].api_keys[0]: must be a single value"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', model_names: [a]}]",
                "upstreams[0].model_names: must be a mapping"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', model_names: {a: {b: c}}}]",
                "upstreams[0].model_names.a: must be a single value"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', model_names: {a: ''}}]",
                "upstreams[0].model_names.a: must not be empty"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', model_names: {'': b}}]",
                "the requested model is empty"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', model_names: {'*': b, c: d}}]",
                "upstreams[0].model_names.c: can never match"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', proxy: 'https://p:1'}]",
                "upstreams[0].proxy: must be http://[user:password@]host[:port]"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', proxy: 'http://p:1/path'}]",
                "upstreams[0].proxy: must be"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', retries: 11}]", "0 .. 10"},
        BadFile{"upstreams: [{name: u, base_url: 'http://h', headers: {x: \"a\\nb\"}}]",
                "must not contain control characters"}));

#define TWO_UPSTREAMS \
  "upstreams: [{name: u, base_url: 'http://h'}, {name: v, base_url: 'http://i'}]\n"

INSTANTIATE_TEST_SUITE_P(
    Routes, BadAnswers,
    testing::Values(
        BadFile{"routes: [{model: a}]",
                "routes[0]: exactly one of upstream, weights and local must be set"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, upstream: u, weights: {v: 1}}]",
                "routes[0]: exactly one of"},
        BadFile{"routes: [{model: a, upstream: x}]",
                "routes[0].upstream: \"x\" is no name in upstreams"},
        BadFile{"routes: [{model: a, local: x}]", "routes[0].local: \"x\" is no name in models"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, upstream: u, repro: required}]",
                "f.yaml:2:41: routes[0].repro: \"required\" needs a local model"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, upstream: u, upstream_model: b}]",
                "unknown key \"routes[0].upstream_model\""},
        BadFile{TWO_UPSTREAMS "routes: [{model: '*', upstream: u}, {model: a, upstream: u}]",
                "routes[1]: can never match: routes[0]"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, weights: {u: 1, w: 1}}]",
                "f.yaml:2:37: routes[0].weights.w: \"w\" is no name in upstreams"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, weights: {u: 0}}]",
                "routes[0].weights.u: must be a whole number in 1 .. 1000000"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, weights: {u: 1000001}}]", "1 .. 1000000"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, weights: {u: 0.5}}]", "1 .. 1000000"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, weights: {u: 1, u: 2}}]",
                "\"routes[0].weights.u\" is given twice"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, upstream: u, fallbacks: [w]}]",
                "f.yaml:2:46: routes[0].fallbacks[0]: \"w\" is no name in upstreams"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, upstream: u, fallbacks: [v, u]}]",
                "routes[0].fallbacks[1]: \"u\" is asked already"},
        BadFile{TWO_UPSTREAMS "routes: [{model: a, upstream: u, fallbacks: [v, v]}]",
                "routes[0].fallbacks[1]: \"v\" is asked already"},
        BadFile{"models: [{name: m, path: p}]\n"
                "upstreams: [{name: u, base_url: 'http://h'}]\n"
                "routes: [{model: a, local: m, fallbacks: [u]}]",
                "routes[0].fallbacks: has no effect without upstream or weights"}));

INSTANTIATE_TEST_SUITE_P(
    Prices, BadAnswers,
    testing::Values(BadFile{"prices: [{model: a, input: 1}]", "prices[0].output: is required"},
                    BadFile{"prices: [{model: a, input: -1, output: 1}]",
                            "prices[0].input: must be a decimal number in 0 .. 1000000"},
                    BadFile{"prices: [{model: a, input: 1e3, output: 1}]", "a decimal number"},
                    BadFile{"prices: [{model: a, input: .inf, output: 1}]", "a decimal number"},
                    BadFile{"prices: [{model: a, input: nan, output: 1}]", "a decimal number"},
                    BadFile{"prices: [{model: a, input: 1000000.5, output: 1}]", "out of range"},
                    BadFile{"prices: [{model: '*', input: 1, output: 1},"
                            " {model: a, input: 1, output: 1}]",
                            "prices[1]: can never match"}));

TEST(ConfigAnswers, AreRead) {
  const auto config = parse(
      "prices:\n"
      "  - {model: gpt-4o-mini, input: 0.15, output: 0.6, cached_input: 0.075}\n"
      "  - {model: 'gpt-*', input: 2.5, output: 10}\n"
      "upstreams:\n"
      "  - name: a\n"
      "    base_url: https://api.anthropic.com\n"
      "    kind: anthropic\n"
      "    api_keys: [sk-first, '${SECOND}']\n"
      "    model_names: {'claude-*': claude-sonnet-4-5, fast: claude-haiku-4-5}\n"
      "    proxy: http://me:word@proxy.example:3128\n"
      "    total_timeout: 10m\n"
      "    max_concurrency: 8\n"
      "  - {name: b, base_url: 'http://b'}\n"
      "routes:\n"
      "  - {model: x, weights: {a: 9, b: 1}, fallbacks: [b, a]}\n"
      "  - {model: y, upstream: a, fallbacks: [b]}\n",
      with({{"SECOND", "sk-second"}}));
  ASSERT_TRUE(config) << config.error()[0].text();
  ASSERT_EQ(config->prices.size(), 2u);
  EXPECT_EQ(config->prices[0].input, 0.15);
  EXPECT_EQ(config->prices[0].cached_input, 0.075);
  EXPECT_EQ(config->prices[1].cached_input, 2.5) << "not given: as input";
  const UpstreamConfig& upstream = config->upstreams[0];
  EXPECT_EQ(upstream.kind, UpstreamKind::anthropic);
  EXPECT_THAT(upstream.api_keys, ElementsAre("sk-first", "sk-second"));
  EXPECT_THAT(upstream.model_names, ElementsAre(NamedValue{"claude-*", "claude-sonnet-4-5"},
                                                NamedValue{"fast", "claude-haiku-4-5"}));
  EXPECT_EQ(upstream.total_timeout, std::chrono::minutes(10));
  EXPECT_EQ(upstream.max_concurrency, 8u);
  EXPECT_EQ(upstream.retries, 2u);
  EXPECT_THAT(config->routes[0].weights, ElementsAre(NamedValue{"a", "9"}, NamedValue{"b", "1"}));
  EXPECT_THAT(config->routes[0].fallbacks, ElementsAre("b", "a"));
  EXPECT_THAT(config->secrets(),
              ElementsAre("sk-first", "sk-second", "http://me:word@proxy.example:3128",
                          "Basic bWU6d29yZA=="));
}

TEST(ConfigAnswers, MessagesNeverShowTheSecretsOfLists) {
  const auto errors = errors_of(
      "upstreams: [{name: u, base_url: 'http://h', api_keys: [hunter2, hunter2, 'hunter2 x'],\n"
      "  proxy: 'ftp://me:hunter2@h'}]\n");
  EXPECT_EQ(errors.size(), 3u);
  for (const std::string& error : errors) EXPECT_THAT(error, Not(HasSubstr("hunter2")));
}

TEST(ConfigAnswers, ListsAndMappingsHaveALimit) {
  std::string keys, members;
  for (int i = 0; i < 1025; ++i) {
    keys += "k" + std::to_string(i) + ",";
    members += "k" + std::to_string(i) + ": v,";
  }
  const std::string start = "upstreams: [{name: u, base_url: 'http://h', ";
  EXPECT_THAT(errors_of(start + "api_keys: [" + keys + "]}]"),
              ElementsAre(HasSubstr("must be a list of at most 1024 items")));
  EXPECT_THAT(errors_of(start + "headers: {" + members + "}}]"),
              ElementsAre(HasSubstr("must be a mapping of at most 1024 names to values")));
}

}  // namespace
}  // namespace fixpoint
