#include "gateway/gateway.hpp"

#include <stdexcept>
#include <utility>

#include "gateway/api/job.hpp"
#include "gateway/log.hpp"
#include "gateway/telemetry/process_metrics.hpp"

namespace fixpoint {
namespace {

UpstreamHealth health_of(const std::weak_ptr<Upstream>& weak) {
  UpstreamHealth health;
  const auto upstream = weak.lock();
  if (!upstream) return health;
  switch (upstream->breaker.phase()) {
    case CircuitBreaker::Phase::closed:
      health.breaker = UpstreamHealth::Breaker::closed;
      break;
    case CircuitBreaker::Phase::half_open:
      health.breaker = UpstreamHealth::Breaker::half_open;
      break;
    case CircuitBreaker::Phase::open:
      health.breaker = UpstreamHealth::Breaker::open;
      break;
  }
  health.in_flight = upstream->admission.running();
  health.queued = upstream->admission.queued();
  return health;
}

}  // namespace

Gateway::Gateway(Config configuration, Cores& all_cores) : cores(all_cores) {
  install(std::make_shared<const Settings>(std::move(configuration), cores, metrics, nullptr));
  add_process_metrics(registry);
  registry.gauge_from("fixpoint_flights", "Answers being made that several requests may share.", {},
                      [this] { return static_cast<double>(flights.size()); });
  registry.counter_from("fixpoint_cache_write_failures_total", "Answers that could not be stored.",
                        {}, [this] { return store ? store->failed_writes() : 0; });
  registry.counter_from("fixpoint_log_write_failures_total",
                        "Generations that could not be logged.", {},
                        [this] { return log ? log->failed_writes() : 0; });
  registry.counter_from("fixpoint_log_redaction_gave_up_total",
                        "Answers that the log keeps without text: a pattern took too long.", {},
                        [this] { return log ? log->counters().redaction_gave_up : 0; });
  registry.counter_from("fixpoint_spans_exported_total", "Spans that the collector took.", {},
                        [this] { return spans ? spans->exported() : 0; });
  constexpr const char* kLost = "fixpoint_spans_lost_total";
  constexpr const char* kLostHelp =
      "Spans lost: the queue was full, or the collector was away or refused them.";
  registry.counter_from(kLost, kLostHelp, {{"reason", "queue_full"}},
                        [this] { return spans ? spans->dropped() : 0; });
  registry.counter_from(kLost, kLostHelp, {{"reason", "not_taken"}},
                        [this] { return spans ? spans->failed() : 0; });
}

Result<void> Gateway::reload(Config configuration) {
  try {
    auto fresh = std::make_shared<const Settings>(std::move(configuration), cores, metrics,
                                                  settings().get());
    if (tenants) {
      if (auto set = tenants->set_prices(fresh->config.prices); !set) return set;
    }
    install(std::move(fresh));
  } catch (const std::runtime_error& error) {
    return fail(ErrorCode::invalid, error.what());
  }
  return {};
}

void Gateway::install(SettingsPtr fresh) {
  const auto old = settings();
  for (const auto& upstream : fresh->config.upstreams) {
    const auto current = fresh->find_upstream(upstream.name);
    current->enforce_limits();
    const std::weak_ptr<Upstream> weak = current;
    metrics.watch_upstream(upstream.name, [weak] { return health_of(weak); });
  }
  for (std::size_t i = 0; old && i < old->config.upstreams.size(); ++i) {
    const auto& name = old->config.upstreams[i].name;
    if (!fresh->find_upstream(name)) metrics.forget_upstream(name);
  }
  const std::lock_guard lock(settings_mutex_);
  settings_ = std::move(fresh);
}

engine::Engine* Gateway::find_engine(std::string_view name) const {
  const auto found = engines.find(name);
  return found == engines.end() ? nullptr : found->second.get();
}

void Gateway::generation_ended(const AnswerJob& job) {
  const auto& record = job.record;
  GenerationCounts counts;
  const double seconds = record.total_ms / 1000;
  const bool cancelled = record.finish_reason == "error: cancelled";
  // Other failures are counted by the request that is told of them, with the status that it gets.
  if (cancelled || !record.finish_reason.starts_with("error: ")) counts.seconds = seconds;
  if (cancelled) counts.status = 499;
  if (job.first_token != std::chrono::steady_clock::time_point{}) {
    counts.first_token_seconds = record.first_token_ms / 1000;
  }
  counts.prompt_tokens = record.prompt_tokens;
  counts.completion_tokens = record.completion_tokens;
  metrics.generation(record.provider, record.route)->count(job.endpoint, counts);
  const auto source = record.attempts > 0 ? AnswerSource::upstream : AnswerSource::local;
  const double waited = std::chrono::duration<double>(job.waited).count();
  metrics.count_overhead(source, std::max(0.0, seconds - waited));
  if (source == AnswerSource::upstream) {
    const auto drift =
        fingerprints->observe(record.provider, record.requested_model, record.fingerprint);
    if (drift) {
      log_warning("the fingerprint of model '" + drift->model + "' at '" + drift->provider +
                  "' changed: the backend that answers is another one");
      registry
          .counter("fixpoint_fingerprint_changes_total",
                   "New system_fingerprints of hosted models: their backend changed.",
                   {{"upstream", drift->provider}})
          .add();
    }
  }
}

void Gateway::log_generation(GenerationRecord record) {
  if (log) log->append(std::move(record));
}

}  // namespace fixpoint
