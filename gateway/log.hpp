// The process's own log, on stderr: one line per message, as text or JSON.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"

namespace fixpoint {

// Sets the level, the format and the strings that no message may show: each occurrence of one
// becomes "***". Strings shorter than 8 bytes are not hidden (they would blank out ordinary words).
// Without it: info, text, nothing hidden. Thread-safe.
void init_log(LogLevel level, std::vector<std::string> secrets = {},
              LogFormat format = LogFormat::text);
// For a reload, in this order: hides further strings (those before stay hidden: what began with an
// old key still knows it), then changes the rest. Thread-safe.
void hide_in_log(std::vector<std::string> secrets);
void set_log(LogLevel level, LogFormat format);

bool log_enabled(LogLevel level);
LogFormat log_format();
// The text with the strings that init_log() was given replaced. Thread-safe.
std::string without_secrets(std::string_view text);

// Neither of these two waits for the output: they queue one line, and a thread of the log's own
// writes it a few milliseconds later, many at a time. When kMaxLogQueueBytes wait because the
// output is slow or stuck, lines are dropped and counted, and a line says so later. Thread-safe.
//
// Control characters are escaped, so that a peer's text cannot forge lines.
void log_line(LogLevel level, std::string_view message);
// For lines (without their end) that are already whole and safe, such as the access log's.
void log_soon(std::string_view line);
constexpr std::size_t kMaxLogQueueBytes = 4u << 20;
std::uint64_t dropped_log_lines();
// Waits until every line queued before is written, for a second at most; false: it was in vain. The
// end of the process does the same.
bool flush_log();

// Now, in UTC: "2026-11-29T21:00:00.123Z".
std::string log_time();

// A warning of what comes in bursts: one a second at most is written. Thread-safe.
class BurstWarning {
 public:
  void operator()(std::string_view message);

 private:
  std::atomic<std::int64_t> quiet_until_ms_{0};  // of the steady clock
};

inline void log_error(std::string_view message) {
  log_line(LogLevel::error, message);
}
inline void log_warning(std::string_view message) {
  log_line(LogLevel::warning, message);
}
inline void log_info(std::string_view message) {
  log_line(LogLevel::info, message);
}

}  // namespace fixpoint
