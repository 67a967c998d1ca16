// One configured upstream at run time: its clients, one per core, and what all cores share about
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/http/server.hpp"
#include "gateway/telemetry/request_metrics.hpp"
#include "gateway/upstream/admission.hpp"
#include "gateway/upstream/breaker.hpp"
#include "gateway/upstream/client.hpp"
#include "gateway/upstream/key_ring.hpp"

namespace fixpoint {

// Thread-safe. Kept by everybody who uses it; the cores and the metrics must outlive it.
class Upstream {
 public:
  // Throws std::runtime_error for a CA file that cannot be read.
  Upstream(const UpstreamConfig& configuration, Cores& cores, RequestMetrics& all_metrics);
  // Hands each client to its own core to be destroyed there.
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  const UpstreamConfig config;
  Admission admission;
  CircuitBreaker breaker;
  std::optional<KeyRing> keys;  // empty: the client's own key passes through
  UpstreamMetrics& metrics;

  // Whether it is what this configuration and its CA file, as it is now, would make.
  bool is_current(const UpstreamConfig& configuration) const;
  // Precondition: called on one of the cores.
  UpstreamClient& client(const net::io_context& core);
  // The model's name here: config.model_names, first match, else the name itself.
  std::string_view model_name(std::string_view requested) const;

  // Models that refused log-probabilities which the gateway had asked for on its own account.
  bool refuses_logprobs(std::string_view model) const;
  void remember_refused_logprobs(std::string_view model);
  // Once: its answers have no usage, so what they cost is an estimate.
  void warn_of_missing_usage();

 private:
  static constexpr std::size_t kMaxRemembered = 1024;  // models

  Cores& cores_;
  const std::string ca_digest_;
  std::vector<std::unique_ptr<UpstreamClient>> clients_;  // by core
  std::atomic<bool> warned_of_usage_{false};
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> without_logprobs_;
};
using UpstreamPtr = std::shared_ptr<Upstream>;

}  // namespace fixpoint
