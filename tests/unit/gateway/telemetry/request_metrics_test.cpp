#include "gateway/telemetry/request_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace fixpoint {
namespace {

using testing::HasSubstr;
using testing::Not;

class RequestMetricsTest : public testing::Test {
 protected:
  MetricsRegistry registry_;
  RequestMetrics metrics_{registry_};
  std::string text() const { return registry_.render(); }
};

TEST(StatusLabels, KnownOnesByNumberOthersByClass) {
  const auto label = [](int status) { return status_label(status_index(status)); };
  EXPECT_EQ(label(200), "200");
  EXPECT_EQ(label(429), "429");
  EXPECT_EQ(label(499), "499");
  EXPECT_EQ(label(529), "529");
  EXPECT_EQ(label(100), "1xx");
  EXPECT_EQ(label(206), "2xx");
  EXPECT_EQ(label(302), "3xx");
  EXPECT_EQ(label(418), "4xx");
  EXPECT_EQ(label(599), "5xx");
  for (const int status : {-1, 0, 99, 600, 1000}) EXPECT_EQ(label(status), "other") << status;
  for (int status = 0; status < 700; ++status) EXPECT_LT(status_index(status), kStatusLabels);
}

TEST_F(RequestMetricsTest, CountsRequests) {
  metrics_.count_request(kind_of(Endpoint::chat_completions), 200, 0.002);
  metrics_.count_request(RequestKind::chat_completions, 200, 0.2);
  metrics_.count_request(kind_of(Endpoint::count_tokens), 418, 1);
  metrics_.count_request(RequestKind::healthz, 200, 0);
  const std::string out = text();
  EXPECT_THAT(out, HasSubstr("fixpoint_requests_total{endpoint=\"chat.completions\","
                             "status=\"200\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_requests_total{endpoint=\"count_tokens\","
                             "status=\"4xx\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_request_seconds_count{endpoint=\"chat.completions\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_request_seconds_bucket{endpoint=\"chat.completions\","
                             "le=\"0.0025\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_request_seconds_count{endpoint=\"healthz\"} 1\n"));
  EXPECT_THAT(out, Not(HasSubstr("status=\"500\""))) << "series come with their first count";
}

TEST_F(RequestMetricsTest, KindsAreNamedAsEndpoints) {
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(static_cast<int>(kind_of(static_cast<Endpoint>(i))), i);
  }
  EXPECT_EQ(to_string(kind_of(Endpoint::messages)), "messages");
  EXPECT_EQ(to_string(kind_of(Endpoint::completions)), "completions");
  EXPECT_EQ(to_string(RequestKind::other), "other");
}

TEST_F(RequestMetricsTest, CountsCacheResultsAndOverhead) {
  metrics_.count_cache(CacheResult::hit);
  metrics_.count_cache(CacheResult::joined);
  metrics_.count_cache(CacheResult::joined);
  metrics_.count_overhead(AnswerSource::cache, 15e-6);
  const std::string out = text();
  EXPECT_THAT(out, HasSubstr("fixpoint_cache_requests_total{result=\"hit\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_cache_requests_total{result=\"joined\"} 2\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_cache_requests_total{result=\"error\"} 0\n"));
  EXPECT_THAT(out,
              HasSubstr("fixpoint_overhead_seconds_bucket{source=\"cache\",le=\"1e-05\"} 0\n"));
  EXPECT_THAT(out,
              HasSubstr("fixpoint_overhead_seconds_bucket{source=\"cache\",le=\"2e-05\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_overhead_seconds_bucket{source=\"local\",le=\"0.1\"} 0\n"));
}

TEST_F(RequestMetricsTest, CountsUpstreamCalls) {
  UpstreamMetrics* upstream = metrics_.upstream("openai");
  EXPECT_EQ(metrics_.upstream("openai"), upstream);
  EXPECT_NE(metrics_.upstream("other"), upstream);
  upstream->count_status(200);
  upstream->count_status(429);
  upstream->count_failure();
  upstream->count_retry();
  upstream->count_key_rotation();
  const std::string out = text();
  for (const char* result : {"200", "429", "failed"}) {
    EXPECT_THAT(out, HasSubstr("fixpoint_upstream_requests_total{upstream=\"openai\",result=\"" +
                               std::string(result) + "\"} 1\n"));
  }
  EXPECT_THAT(out, HasSubstr("fixpoint_upstream_retries_total{upstream=\"openai\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_upstream_key_rotations_total{upstream=\"openai\"} 1\n"));
}

TEST_F(RequestMetricsTest, CountsGenerationsByTheConventionsOfOpenTelemetry) {
  GenerationMetrics* generation = metrics_.generation("openai", "gpt-*");
  EXPECT_EQ(metrics_.generation("openai", "gpt-*"), generation);
  GenerationCounts counts;
  counts.seconds = 0.7;
  counts.first_token_seconds = 0.15;
  counts.prompt_tokens = 100;
  counts.completion_tokens = 5;
  generation->count(Endpoint::messages, counts);
  generation->count(Endpoint::messages, {503, 0.1, -1, 0, 0});
  generation->count(Endpoint::messages, {500, -1, -1, 0, 0});  // its time is counted elsewhere
  metrics_.generation("openai", "other")->count(Endpoint::embeddings, {200, 0.1, -1, 7, 0});
  const std::string out = text();
  const std::string labels =
      "gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"openai\","
      "gen_ai_request_model=\"gpt-*\"";
  EXPECT_THAT(out, HasSubstr("gen_ai_client_token_usage_bucket{" + labels +
                             ",gen_ai_token_type=\"input\",le=\"64\"} 0\n"));
  EXPECT_THAT(out, HasSubstr("gen_ai_client_token_usage_bucket{" + labels +
                             ",gen_ai_token_type=\"input\",le=\"256\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("gen_ai_client_token_usage_sum{" + labels +
                             ",gen_ai_token_type=\"output\"} 5\n"));
  EXPECT_THAT(out, HasSubstr("gen_ai_server_request_duration_seconds_count{" + labels +
                             ",error_type=\"\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("gen_ai_server_request_duration_seconds_count{" + labels +
                             ",error_type=\"5xx\"} 1\n"));
  EXPECT_THAT(out, HasSubstr("gen_ai_server_request_duration_seconds_bucket{" + labels +
                             ",error_type=\"\",le=\"81.92\"} 1\n"));
  EXPECT_THAT(out,
              HasSubstr("gen_ai_server_time_to_first_token_seconds_count{" + labels + "} 1\n"));
  EXPECT_THAT(out, HasSubstr("le=\"67108864\""));
  EXPECT_THAT(out, HasSubstr("fixpoint_tokens_total{provider=\"openai\",kind=\"prompt\"} 107\n"));
  EXPECT_THAT(out, HasSubstr("fixpoint_tokens_total{provider=\"openai\",kind=\"completion\"} 5\n"));
  EXPECT_THAT(out, HasSubstr("gen_ai_operation_name=\"embeddings\""));
}

TEST_F(RequestMetricsTest, WatchesUpstreamsUntilTheyAreForgotten) {
  UpstreamHealth health{UpstreamHealth::Breaker::open, 3, 4};
  metrics_.watch_upstream("u", [&] { return health; });
  EXPECT_THAT(text(), HasSubstr("fixpoint_upstream_breaker_state{upstream=\"u\"} 2\n"));
  EXPECT_THAT(text(), HasSubstr("fixpoint_upstream_in_flight{upstream=\"u\"} 3\n"));
  EXPECT_THAT(text(), HasSubstr("fixpoint_upstream_queue_depth{upstream=\"u\"} 4\n"));
  metrics_.watch_upstream("u", [] { return UpstreamHealth{}; });
  EXPECT_THAT(text(), HasSubstr("fixpoint_upstream_breaker_state{upstream=\"u\"} 0\n"));
  metrics_.forget_upstream("u");
  EXPECT_THAT(text(), Not(HasSubstr("upstream=\"u\"")));
}

TEST_F(RequestMetricsTest, NamesAreBounded) {
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "n" + std::to_string(i);
    for (const int status : {200, 400, 429, 499, 500}) {
      for (int endpoint = 0; endpoint < 6; ++endpoint) {
        metrics_.generation(name, name)
            ->count(static_cast<Endpoint>(endpoint), {status, 1, 1, 1, 1});
      }
    }
    for (int status = 99; status < 601; ++status) metrics_.upstream(name)->count_status(status);
  }
  const std::string out = text();
  EXPECT_THAT(out, HasSubstr("\"n255\""));
  EXPECT_THAT(out, Not(HasSubstr("\"n256\"")));
  EXPECT_THAT(out, HasSubstr("upstream=\"other\""));
  EXPECT_THAT(out, HasSubstr("gen_ai_request_model=\"other\""));
}

TEST_F(RequestMetricsTest, ThreadsLoseNothing) {
  GenerationMetrics* generation = metrics_.generation("p", "m");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        metrics_.count_request(RequestKind::messages, 200, 0.1);
        generation->count(Endpoint::messages, {200, 1, 1, 1, 1});
        metrics_.upstream("u")->count_status(200);
        if (i % 250 == 0) text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(text(), HasSubstr("fixpoint_requests_total{endpoint=\"messages\",status=\"200\"} "
                                "8000\n"));
  EXPECT_THAT(text(), HasSubstr("fixpoint_tokens_total{provider=\"p\",kind=\"prompt\"} 8000\n"));
  EXPECT_THAT(text(), HasSubstr("result=\"200\"} 8000\n"));
}

}  // namespace
}  // namespace fixpoint
