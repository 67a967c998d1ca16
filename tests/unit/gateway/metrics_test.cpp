#include "gateway/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <thread>

namespace fixpoint {
namespace {

TEST(Metrics, RendersTheTextFormat) {
  MetricsRegistry registry;
  registry.counter("fixpoint_requests_total", "Requests.", {{"code", "200"}}).add(3);
  registry.counter("fixpoint_requests_total", "Requests.", {{"code", "404"}}).add();
  registry.gauge("fixpoint_open", "Open\nconnections \\ now.").set(1.5);
  auto& histogram = registry.histogram("fixpoint_seconds", "Time.", {0.1, 1}, {{"route", "a"}});
  histogram.observe(0.1);
  histogram.observe(0.5);
  histogram.observe(7);
  EXPECT_EQ(registry.render(),
            "# HELP fixpoint_open Open\\nconnections \\\\ now.\n"
            "# TYPE fixpoint_open gauge\n"
            "fixpoint_open 1.5\n"
            "# HELP fixpoint_requests_total Requests.\n"
            "# TYPE fixpoint_requests_total counter\n"
            "fixpoint_requests_total{code=\"200\"} 3\n"
            "fixpoint_requests_total{code=\"404\"} 1\n"
            "# HELP fixpoint_seconds Time.\n"
            "# TYPE fixpoint_seconds histogram\n"
            "fixpoint_seconds_bucket{route=\"a\",le=\"0.1\"} 1\n"
            "fixpoint_seconds_bucket{route=\"a\",le=\"1\"} 2\n"
            "fixpoint_seconds_bucket{route=\"a\",le=\"+Inf\"} 3\n"
            "fixpoint_seconds_sum{route=\"a\"} 7.6\n"
            "fixpoint_seconds_count{route=\"a\"} 3\n");
}

TEST(Metrics, EscapesLabelValues) {
  MetricsRegistry registry;
  registry.counter("fixpoint_x_total", "X.", {{"model", "a\"b\\c\nd"}}).add();
  EXPECT_THAT(registry.render(),
              testing::HasSubstr("fixpoint_x_total{model=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(Metrics, ReadsValuesThatLiveElsewhere) {
  MetricsRegistry registry;
  std::uint64_t writes = 4;
  registry.counter_from("fixpoint_writes_total", "W.", {}, [&] { return writes; });
  registry.gauge_from("fixpoint_room", "R.", {{"a", "b"}},
                      [] { return std::numeric_limits<double>::infinity(); });
  writes = 5;
  EXPECT_THAT(registry.render(), testing::HasSubstr("fixpoint_writes_total 5\n"));
  EXPECT_THAT(registry.render(), testing::HasSubstr("fixpoint_room{a=\"b\"} +Inf\n"));
}

TEST(Metrics, ForgetsWhatLivesElsewhere) {
  MetricsRegistry registry;
  registry.gauge_from("fixpoint_room", "R.", {{"a", "b"}}, [] { return 1.0; });
  registry.gauge_from("fixpoint_room", "R.", {{"a", "b"}}, [] { return 2.0; });
  registry.gauge_from("fixpoint_room", "R.", {{"a", "c"}}, [] { return 3.0; });
  EXPECT_THAT(registry.render(), testing::HasSubstr("fixpoint_room{a=\"b\"} 2\n"));
  Counter& counted = registry.counter("fixpoint_a_total", "A.");
  registry.forget("fixpoint_room", {{"a", "b"}});
  registry.forget("fixpoint_room", {{"a", "x"}});
  registry.forget("fixpoint_none", {});
  registry.forget("fixpoint_a_total", {});
  counted.add();
  const std::string text = registry.render();
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("a=\"b\"")));
  EXPECT_THAT(text, testing::HasSubstr("fixpoint_room{a=\"c\"} 3\n"));
  EXPECT_THAT(text, testing::HasSubstr("fixpoint_a_total 1\n"));
}

TEST(Metrics, TheSameNameAndLabelsAreOneSeries) {
  MetricsRegistry registry;
  Counter& first = registry.counter("fixpoint_a_total", "A.", {{"x", "1"}});
  for (int i = 0; i < 1000; ++i) {
    registry.counter("fixpoint_a_total", "A.", {{"x", std::to_string(i)}});
  }
  EXPECT_EQ(&first, &registry.counter("fixpoint_a_total", "A.", {{"x", "1"}}));
}

TEST(Metrics, MistakesAreBugs) {
  MetricsRegistry registry;
  registry.counter("fixpoint_a_total", "A.", {{"x", "1"}});
  EXPECT_THROW(registry.gauge("fixpoint_a_total", "A.", {{"x", "1"}}), std::logic_error);
  EXPECT_THROW(registry.counter("fixpoint_a_total", "A.", {{"y", "1"}}), std::logic_error);
  EXPECT_THROW(registry.counter("fixpoint-a", "A."), std::logic_error);
  EXPECT_THROW(registry.counter("fixpoint_b_total", "A.", {{"le", "1"}}), std::logic_error);
  EXPECT_THROW(registry.histogram("fixpoint_h", "H.", {1, 1}), std::logic_error);
  for (std::size_t i = 1; i < MetricsRegistry::kMaxSeries; ++i) {
    registry.counter("fixpoint_a_total", "A.", {{"x", "s" + std::to_string(i)}});
  }
  EXPECT_THROW(registry.counter("fixpoint_a_total", "A.", {{"x", "one more"}}), std::logic_error);
}

TEST(Metrics, ThreadsLoseNothing) {
  MetricsRegistry registry;
  Counter& counter = registry.counter("fixpoint_n_total", "N.");
  Gauge& gauge = registry.gauge("fixpoint_g", "G.");
  Histogram& histogram = registry.histogram("fixpoint_h", "H.", {0.5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {  // more threads than shards
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counter.add();
        gauge.add(1);
        histogram.observe(i % 2);
        if (i % 100 == 0) registry.render();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 20'000u);
  EXPECT_EQ(gauge.value(), 20'000);
  EXPECT_EQ(histogram.snapshot().cumulative, (std::vector<std::uint64_t>{10'000, 20'000}));
  EXPECT_EQ(histogram.snapshot().sum, 10'000);
}

}  // namespace
}  // namespace fixpoint
