// One request from its arrival to the end of its answer, as metrics, the access log and traces tell
// of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "gateway/http/server.hpp"
#include "gateway/telemetry/request_metrics.hpp"
#include "gateway/telemetry/trace.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

struct Gateway;

// Counts and logs when it is destroyed: also when the client's leaving cancelled the handler. Used
// by one coroutine.
class Exchange {
 public:
  Exchange(Gateway& gateway, const Request& request, RequestKind kind);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const std::string id;             // x-request-id, unless the upstream's is passed on
  std::string upstream_request_id;  // that one
  const RequestKind kind;
  TenantPtr tenant;
  std::string model;     // as requested
  std::string upstream;  // who was asked last; "local" for an engine
  std::string response_model, finish_reason, generation;
  int status = 499;  // until something was answered: the client left, in the words of nginx
  std::optional<CacheResult> cache;
  int attempts = -1;
  std::int64_t prompt_tokens = -1, completion_tokens = -1;
  std::int64_t cost_microdollars = -1;
  std::uint64_t bytes_out = 0;
  std::chrono::steady_clock::time_point first_byte{};
  std::optional<TraceContext> trace;  // of a request for an answer

  // Counts the failure of a generation that was made for this request; `route`: its route's model.
  void generation_failed(std::string_view route, int failed_with) const;
  void answered_bytes(std::size_t count) {
    if (count == 0) return;
    if (bytes_out == 0) first_byte = std::chrono::steady_clock::now();
    bytes_out += count;
  }

 private:
  void log(std::chrono::nanoseconds duration) const;
  void export_span() const;

  Gateway& gateway_;
  const Request& request_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  const std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
};

}  // namespace fixpoint
