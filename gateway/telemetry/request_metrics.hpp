// What the request path counts. What every request touches is found by an index or a pointer that
// was made before, with no lock but at a series' first use; a generation's series are looked up by
// name, once for each generation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/dialects/endpoint.hpp"
#include "gateway/metrics.hpp"

namespace fixpoint {

// What a request was for; the first six are Endpoint's, in its order.
enum class RequestKind {
  chat_completions,
  completions,
  responses,
  embeddings,
  messages,
  count_tokens,
  models,
  admin,
  healthz,
  readyz,
  metrics,
  other,
};
constexpr std::size_t kRequestKinds = 12;
constexpr RequestKind kind_of(Endpoint endpoint) {
  return static_cast<RequestKind>(endpoint);
}
std::string_view to_string(RequestKind kind);  // "chat.completions", ..., "healthz"

// gen_ai.operation.name: "chat", "text_completion", "embeddings", "count_tokens".
std::string_view operation_name(Endpoint endpoint);

enum class CacheResult { hit, miss, joined, bypass, error };
constexpr std::size_t kCacheResults = 5;
std::string_view to_string(CacheResult result);

enum class AnswerSource { cache, upstream, local };
constexpr std::size_t kAnswerSources = 3;

// HTTP statuses as labels: those that gateways see by their number, others as "2xx", ..., "other".
constexpr std::size_t kStatusLabels = 32;
std::size_t status_index(int status);              // < kStatusLabels
std::string_view status_label(std::size_t index);  // precondition: made by status_index()

// A series that is made when it is first counted in. Thread-safe.
template <class Metric>
class LazySeries {
 public:
  // `make` returns the registry's one series; two threads may both call it.
  template <class Make>
  Metric& get(Make&& make) {
    Metric* metric = metric_.load(std::memory_order_acquire);
    if (metric == nullptr) {
      metric = &make();
      metric_.store(metric, std::memory_order_release);
    }
    return *metric;
  }

 private:
  std::atomic<Metric*> metric_{nullptr};
};

// The calls to one upstream. Thread-safe.
class UpstreamMetrics {
 public:
  UpstreamMetrics(MetricsRegistry& registry, std::string name);
  void count_status(int status);  // a call that got an answer
  void count_failure();           // a call that got none
  void count_retry();             // a further attempt, here or at a fallback, after a failure here
  void count_key_rotation();      // after a 429: the next API key

 private:
  Counter& calls(std::string_view result);

  MetricsRegistry& registry_;
  const std::string name_;
  std::array<LazySeries<Counter>, kStatusLabels> by_status_;
  LazySeries<Counter> failures_, retries_, rotations_;
};

// One generation when it is over, also one that failed.
struct GenerationCounts {
  int status = 200;                 // what the client got
  double seconds = -1;              // to the end of the answer; negative: not counted here
  double first_token_seconds = -1;  // negative: not known (plain answers)
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
};

// The generations of one provider for one model name of the configuration. Thread-safe.
class GenerationMetrics {
 public:
  GenerationMetrics(MetricsRegistry& registry, std::string provider, std::string model);
  void count(Endpoint endpoint, const GenerationCounts& counts);

 private:
  static constexpr std::size_t kEndpoints = 6;
  static constexpr std::size_t kErrorTypes = 5;
  struct Operation {
    LazySeries<Histogram> input_tokens, output_tokens, first_token;
    std::array<LazySeries<Histogram>, kErrorTypes> seconds;
  };
  Labels labels(Endpoint endpoint) const;
  Histogram& token_usage(Endpoint endpoint, const char* type);
  Counter& tokens(const char* kind);

  MetricsRegistry& registry_;
  const std::string provider_, model_;
  std::array<Operation, kEndpoints> operations_;
  LazySeries<Counter> prompt_tokens_, completion_tokens_;
};

// What an upstream reports at a scrape.
struct UpstreamHealth {
  enum class Breaker { closed = 0, half_open = 1, open = 2 };
  Breaker breaker = Breaker::closed;
  std::uint64_t in_flight = 0, queued = 0;  // calls, over all cores
};

// Thread-safe. The registry must outlive it.
class RequestMetrics {
 public:
  explicit RequestMetrics(MetricsRegistry& registry);

  // --- the request path -------------------------------------------------------------------------
  void count_request(RequestKind kind, int status, double seconds);
  void count_cache(CacheResult result) { cache_[static_cast<std::size_t>(result)]->add(); }
  // The time that a request spent in the gateway itself: without the waits for the client, the
  // upstream and the engine.
  void count_overhead(AnswerSource source, double seconds) {
    overhead_[static_cast<std::size_t>(source)]->observe(seconds);
  }

  // --- these take a lock ------------------------------------------------------------------------
  // Beyond kMaxNames different ones, upstreams and generations are counted together as "other": the
  // number of series stays bounded through any number of reloads.
  static constexpr std::size_t kMaxNames = 256;
  // The same names give the same object; it lives as long as this.
  UpstreamMetrics* upstream(std::string_view name);
  // `provider` is an upstream's name or "local". `model` must be a name or pattern of the
  // configuration (a route's model), not what a client sent: it becomes a label.
  GenerationMetrics* generation(std::string_view provider, std::string_view model);
  // Shows an upstream's breaker, calls and queue from now on; again for the same name: in place of
  // the earlier function. `read` is called at a scrape, from any thread.
  void watch_upstream(std::string_view name, std::function<UpstreamHealth()> read);
  // Ends that; after it returned, `read` is not called any more. For upstreams that a reload
  // removed.
  void forget_upstream(std::string_view name);

 private:
  MetricsRegistry& registry_;
  std::array<std::array<LazySeries<Counter>, kStatusLabels>, kRequestKinds> requests_;
  std::array<LazySeries<Histogram>, kRequestKinds> seconds_;
  std::array<Counter*, kCacheResults> cache_{};
  std::array<Histogram*, kAnswerSources> overhead_{};

  std::mutex mutex_;  // for the maps; their objects never move and are never removed
  std::map<std::string, std::unique_ptr<UpstreamMetrics>, std::less<>> upstreams_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<GenerationMetrics>> generations_;
};

}  // namespace fixpoint
