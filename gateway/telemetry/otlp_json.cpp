// Spans in OTLP's JSON encoding: ids in hex, 64-bit numbers as strings, enumerations as numbers.
#include <algorithm>

#include "gateway/safe_text.hpp"
#include "gateway/telemetry/span_exporter.hpp"
#include "gateway/version.hpp"

namespace fixpoint {
namespace {

// The attributes of one object; those without a value are left out.
class Attributes {
 public:
  explicit Attributes(std::string& out) : out_(out) { out_ += "\"attributes\":["; }

  void text(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    begin(key);
    out_ += "{\"stringValue\":";
    append_json_string(out_, value);
    out_ += "}}";
  }

  void number(std::string_view key, std::uint64_t value) {
    begin(key);
    out_ += "{\"intValue\":\"";
    out_ += std::to_string(std::min<std::uint64_t>(value, INT64_MAX));
    out_ += "\"}}";
  }

  void texts(std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    begin(key);
    out_ += "{\"arrayValue\":{\"values\":[";
    for (std::size_t i = 0; i < values.size(); ++i) {
      out_ += i == 0 ? "{\"stringValue\":" : ",{\"stringValue\":";
      append_json_string(out_, values[i]);
      out_ += '}';
    }
    out_ += "]}}}";
  }

  void end() { out_ += ']'; }

 private:
  void begin(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    out_.append("{\"key\":\"").append(key).append("\",\"value\":");
  }

  std::string& out_;
  bool first_ = true;
};

std::string nanoseconds(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

std::string error_type(const Span& span) {
  if (!span.failed) return {};
  if (!span.error_type.empty()) return span.error_type;
  return span.status >= 400 ? std::to_string(span.status) : "_OTHER";
}

void append_attributes(std::string& out, const Span& span) {
  Attributes attributes(out);
  attributes.text("http.request.method", span.method);
  attributes.text("url.path", span.path);
  if (span.status != 0) {
    attributes.number("http.response.status_code", static_cast<std::uint64_t>(span.status));
  }
  attributes.text("error.type", error_type(span));
  attributes.text("gen_ai.operation.name", span.operation);
  attributes.text("gen_ai.provider.name", span.provider);
  attributes.text("gen_ai.request.model", span.request_model);
  attributes.text("gen_ai.response.model", span.response_model);
  attributes.text("gen_ai.response.id", span.response_id);
  attributes.texts("gen_ai.response.finish_reasons", span.finish_reasons);
  if (span.has_usage) {
    attributes.number("gen_ai.usage.input_tokens", span.input_tokens);
    attributes.number("gen_ai.usage.output_tokens", span.output_tokens);
  }
  attributes.text("fixpoint.cache.result", span.cache_result);
  attributes.text("fixpoint.request.id", span.request_id);
  attributes.text("fixpoint.upstream.request.id", span.upstream_request_id);
  attributes.text("fixpoint.tenant", span.tenant);
  attributes.text("fixpoint.upstream", span.upstream);
  if (span.attempt != 0) attributes.number("fixpoint.attempt", span.attempt);
  attributes.end();
}

void append_span(std::string& out, const Span& span) {
  out.append("{\"traceId\":\"").append(span.trace.text());
  out.append("\",\"spanId\":\"").append(span.span.text()).append("\",");
  if (span.parent.is_set()) {
    out.append("\"parentSpanId\":\"").append(span.parent.text()).append("\",");
  }
  if (!span.state.empty()) {
    out += "\"traceState\":";
    append_json_string(out, span.state);
    out += ',';
  }
  out += "\"name\":";
  append_json_string(out, span.name);
  out.append(",\"kind\":2");  // SPAN_KIND_SERVER
  out.append(",\"startTimeUnixNano\":\"").append(nanoseconds(span.start));
  out.append("\",\"endTimeUnixNano\":\"").append(nanoseconds(span.end)).append("\",");
  append_attributes(out, span);
  if (span.failed) out += ",\"status\":{\"code\":2}";  // STATUS_CODE_ERROR
  out += '}';
}

}  // namespace

std::string otlp_json(const std::vector<Span>& spans, const std::string& service_name) {
  std::string out = "{\"resourceSpans\":[{\"resource\":{";
  Attributes resource(out);
  resource.text("service.name", service_name);
  resource.text("service.version", kVersion);
  resource.end();
  out += "},\"scopeSpans\":[{\"scope\":{\"name\":\"fixpoint\",\"version\":";
  append_json_string(out, kVersion);
  out += "},\"spans\":[";
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (i > 0) out += ',';
    append_span(out, spans[i]);
  }
  out += "]}]}]}";
  return out;
}

}  // namespace fixpoint
