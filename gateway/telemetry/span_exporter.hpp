// Spans to an OpenTelemetry collector: OTLP over HTTP with JSON bodies.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/telemetry/trace.hpp"

namespace fixpoint {

// One span of a request that was served. Empty strings, zero counts and statuses are left out.
// Never holds prompts or answers.
struct Span {
  TraceId trace;
  SpanId span, parent;  // parent unset: the trace begins with this span
  std::string state;    // tracestate
  std::string name;     // "POST /v1/chat/completions"
  std::chrono::system_clock::time_point start, end;
  bool failed = false;

  // HTTP: attributes http.request.method, url.path, http.response.status_code, error.type.
  std::string method, path;
  int status = 0;
  std::string error_type;  // "timeout", "429"; with `failed`
  // Generations: attributes gen_ai.operation.name, gen_ai.provider.name, gen_ai.request.model,
  // gen_ai.response.model, gen_ai.response.id, gen_ai.response.finish_reasons,
  // gen_ai.usage.input_tokens, gen_ai.usage.output_tokens.
  std::string operation, provider, request_model, response_model, response_id;
  std::vector<std::string> finish_reasons;
  bool has_usage = false;
  std::uint64_t input_tokens = 0, output_tokens = 0;
  // The gateway's own: fixpoint.cache.result, fixpoint.request.id, fixpoint.upstream.request.id,
  // fixpoint.tenant, fixpoint.upstream, fixpoint.attempt.
  std::string cache_result, request_id, upstream_request_id, tenant, upstream;
  std::uint32_t attempt = 0;
};

// The body of an export request: an ExportTraceServiceRequest in OTLP's JSON encoding.
std::string otlp_json(const std::vector<Span>& spans, const std::string& service_name);

// Collects spans and sends them from a thread of its own, every `interval` or when kBatch wait. A
// collector that is away, slow or refuses costs the spans of that batch, which are counted.
// Thread-safe.
class SpanExporter {
 public:
  static constexpr std::size_t kBatch = 512;                  // spans of one export request
  static constexpr std::size_t kMaxQueue = 8 * 1024;          // spans; beyond, new ones are dropped
  static constexpr std::chrono::seconds kExportTimeout{5};    // for one export request
  static constexpr std::chrono::seconds kShutdownTimeout{2};  // for the last spans

  // Precondition: config.otlp_endpoint is not empty. Throws std::runtime_error for a bad URL (the
  // configuration was checked) or without a thread.
  explicit SpanExporter(const TelemetryConfig& config);
  // Sends what waits, for at most kShutdownTimeout.
  ~SpanExporter();

  // A lock and a move: returns at once. Spans of traces that are not sampled
  // (TraceContext::sampled) are not for here.
  void add(Span span);

  std::uint64_t exported() const;  // spans that a collector accepted
  std::uint64_t dropped() const;   // the queue was full
  std::uint64_t failed() const;    // the collector was away, or refused

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint
