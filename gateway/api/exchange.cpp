#include "gateway/api/exchange.hpp"

#include "gateway/api/job.hpp"
#include "gateway/gateway.hpp"
#include "gateway/log.hpp"
#include "gateway/telemetry/access_log.hpp"

namespace fixpoint {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::size_t kMaxSpanPath = 256;  // bytes

}  // namespace

Exchange::Exchange(Gateway& gateway, const Request& request, RequestKind request_kind)
    : id("req-" + random_hex(24)), kind(request_kind), gateway_(gateway), request_(request) {
  const bool told = gateway.spans || log_enabled(LogLevel::info);  // ids cost a system call
  if (told && request_kind <= RequestKind::count_tokens) trace = begin_trace(request.headers);
}

Exchange::~Exchange() {
  const auto took = steady_clock::now() - started_;
  gateway_.metrics.count_request(kind, status, duration<double>(took).count());
  if (cache) gateway_.metrics.count_cache(*cache);
  if (cache == CacheResult::hit && attempts < 0) {  // not after upstreams that failed
    gateway_.metrics.count_overhead(AnswerSource::cache, duration<double>(took).count());
  }
  if (log_enabled(LogLevel::info)) log(took);
  if (gateway_.spans && trace && trace->sampled) export_span();
}

void Exchange::generation_failed(std::string_view route, int failed_with) const {
  GenerationCounts counts;
  counts.status = failed_with;
  counts.seconds = duration<double>(steady_clock::now() - started_).count();
  gateway_.metrics.generation(upstream, route)->count(static_cast<Endpoint>(kind), counts);
}

void Exchange::log(std::chrono::nanoseconds took) const {
  AccessRecord record;
  record.id = id;
  record.upstream_request_id = upstream_request_id;
  record.generation = generation;
  record.peer = request_.peer;
  if (tenant) record.tenant = tenant->key.id;
  record.method = request_.method;
  record.path = request_.path;
  record.endpoint = to_string(kind);
  record.model = model;
  record.upstream = upstream;
  record.status = status;
  record.duration = took;
  if (first_byte != steady_clock::time_point{}) record.first_byte = first_byte - started_;
  record.bytes_in = request_.body.size();
  record.bytes_out = bytes_out;
  if (cache) record.cache = to_string(*cache);
  record.attempts = attempts;
  record.prompt_tokens = prompt_tokens;
  record.completion_tokens = completion_tokens;
  if (cost_microdollars >= 0) record.cost = static_cast<double>(cost_microdollars) / 1e6;
  if (trace) record.trace_id = trace->trace.text();
  log_access(record);
}

void Exchange::export_span() const {
  Span span;
  span.trace = trace->trace;
  span.span = trace->span;
  span.parent = trace->parent;
  span.state = trace->state;
  // Thousands of spans may wait for a collector.
  const std::string path = request_.path.substr(0, kMaxSpanPath);
  span.name = request_.method + " " + path;
  span.start = started_at_;
  span.end = std::chrono::system_clock::now();
  span.failed = status >= 500;  // a client's error is none of the server's span
  if (span.failed) span.error_type = std::to_string(status);
  span.method = request_.method;
  span.path = path;
  span.status = status;
  if (kind <= RequestKind::count_tokens) {
    span.operation = operation_name(static_cast<Endpoint>(kind));
    span.provider = upstream;
    span.request_model = without_secrets(model);  // the client's text, which upstreams repeat
    span.response_model = without_secrets(response_model);
    if (!finish_reason.empty()) span.finish_reasons.push_back(finish_reason);
    span.response_id = generation;
    span.has_usage = prompt_tokens >= 0;
    if (span.has_usage) {
      span.input_tokens = static_cast<std::uint64_t>(prompt_tokens);
      span.output_tokens = static_cast<std::uint64_t>(completion_tokens);
    }
  }
  if (cache) span.cache_result = to_string(*cache);
  span.request_id = id;
  span.upstream_request_id = upstream_request_id;
  if (tenant) span.tenant = tenant->key.id;
  span.upstream = upstream;
  span.attempt = attempts > 0 ? static_cast<std::uint32_t>(attempts) : 0;
  gateway_.spans->add(std::move(span));
}

}  // namespace fixpoint
