#include "gateway/metrics.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <variant>

namespace fixpoint {
namespace {

// Threads take shards in the order in which they first count.
std::size_t this_shard() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine =
      next.fetch_add(1, std::memory_order_relaxed) % kMetricShards;
  return mine;
}

void add_to(std::atomic<double>& sum, double delta) noexcept {
  double old = sum.load(std::memory_order_relaxed);
  while (!sum.compare_exchange_weak(old, old + delta, std::memory_order_relaxed)) {
  }
}

bool valid_name(std::string_view name, bool colon) {
  const auto first = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
  };
  return !name.empty() && first(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return first(c) || (c >= '0' && c <= '9');
  });
}

// Backslash and line feed are escaped; in label values the quote too.
void append_escaped(std::string& out, std::string_view text, bool quote) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quote) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string render_labels(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out += name + "=\"";
    append_escaped(out, value, true);
    out += '"';
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

void append_sample(std::string& out, std::string_view name, std::string_view suffix,
                   std::string_view labels, std::string_view value) {
  out.append(name).append(suffix);
  if (!labels.empty()) out.append("{").append(labels).append("}");
  out.append(" ").append(value).append("\n");
}

}  // namespace

void ShardedCounter::add(std::uint64_t n) noexcept {
  shards_[this_shard()].value.fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t ShardedCounter::value() const noexcept {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.value.load(std::memory_order_relaxed);
  return sum;
}

void Gauge::add(double delta) noexcept {
  add_to(value_, delta);
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)) {
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    if (!std::isfinite(bounds_[i]) || (i > 0 && bounds_[i] <= bounds_[i - 1])) {
      throw std::logic_error("histogram bounds must be finite and ascending");
    }
  }
  for (Shard& shard : shards_) {
    shard.buckets = std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1);
  }
}

void Histogram::observe(double value) noexcept {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  Shard& shard = shards_[this_shard()];
  shard.buckets[static_cast<std::size_t>(bound - bounds_.begin())].fetch_add(
      1, std::memory_order_relaxed);
  add_to(shard.sum, value);
}

Histogram::Snapshot Histogram::snapshot() const {
  Snapshot snapshot;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    for (const Shard& shard : shards_) total += shard.buckets[i].load(std::memory_order_relaxed);
    snapshot.cumulative.push_back(total);
  }
  for (const Shard& shard : shards_) snapshot.sum += shard.sum.load(std::memory_order_relaxed);
  return snapshot;
}

std::vector<double> latency_buckets_seconds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
}

struct MetricsRegistry::Series {
  // Counter, gauge and histogram live here; the functions read values that live elsewhere.
  std::variant<std::monostate, std::unique_ptr<Counter>, std::unique_ptr<Gauge>,
               std::unique_ptr<Histogram>, std::function<std::uint64_t()>, std::function<double()>>
      value;
};

struct MetricsRegistry::Family {
  std::string type, help;
  std::vector<std::string> label_names;
  std::map<std::string, Series> series;  // by rendered labels; nodes of a map never move
};

MetricsRegistry::MetricsRegistry() = default;
MetricsRegistry::~MetricsRegistry() = default;

// Called with mutex_ held.
MetricsRegistry::Series& MetricsRegistry::series(std::string_view name, std::string_view help,
                                                 std::string_view type, const Labels& labels) {
  const auto bug = [&](std::string_view why) {
    return std::logic_error("metric " + std::string(name) + ": " + std::string(why));
  };
  std::vector<std::string> label_names;
  for (const auto& [label, value] : labels) {
    if (!valid_name(label, false) || label == "le") throw bug("bad label name " + label);
    label_names.push_back(label);
  }
  auto found = families_.find(name);
  if (found == families_.end()) {
    if (!valid_name(name, true)) throw bug("bad name");
    auto family = std::make_unique<Family>();
    family->type = type;
    family->help = help;
    family->label_names = label_names;
    found = families_.emplace(std::string(name), std::move(family)).first;
  }
  Family& family = *found->second;
  if (family.type != type) throw bug("already registered as a " + family.type);
  if (family.label_names != label_names) throw bug("registered with other labels");
  const std::string key = render_labels(labels);
  if (family.series.size() >= kMaxSeries && !family.series.contains(key)) {
    throw bug("more than " + std::to_string(kMaxSeries) + " series");
  }
  return family.series[key];
}

namespace {
// The value of a series, made at its first use.
template <class Metric, class Series, class... Args>
Metric& value_of(Series& series, Args&&... args) {
  using Pointer = std::unique_ptr<Metric>;
  if (std::holds_alternative<std::monostate>(series.value)) {
    series.value = std::make_unique<Metric>(std::forward<Args>(args)...);
  }
  if (!std::holds_alternative<Pointer>(series.value)) {
    throw std::logic_error("a series that is read from elsewhere cannot be counted");
  }
  return *std::get<Pointer>(series.value);
}
}  // namespace

Counter& MetricsRegistry::counter(std::string_view name, std::string_view help,
                                  const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return value_of<Counter>(series(name, help, "counter", labels));
}

Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return value_of<Gauge>(series(name, help, "gauge", labels));
}

Histogram& MetricsRegistry::histogram(std::string_view name, std::string_view help,
                                      std::vector<double> bounds, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  return value_of<Histogram>(series(name, help, "histogram", labels), std::move(bounds));
}

void MetricsRegistry::counter_from(std::string_view name, std::string_view help,
                                   const Labels& labels, std::function<std::uint64_t()> read) {
  const std::lock_guard lock(mutex_);
  series(name, help, "counter", labels).value = std::move(read);
}

void MetricsRegistry::gauge_from(std::string_view name, std::string_view help, const Labels& labels,
                                 std::function<double()> read) {
  const std::lock_guard lock(mutex_);
  series(name, help, "gauge", labels).value = std::move(read);
}

void MetricsRegistry::forget(std::string_view name, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  const auto family = families_.find(name);
  if (family == families_.end()) return;
  const auto found = family->second->series.find(render_labels(labels));
  if (found == family->second->series.end()) return;
  const auto& value = found->second.value;
  if (std::holds_alternative<std::function<std::uint64_t()>>(value) ||
      std::holds_alternative<std::function<double()>>(value)) {
    family->second->series.erase(found);
  }
}

std::string MetricsRegistry::render() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out += "# HELP " + name + " ";
    append_escaped(out, family->help, false);
    out += "\n# TYPE " + name + " " + family->type + "\n";
    for (const auto& [labels, one] : family->series) {
      if (auto* counter = std::get_if<std::unique_ptr<Counter>>(&one.value)) {
        append_sample(out, name, "", labels, std::to_string((*counter)->value()));
      } else if (auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&one.value)) {
        append_sample(out, name, "", labels, number((*gauge)->value()));
      } else if (auto* whole = std::get_if<std::function<std::uint64_t()>>(&one.value)) {
        append_sample(out, name, "", labels, std::to_string((*whole)()));
      } else if (auto* real = std::get_if<std::function<double()>>(&one.value)) {
        append_sample(out, name, "", labels, number((*real)()));
      } else if (auto* histogram = std::get_if<std::unique_ptr<Histogram>>(&one.value)) {
        const auto snapshot = (*histogram)->snapshot();
        const auto& bounds = (*histogram)->bounds();
        for (std::size_t i = 0; i <= bounds.size(); ++i) {
          std::string with_bound = labels.empty() ? "" : labels + ",";
          with_bound += "le=\"" + (i < bounds.size() ? number(bounds[i]) : "+Inf") + "\"";
          append_sample(out, name, "_bucket", with_bound, std::to_string(snapshot.cumulative[i]));
        }
        append_sample(out, name, "_sum", labels, number(snapshot.sum));
        append_sample(out, name, "_count", labels, std::to_string(snapshot.cumulative.back()));
      }
    }
  }
  return out;
}

}  // namespace fixpoint
