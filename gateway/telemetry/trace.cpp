#include "gateway/telemetry/trace.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace fixpoint {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Random bytes from the kernel, taken in blocks: a system call per id would cost more than the rest
// of it.
class RandomBlock {
 public:
  std::uint8_t next() {
    if (used_ == bytes_.size()) {
      // Blocks of at most 256 bytes are never cut short (getrandom(2)).
      if (::getrandom(bytes_.data(), bytes_.size(), 0) != static_cast<ssize_t>(bytes_.size())) {
        throw std::runtime_error("the kernel gives no random numbers");
      }
      used_ = 0;
    }
    return bytes_[used_++];
  }

 private:
  std::array<std::uint8_t, 256> bytes_;
  std::size_t used_ = bytes_.size();
};

template <class Id>
Id new_id() {
  thread_local RandomBlock random;
  Id id;
  do {
    for (std::size_t i = 0; i < id.digits.size(); i += 2) {
      const std::uint8_t byte = random.next();
      id.digits[i] = kDigits[byte >> 4];
      id.digits[i + 1] = kDigits[byte & 15];
    }
  } while (!id.is_set());
  return id;
}

// Lower-case hex digits, not all zero.
template <class Id>
bool read_id(std::string_view text, Id& id) {
  for (const char c : text) {
    if (hex_value(c) < 0) return false;
  }
  std::copy(text.begin(), text.end(), id.digits.begin());
  return id.is_set();
}

}  // namespace

TraceId new_trace_id() {
  return new_id<TraceId>();
}

SpanId new_span_id() {
  return new_id<SpanId>();
}

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  constexpr std::size_t kLength = 55;  // 2 + 1 + 32 + 1 + 16 + 1 + 2
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  const int high = hex_value(text[0]), low = hex_value(text[1]);
  const int flags_high = hex_value(text[53]), flags = hex_value(text[54]);
  if (high < 0 || low < 0 || flags_high < 0 || flags < 0) return std::nullopt;
  const int version = high * 16 + low;
  const bool longer = text.size() > kLength;
  if (version == 0xff || (longer && (version == 0 || text[kLength] != '-'))) return std::nullopt;
  TraceParent parent;
  if (!read_id(text.substr(3, 32), parent.trace)) return std::nullopt;
  if (!read_id(text.substr(36, 16), parent.span)) return std::nullopt;
  parent.sampled = (flags & 1) != 0;
  return parent;
}

TraceContext begin_trace(const Headers& request) {
  TraceContext context;
  context.span = new_span_id();
  const std::string* field = request.find("traceparent");
  const bool one = field != nullptr && request.count("traceparent") == 1;
  const auto parent = one ? parse_traceparent(*field) : std::nullopt;
  if (!parent) {
    context.trace = new_trace_id();
    return context;
  }
  context.trace = parent->trace;
  context.parent = parent->span;
  context.sampled = parent->sampled;
  for (const Header& header : request) {
    if (header.value.empty() || !equal_ignoring_case(header.name, "tracestate")) continue;
    if (!context.state.empty()) context.state += ',';
    context.state += header.value;
  }
  return context;
}

void set_trace_headers(const TraceContext& context, const SpanId& span, Headers& call) {
  std::string parent = "00-";
  parent.append(context.trace.text()).append("-").append(span.text());
  parent.append(context.sampled ? "-01" : "-00");
  call.set("traceparent", std::move(parent));
  if (context.state.empty()) {
    call.remove("tracestate");
  } else {
    call.set("tracestate", context.state);
  }
}

}  // namespace fixpoint
