#include "gateway/http/sse.hpp"

#include <algorithm>

namespace fixpoint {
namespace {

constexpr std::string_view kBom = "\xEF\xBB\xBF";

// The first CR or LF. Two searches for one byte each are many times faster than one for either.
std::size_t find_line_end(std::string_view text) {
  const std::size_t lf = text.find('\n');
  const std::size_t cr = text.substr(0, lf).find('\r');
  return cr != std::string_view::npos ? cr : lf;
}

}  // namespace

SseParser::SseParser(std::size_t max_event_bytes) : max_event_bytes_(max_event_bytes) {}

Result<void> SseParser::feed(std::string_view bytes, std::vector<SseEvent>& events) {
  while (!bytes.empty()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = find_line_end(bytes);
    const std::string_view piece = bytes.substr(0, end);
    if (piece.size() > max_event_bytes_ - std::min(max_event_bytes_, pending_)) {
      return fail(ErrorCode::protocol, "a server-sent event exceeds the limit of " +
                                           std::to_string(max_event_bytes_) + " bytes");
    }
    line_ += piece;
    pending_ += piece.size();
    if (end == std::string_view::npos) return {};
    // A CR ends the line at once; if an LF follows, it belongs to the same line end.
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(events);
  }
  return {};
}

void SseParser::end_line(std::vector<SseEvent>& events) {
  std::string_view line = line_;
  if (at_start_ && line.starts_with(kBom)) line.remove_prefix(kBom.size());
  at_start_ = false;
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(event_));
    event_ = SseEvent{};
    has_data_ = false;
    pending_ = 0;
  } else {
    field(line);
  }
  line_.clear();
}

void SseParser::field(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);  // empty: a comment
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (name == "event") {
    event_.event.assign(value);
  } else {
    // id and retry mean nothing here, since nobody reconnects; unknown names are ignored. Their
    // bytes are not kept, so they need no room.
    pending_ -= std::min(pending_, line.size());
  }
}

bool SseParser::mid_event() const {
  return pending_ > 0;
}

std::string SseParser::unfinished_data() const {
  SseParser rest = *this;
  std::vector<SseEvent> events;
  (void)rest.feed("\n\n", events);  // no bytes that could exceed a limit
  return events.empty() ? std::string() : std::move(events.back().data);
}

void append_sse(std::string& out, std::string_view data, std::string_view event) {
  if (!event.empty()) {
    out += "event: ";
    out += event;
    out += '\n';
  }
  for (;;) {
    const std::size_t end = find_line_end(data);
    out += "data: ";
    out += data.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) break;
    const bool crlf = data.substr(end, 2) == "\r\n";
    data.remove_prefix(end + (crlf ? 2 : 1));
  }
  out += '\n';
}

}  // namespace fixpoint
