#include "gateway/settings.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/support/certificate.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

TEST(Settings, AnUpstreamIsMadeAnewWhenItsCaFileHoldsSomethingElse) {
  const test::TempDir folder;
  const auto old = test::make_certificate(folder.path().string(), "old", "localhost");
  const auto rotated = test::make_certificate(folder.path().string(), "rotated", "localhost");
  Config config;
  config.upstreams.emplace_back();
  config.upstreams[0].name = "one";
  config.upstreams[0].base_url = "https://localhost:1/v1";
  config.upstreams[0].ca_file = old.certificate;
  config.upstreams.push_back(config.upstreams[0]);
  config.upstreams[1].name = "two";
  config.upstreams[1].ca_file.clear();

  Cores cores(1);
  MetricsRegistry registry;
  RequestMetrics metrics(registry);
  const Settings first(config, cores, metrics, nullptr);
  const Settings same(config, cores, metrics, &first);
  EXPECT_EQ(same.find_upstream("one"), first.find_upstream("one"));
  std::filesystem::copy_file(rotated.certificate, old.certificate,
                             std::filesystem::copy_options::overwrite_existing);
  const Settings changed(config, cores, metrics, &same);
  EXPECT_NE(changed.find_upstream("one"), same.find_upstream("one"));
  EXPECT_EQ(changed.find_upstream("two"), same.find_upstream("two"));
  std::filesystem::remove(old.certificate);
  EXPECT_THROW(Settings(config, cores, metrics, &changed), std::runtime_error);
}

TEST(Settings, AChangedUpstreamKeepsItsCallsAndBeginsAnewOtherwise) {
  Config config;
  config.upstreams.emplace_back();
  config.upstreams[0].name = "one";
  config.upstreams[0].base_url = "http://localhost:1/v1";
  config.upstreams[0].breaker_failures = 1;
  Cores cores(1);
  MetricsRegistry registry;
  RequestMetrics metrics(registry);
  const Settings first(config, cores, metrics, nullptr);
  const auto old = first.find_upstream("one");
  const auto running = test::run(cores.context(0), old->admission.acquire());
  old->breaker.allow()->failed();
  config.upstreams[0].max_concurrency = 1;
  const Settings second(config, cores, metrics, &first);
  const auto current = second.find_upstream("one");
  ASSERT_NE(current, old);
  EXPECT_EQ(current->admission.running(), 1u);
  EXPECT_TRUE(current->breaker.would_allow());
  const auto soon = [] { return Clock::now() + std::chrono::milliseconds(20); };
  // Not in force yet: the reload may still fail.
  EXPECT_TRUE(test::run(cores.context(0), current->admission.acquire(soon())));
  current->enforce_limits();
  EXPECT_FALSE(test::run(cores.context(0), current->admission.acquire(soon())));
  EXPECT_FALSE(test::run(cores.context(0), old->admission.acquire(soon())));
  // Calls that hang at one address are not those of another.
  config.upstreams[0].base_url = "http://localhost:2/v1";
  const Settings third(config, cores, metrics, &second);
  EXPECT_EQ(third.find_upstream("one")->admission.running(), 0u);
}

TEST(Settings, APinnedRequestWalksOnFromAnOpenBreaker) {
  Config config;
  RouteConfig route;
  route.model = "*";
  for (const char* name : {"a", "b", "c", "d"}) {
    config.upstreams.emplace_back();
    config.upstreams.back().name = name;
    config.upstreams.back().base_url = "http://localhost:1/v1";
    config.upstreams.back().breaker_failures = 1;
    if (name[0] != 'd') route.weights.push_back({name, "2"});
  }
  route.fallbacks = {"a", "d"};
  config.routes.push_back(route);
  Cores cores(1);
  MetricsRegistry registry;
  RequestMetrics metrics(registry);
  const Settings settings(config, cores, metrics, nullptr);
  const auto order = [&](std::uint64_t place) {
    std::string names;
    const auto all = [](const Upstream&) { return true; };
    for (const auto& one : settings.order(*settings.find_route("m"), &place, all)) {
      names += one->config.name;
    }
    return names;
  };
  std::map<std::string, int> before, after;
  for (std::uint64_t place = 0; place < 24; ++place) ++before[order(place)];
  EXPECT_EQ(before, (std::map<std::string, int>{{"ad", 8}, {"bad", 8}, {"cad", 8}}));
  settings.find_upstream("b")->breaker.allow()->failed();
  for (std::uint64_t place = 0; place < 24; ++place) {
    ++after[order(place)];
    EXPECT_EQ(order(place), order(place));
  }
  // It keeps its turn, for what it answered before.
  EXPECT_EQ(after, (std::map<std::string, int>{{"ad", 8}, {"bad", 4}, {"bcad", 4}, {"cad", 8}}));
  for (const char* name : {"a", "c"}) settings.find_upstream(name)->breaker.allow()->failed();
  EXPECT_EQ(order(0).size(), 4u);
}

TEST(Settings, WhoCannotTakeARequestIsNoChoice) {
  Config config;
  for (const char* name : {"a", "b", "c", "d"}) {
    config.upstreams.emplace_back();
    config.upstreams.back().name = name;
    config.upstreams.back().base_url = "http://localhost:1/v1";
    config.upstreams.back().breaker_failures = 1;
  }
  RouteConfig weighted, single;
  weighted.model = "weighted";
  for (const char* name : {"a", "b", "c"}) weighted.weights.push_back({name, "1"});
  single.model = "single";
  single.upstream = "a";
  single.fallbacks = weighted.fallbacks = {"d"};
  config.routes = {weighted, single};
  Cores cores(1);
  MetricsRegistry registry;
  RequestMetrics metrics(registry);
  const Settings settings(config, cores, metrics, nullptr);
  // Of every eight requests; "" counts those that nobody takes.
  const auto orders = [&](const char* model, const std::string& able, bool sticky) {
    std::map<std::string, int> counted;
    for (std::uint64_t place = 0; place < 8; ++place) {
      std::string names;
      const auto can_take = [&](const Upstream& one) {
        return able.find(one.config.name) != std::string::npos;
      };
      const auto& route = *settings.find_route(model);
      for (const auto& one : settings.order(route, sticky ? &place : nullptr, can_take)) {
        names += one->config.name;
      }
      ++counted[names];
    }
    return counted;
  };
  using Orders = std::map<std::string, int>;
  for (const bool sticky : {true, false}) {
    EXPECT_EQ(orders("weighted", "bcd", sticky), (Orders{{"bd", 4}, {"cd", 4}}));
    EXPECT_EQ(orders("weighted", "c", sticky), (Orders{{"c", 8}}));
    EXPECT_EQ(orders("weighted", "d", sticky), (Orders{{"d", 8}}));
    EXPECT_EQ(orders("weighted", "", sticky), (Orders{{"", 8}}));
    EXPECT_EQ(orders("single", "d", sticky), (Orders{{"d", 8}}));
  }
  // Nor are the others while it is open and nobody else can.
  settings.find_upstream("c")->breaker.allow()->failed();
  for (const bool sticky : {true, false}) {
    EXPECT_EQ(orders("weighted", "c", sticky), (Orders{{"c", 8}}));
  }
  EXPECT_EQ(orders("weighted", "bc", true), (Orders{{"b", 4}, {"cb", 4}}));
  EXPECT_EQ(orders("weighted", "bc", false), (Orders{{"b", 8}}));
}

}  // namespace
}  // namespace fixpoint
