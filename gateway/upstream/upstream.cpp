#include "gateway/upstream/upstream.hpp"

#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "gateway/log.hpp"
#include "gateway/upstream/tls.hpp"

namespace fixpoint {
namespace {

UpstreamOptions client_options(const UpstreamConfig& config) {
  UpstreamOptions options;
  options.base_url = config.base_url;
  options.proxy = config.proxy;
  options.ca_file = config.ca_file;
  options.verify_tls = config.verify_tls;
  options.max_idle_connections = config.max_idle_connections;
  options.max_connections = config.max_connections;
  options.idle_ttl = config.idle_ttl;
  options.connect_timeout = config.connect_timeout;
  options.first_byte_timeout = config.first_byte_timeout;
  options.between_bytes_timeout = config.between_bytes_timeout;
  options.total_timeout = config.total_timeout;
  options.max_response_bytes = config.max_response_bytes;
  return options;
}

AdmissionOptions admission_options(const UpstreamConfig& config) {
  return {config.name, config.max_concurrency, config.max_queue, config.queue_timeout};
}

bool is_same_place(const UpstreamConfig& a, const UpstreamConfig& b) {
  return a.base_url == b.base_url && a.proxy == b.proxy;
}

std::optional<KeyRing> key_ring(const UpstreamConfig& config) {
  if (!config.api_keys.empty()) return std::optional<KeyRing>(std::in_place, config.api_keys);
  if (config.api_key.empty()) return std::nullopt;
  return std::optional<KeyRing>(std::in_place, std::vector<std::string>{config.api_key});
}

}  // namespace

Upstream::Upstream(const UpstreamConfig& configuration, Cores& cores, RequestMetrics& all_metrics,
                   const Upstream* previous)
    : config(configuration),
      admission(previous && is_same_place(previous->config, config)
                    ? previous->admission
                    : Admission(admission_options(config))),
      breaker(config.breaker_failures, config.breaker_cooldown),
      keys(key_ring(config)),
      metrics(*all_metrics.upstream(config.name)),
      cores_(cores),
      ca_digest_(ca_digest(config.ca_file)) {
  const auto options = client_options(config);
  for (std::size_t core = 0; core < cores.size(); ++core) {
    clients_.push_back(std::make_unique<UpstreamClient>(cores.context(core), options));
  }
}

Upstream::~Upstream() {
  for (std::size_t core = 0; core < clients_.size(); ++core) {
    net::post(cores_.context(core), [client = std::move(clients_[core])] {});
  }
}

void Upstream::enforce_limits() {
  admission.set_limits(admission_options(config));
}

bool Upstream::is_current(const UpstreamConfig& configuration) const {
  return config == configuration && ca_digest(config.ca_file) == ca_digest_;
}

UpstreamClient& Upstream::client(const net::io_context& core) {
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    if (&cores_.context(i) == &core) return *clients_[i];
  }
  throw std::logic_error("client() called outside the gateway's cores");
}

std::string_view Upstream::model_name(std::string_view requested) const {
  for (const auto& [glob, name] : config.model_names) {
    if (glob_matches(glob, requested)) return name;
  }
  return requested;
}

bool Upstream::refuses_logprobs(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  return without_logprobs_.find(model) != without_logprobs_.end();
}

void Upstream::remember_refused_logprobs(std::string_view model) {
  const std::lock_guard lock(mutex_);
  if (without_logprobs_.size() < kMaxRemembered) without_logprobs_.emplace(model);
}

void Upstream::warn_of_missing_usage() {
  if (warned_of_usage_.exchange(true)) return;
  log_warning("upstream '" + config.name +
              "' answers without usage: tokens are estimated from the text");
}

void Upstream::warn_of_unstored() {
  if (warned_of_unstored_.exchange(true)) return;
  log_warning("upstream '" + config.name +
              "' sends streams that cannot be put together for certain: they are not stored");
}

}  // namespace fixpoint
