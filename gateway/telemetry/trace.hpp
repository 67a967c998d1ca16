// W3C Trace Context (https://www.w3.org/TR/trace-context/): which trace a request belongs to, and
// what the calls made for it say about that.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/http/types.hpp"

namespace fixpoint {

// An id as lower-case hex digits, the form of every header and export. All '0': none.
template <std::size_t kDigits>
struct HexId {
  std::array<char, kDigits> digits;
  HexId() { digits.fill('0'); }
  std::string_view text() const { return {digits.data(), digits.size()}; }
  bool is_set() const { return text().find_first_not_of('0') != std::string_view::npos; }
  bool operator==(const HexId&) const = default;
};
using TraceId = HexId<32>;
using SpanId = HexId<16>;

// From the kernel's random numbers, so that gateways that know nothing of each other do not meet;
// never the unset one. Thread-safe.
TraceId new_trace_id();
SpanId new_span_id();

struct TraceParent {
  TraceId trace;
  SpanId span;
  bool sampled = false;
};
// A traceparent field: "00-<32 hex>-<16 hex>-<2 hex>". Upper case, ids of zeros, version ff and,
// for version 00, any other length are malformed; a later version may have more after another '-'.
std::optional<TraceParent> parse_traceparent(std::string_view text);

// The trace of one request to the gateway.
struct TraceContext {
  TraceId trace;
  SpanId parent;  // the caller's span; unset: the trace begins here
  SpanId span;    // the gateway's own span for this request
  bool sampled = true;
  std::string state;  // the caller's tracestate, to be passed on as it came
};
// Continues the caller's trace; begins one where there is no traceparent, a malformed one or more
// than one. tracestate counts only together with a good traceparent.
TraceContext begin_trace(const Headers& request);

// Sets traceparent and tracestate on a call that the gateway makes for the request; `span` is the
// id of the call's own span. Fields of these names that were there are replaced.
void set_trace_headers(const TraceContext& context, const SpanId& span, Headers& call);

}  // namespace fixpoint
