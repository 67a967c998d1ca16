// Counters, gauges and histograms, rendered in Prometheus' text format (version 0.0.4) at a scrape.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fixpoint {

// Label names and values of one series, fixed when it is made.
using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kMetricShards = 16;  // more threads share them; still correct

// A number spread over cache lines: each thread adds on its own one, a reader sums them.
class ShardedCounter {
 public:
  void add(std::uint64_t n) noexcept;
  std::uint64_t value() const noexcept;

 private:
  struct alignas(64) Shard {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Shard, kMetricShards> shards_;
};

// Thread-safe; adding takes no lock.
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { count_.add(n); }
  std::uint64_t value() const noexcept { return count_.value(); }

 private:
  ShardedCounter count_;
};

// Thread-safe.
class Gauge {
 public:
  void set(double value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) noexcept;
  double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Thread-safe; observing takes no lock.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // upper bounds, ascending; +Inf is added
  void observe(double value) noexcept;

  struct Snapshot {
    std::vector<std::uint64_t> cumulative;  // per bound, then +Inf
    double sum = 0;
  };
  Snapshot snapshot() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  // What one thread touches lies together: the sum, and a count per bound and for +Inf.
  struct Shard {
    std::atomic<double> sum{0};
    std::unique_ptr<std::atomic<std::uint64_t>[]> buckets;
  };

  std::vector<double> bounds_;
  std::array<Shard, kMetricShards> shards_;
};

// From 1 ms to about 2 minutes, in steps of 2 to 2.5.
std::vector<double> latency_buckets_seconds();

// Owns the series; references stay valid as long as the registry. Thread-safe, but making a series
// takes a lock: keep the reference where it is counted. Names begin with fixpoint_, or are those of
// OpenTelemetry's conventions, and follow Prometheus' (counters end in _total, units are seconds
// and bytes). Throws std::logic_error for bad names, one name with two types or label sets, or more
// than kMaxSeries series of one name: these are bugs.
class MetricsRegistry {
 public:
  static constexpr std::size_t kMaxSeries = 10'000;

  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // The same name and labels give the same series.
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                       const Labels& labels = {});
  // Values that live elsewhere, read at a scrape; again for the same labels: in place of the
  // earlier function. The functions must be thread-safe and must not call the registry.
  void counter_from(std::string_view name, std::string_view help, const Labels& labels,
                    std::function<std::uint64_t()> read);
  void gauge_from(std::string_view name, std::string_view help, const Labels& labels,
                  std::function<double()> read);
  // Ends a series of the two above: after this returned, its function is not called any more.
  // Nothing if there is none. Counted series stay: references to them do.
  void forget(std::string_view name, const Labels& labels);

  // Content type: text/plain; version=0.0.4; charset=utf-8
  std::string render() const;

 private:
  struct Family;
  struct Series;
  Series& series(std::string_view name, std::string_view help, std::string_view type,
                 const Labels& labels);

  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Family>, std::less<>> families_;
};

}  // namespace fixpoint
