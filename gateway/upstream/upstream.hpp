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
//
// A reload that changes anything about an upstream makes a new version of it. Its calls, running
// and waiting, stay the upstream's, so both versions share one Admission, unless it is at another
// address now: calls that hang at the old one are none of the new one's. What the old one learned
// (breaker, resting keys, connections, refused log-probabilities) was about another address or
// account, or is what the change is meant to mend: the new one begins without it.
class Upstream {
 public:
  // `previous`: the version before, or null. Throws std::runtime_error for a CA file that cannot be
  // read.
  Upstream(const UpstreamConfig& configuration, Cores& cores, RequestMetrics& all_metrics,
           const Upstream* previous = nullptr);
  // Hands each client to its own core to be destroyed there.
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  const UpstreamConfig config;
  Admission admission;
  CircuitBreaker breaker;
  std::optional<KeyRing> keys;  // empty: the client's own key passes through
  UpstreamMetrics& metrics;

  // It is in force from here on: the shared Admission gets its limits.
  void enforce_limits();
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
  // Once: it sends streams that cannot be put together for certain, so the cache lacks them.
  void warn_of_unstored();

 private:
  static constexpr std::size_t kMaxRemembered = 1024;  // models

  Cores& cores_;
  const std::string ca_digest_;
  std::vector<std::unique_ptr<UpstreamClient>> clients_;  // by core
  std::atomic<bool> warned_of_usage_{false}, warned_of_unstored_{false};
  mutable std::mutex mutex_;
  std::set<std::string, std::less<>> without_logprobs_;
};
using UpstreamPtr = std::shared_ptr<Upstream>;

}  // namespace fixpoint
