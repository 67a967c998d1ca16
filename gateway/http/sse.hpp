// Server-sent events (WHATWG HTML, section 9.2), parsed on bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint {

struct SseEvent {
  std::string event;  // empty: "message"
  std::string data;   // lines joined by LF
};

// Feeds on bytes split anywhere; LF, CRLF and CR end lines; a leading BOM and comments are skipped;
// an event without data is dropped; an unfinished event at the end of the stream is dropped, as the
// specification says.
class SseParser {
 public:
  explicit SseParser(std::size_t max_event_bytes = 16u << 20);
  // Appends the events that became complete. Errors: protocol, when an event exceeds the limit.
  Result<void> feed(std::string_view bytes, std::vector<SseEvent>& events);
  bool mid_event() const;  // bytes of an unfinished event are pending
  // The data of the event that the end of the stream left unfinished.
  std::string unfinished_data() const;

 private:
  void end_line(std::vector<SseEvent>& events);
  void field(std::string_view line);

  std::size_t max_event_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false, skip_lf_ = false, at_start_ = true;
  std::size_t pending_ = 0;
};

// "data: ...\n\n"; each line of data gets its own prefix.
void append_sse(std::string& out, std::string_view data, std::string_view event = {});

}  // namespace fixpoint
