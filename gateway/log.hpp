// The process's own log, on stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"

namespace fixpoint {

// Sets the level and the strings that no line may show: each occurrence of one becomes "***".
// Strings shorter than 8 bytes are not hidden (they would blank out ordinary words).
// Call before other threads log. Without it: info, nothing hidden.
void init_log(LogLevel level, std::vector<std::string> secrets = {});

bool log_enabled(LogLevel level);
// One line. Control characters are escaped, so that a peer's text cannot forge lines. Thread-safe.
void log_line(LogLevel level, std::string_view message);

inline void log_error(std::string_view message) {
  log_line(LogLevel::error, message);
}
inline void log_warning(std::string_view message) {
  log_line(LogLevel::warning, message);
}
inline void log_info(std::string_view message) {
  log_line(LogLevel::info, message);
}
inline void log_debug(std::string_view message) {
  log_line(LogLevel::debug, message);
}

}  // namespace fixpoint
