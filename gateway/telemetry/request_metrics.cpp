#include "gateway/telemetry/request_metrics.hpp"

#include <algorithm>
#include <iterator>

namespace fixpoint {
namespace {

// Statuses that are counted one by one; others go by their class.
constexpr int kStatuses[] = {200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 413, 415,
                             421, 422, 424, 429, 431, 499, 500, 501, 502, 503, 504, 529};
constexpr std::size_t kKnown = std::size(kStatuses);
constexpr std::string_view kClasses[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
static_assert(kKnown + std::size(kClasses) <= kStatusLabels);

// By status - 100, for 100 .. 599.
constexpr auto kIndices = [] {
  std::array<std::uint8_t, 500> indices{};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<std::uint8_t>(kKnown + 1 + i / 100);
  }
  for (std::size_t i = 0; i < kKnown; ++i) {
    indices[static_cast<std::size_t>(kStatuses[i] - 100)] = static_cast<std::uint8_t>(i);
  }
  return indices;
}();

constexpr auto kStatusTexts = [] {
  std::array<std::array<char, 3>, kKnown> texts{};
  for (std::size_t i = 0; i < kKnown; ++i) {
    texts[i] = {static_cast<char>('0' + kStatuses[i] / 100),
                static_cast<char>('0' + kStatuses[i] / 10 % 10),
                static_cast<char>('0' + kStatuses[i] % 10)};
  }
  return texts;
}();

// Bounds as OpenTelemetry's conventions for generative AI give them.
std::vector<double> token_bounds() {
  std::vector<double> bounds;
  for (double bound = 1; bound <= 67'108'864; bound *= 4) bounds.push_back(bound);
  return bounds;
}
std::vector<double> duration_bounds() {
  std::vector<double> bounds;
  for (double bound = 0.01; bounds.size() < 14; bound *= 2) bounds.push_back(bound);
  return bounds;
}
std::vector<double> first_token_bounds() {
  return {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
          0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0};
}
// From 10 microseconds to 100 milliseconds.
std::vector<double> overhead_bounds() {
  return {10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3,
          2e-3,  5e-3,  10e-3, 20e-3,  50e-3,  100e-3};
}

constexpr const char* kBreakerName = "fixpoint_upstream_breaker_state";
constexpr const char* kInFlightName = "fixpoint_upstream_in_flight";
constexpr const char* kQueueName = "fixpoint_upstream_queue_depth";

constexpr std::string_view kSources[] = {"cache", "upstream", "local"};
static_assert(std::size(kSources) == kAnswerSources);

// error.type, in few words: every one of them is a series per model.
constexpr std::string_view kErrorTexts[] = {"", "429", "499", "4xx", "5xx"};
std::size_t error_index(int status) {
  if (status < 400) return 0;
  if (status == 429) return 1;
  if (status == 499) return 2;
  return status < 500 ? 3 : 4;
}

constexpr std::string_view kOther = "other";

}  // namespace

std::string_view to_string(RequestKind kind) {
  constexpr std::string_view kNames[] = {
      "chat.completions", "completions", "responses", "embeddings", "messages", "count_tokens",
      "models",           "admin",       "healthz",   "readyz",     "metrics",  "other"};
  static_assert(std::size(kNames) == kRequestKinds);
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(CacheResult result) {
  constexpr std::string_view kNames[] = {"hit", "miss", "joined", "bypass", "error"};
  static_assert(std::size(kNames) == kCacheResults);
  return kNames[static_cast<std::size_t>(result)];
}

std::string_view operation_name(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::completions:
      return "text_completion";
    case Endpoint::embeddings:
      return "embeddings";
    case Endpoint::count_tokens:
      return "count_tokens";
    case Endpoint::chat_completions:
    case Endpoint::responses:
    case Endpoint::messages:
      return "chat";
  }
  return "chat";
}

std::size_t status_index(int status) {
  if (status < 100 || status > 599) return kKnown;
  return kIndices[static_cast<std::size_t>(status - 100)];
}

std::string_view status_label(std::size_t index) {
  if (index >= kKnown) return kClasses[index - kKnown];
  return {kStatusTexts[index].data(), kStatusTexts[index].size()};
}

// --- UpstreamMetrics

UpstreamMetrics::UpstreamMetrics(MetricsRegistry& registry, std::string name)
    : registry_(registry), name_(std::move(name)) {}

Counter& UpstreamMetrics::calls(std::string_view result) {
  return registry_.counter("fixpoint_upstream_requests_total",
                           "Calls to upstreams, by HTTP status or failure.",
                           {{"upstream", name_}, {"result", std::string(result)}});
}

void UpstreamMetrics::count_status(int status) {
  const std::size_t index = status_index(status);
  by_status_[index].get([&]() -> Counter& { return calls(status_label(index)); }).add();
}

void UpstreamMetrics::count_failure() {
  failures_.get([&]() -> Counter& { return calls("failed"); }).add();
}

void UpstreamMetrics::count_retry() {
  const auto make = [&]() -> Counter& {
    return registry_.counter("fixpoint_upstream_retries_total",
                             "Further attempts after a call that failed, by the failed upstream.",
                             {{"upstream", name_}});
  };
  retries_.get(make).add();
}

void UpstreamMetrics::count_key_rotation() {
  const auto make = [&]() -> Counter& {
    return registry_.counter("fixpoint_upstream_key_rotations_total",
                             "Changes to the next API key after a 429.", {{"upstream", name_}});
  };
  rotations_.get(make).add();
}

// --- GenerationMetrics

GenerationMetrics::GenerationMetrics(MetricsRegistry& registry, std::string provider,
                                     std::string model)
    : registry_(registry), provider_(std::move(provider)), model_(std::move(model)) {}

Labels GenerationMetrics::labels(Endpoint endpoint) const {
  return {{"gen_ai_operation_name", std::string(operation_name(endpoint))},
          {"gen_ai_provider_name", provider_},
          {"gen_ai_request_model", model_}};
}

Histogram& GenerationMetrics::token_usage(Endpoint endpoint, const char* type) {
  Labels all = labels(endpoint);
  all.emplace_back("gen_ai_token_type", type);
  return registry_.histogram("gen_ai_client_token_usage",
                             "Input and output tokens of generations, as their usage says.",
                             token_bounds(), all);
}

Counter& GenerationMetrics::tokens(const char* kind) {
  return registry_.counter("fixpoint_tokens_total", "Tokens of generations, as their usage says.",
                           {{"provider", provider_}, {"kind", kind}});
}

void GenerationMetrics::count(Endpoint endpoint, const GenerationCounts& counts) {
  Operation& operation = operations_[static_cast<std::size_t>(endpoint)];
  const std::size_t error = error_index(counts.status);
  static_assert(std::size(kErrorTexts) == kErrorTypes);
  const auto make_seconds = [&]() -> Histogram& {
    Labels all = labels(endpoint);
    all.emplace_back("error_type", kErrorTexts[error]);
    return registry_.histogram("gen_ai_server_request_duration_seconds",
                               "Time from a request to the end of its answer.", duration_bounds(),
                               all);
  };
  if (counts.seconds >= 0) operation.seconds[error].get(make_seconds).observe(counts.seconds);
  if (counts.first_token_seconds >= 0) {
    const auto make = [&]() -> Histogram& {
      return registry_.histogram("gen_ai_server_time_to_first_token_seconds",
                                 "Time from a request to the first token of its answer.",
                                 first_token_bounds(), labels(endpoint));
    };
    operation.first_token.get(make).observe(counts.first_token_seconds);
  }
  const auto count_tokens = [&](LazySeries<Histogram>& usage, LazySeries<Counter>& total,
                                const char* type, const char* kind, std::uint64_t n) {
    if (n == 0) return;  // none, or an answer that does not say
    usage.get([&]() -> Histogram& { return token_usage(endpoint, type); })
        .observe(static_cast<double>(n));
    total.get([&]() -> Counter& { return tokens(kind); }).add(n);
  };
  count_tokens(operation.input_tokens, prompt_tokens_, "input", "prompt", counts.prompt_tokens);
  count_tokens(operation.output_tokens, completion_tokens_, "output", "completion",
               counts.completion_tokens);
}

// --- RequestMetrics

RequestMetrics::RequestMetrics(MetricsRegistry& registry) : registry_(registry) {
  for (std::size_t i = 0; i < kCacheResults; ++i) {
    const std::string result(to_string(static_cast<CacheResult>(i)));
    cache_[i] = &registry.counter("fixpoint_cache_requests_total",
                                  "Generation requests by what the cache did; joined: shared the "
                                  "answer that another request was being given.",
                                  {{"result", result}});
  }
  for (std::size_t i = 0; i < kAnswerSources; ++i) {
    overhead_[i] =
        &registry.histogram("fixpoint_overhead_seconds",
                            "Time of a request in the gateway itself, by who made the answer.",
                            overhead_bounds(), {{"source", std::string(kSources[i])}});
  }
}

void RequestMetrics::count_request(RequestKind kind, int status, double seconds) {
  const auto row = static_cast<std::size_t>(kind);
  const std::size_t column = status_index(status);
  const auto make_counter = [&]() -> Counter& {
    return registry_.counter("fixpoint_requests_total", "Requests answered.",
                             {{"endpoint", std::string(to_string(kind))},
                              {"status", std::string(status_label(column))}});
  };
  requests_[row][column].get(make_counter).add();
  const auto make_seconds = [&]() -> Histogram& {
    return registry_.histogram(
        "fixpoint_request_seconds", "Time from a request's body to the end of its answer.",
        latency_buckets_seconds(), {{"endpoint", std::string(to_string(kind))}});
  };
  seconds_[row].get(make_seconds).observe(seconds);
}

UpstreamMetrics* RequestMetrics::upstream(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (upstreams_.size() >= kMaxNames && !upstreams_.contains(name)) name = kOther;
  auto& metrics = upstreams_[std::string(name)];
  if (!metrics) metrics = std::make_unique<UpstreamMetrics>(registry_, std::string(name));
  return metrics.get();
}

GenerationMetrics* RequestMetrics::generation(std::string_view provider, std::string_view model) {
  const std::lock_guard lock(mutex_);
  std::pair key{std::string(provider), std::string(model)};
  if (generations_.size() >= kMaxNames && !generations_.contains(key))
    key.first = key.second = kOther;
  auto& metrics = generations_[key];
  if (!metrics) {
    metrics =
        std::make_unique<GenerationMetrics>(registry_, std::move(key.first), std::move(key.second));
  }
  return metrics.get();
}

void RequestMetrics::watch_upstream(std::string_view name, std::function<UpstreamHealth()> read) {
  const Labels labels{{"upstream", std::string(name)}};
  registry_.gauge_from(kBreakerName, "0: calls pass; 1: one call tries; 2: no calls.", labels,
                       [read] { return static_cast<double>(read().breaker); });
  registry_.gauge_from(kInFlightName, "Calls being made.", labels,
                       [read] { return static_cast<double>(read().in_flight); });
  registry_.gauge_from(kQueueName, "Requests that wait for max_concurrency.", labels,
                       [read] { return static_cast<double>(read().queued); });
}

void RequestMetrics::forget_upstream(std::string_view name) {
  const Labels labels{{"upstream", std::string(name)}};
  for (const char* series : {kBreakerName, kInFlightName, kQueueName}) {
    registry_.forget(series, labels);
  }
}

}  // namespace fixpoint
