// The access log: one line per request, as text or JSON (access_log.format).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/config.hpp"

namespace fixpoint {

// What one line tells; empty strings and negative numbers are left out. The views must live until
// log_access() returns. Headers, prompts, answers and query strings have no place here.
struct AccessRecord {
  std::string_view id;                   // the gateway's own
  std::string_view upstream_request_id;  // what the client saw instead of it
  std::string_view generation;           // id in the token log
  std::string_view peer, tenant, method, path;
  std::string_view endpoint;  // "chat.completions", "models"
  std::string_view model;     // as requested
  std::string_view upstream;  // who answered last; "local" for an engine
  int status = 0;
  std::chrono::nanoseconds duration{0};
  std::chrono::nanoseconds first_byte{-1};    // of the answer's body, from the request's start
  std::uint64_t bytes_in = 0, bytes_out = 0;  // of the bodies
  std::string_view cache;                     // "hit", "miss", "joined", "bypass", "error"
  int attempts = -1;                          // calls to upstreams
  std::int64_t prompt_tokens = -1, completion_tokens = -1;
  double cost = -1;  // US dollars
  std::string_view trace_id;
};

// Queues the record's line; returns without waiting for the output. Nothing below level `info`.
// Thread-safe.
void log_access(const AccessRecord& record);

// The line without its end; `time` as "2026-11-29T21:00:00.123Z".
std::string access_line(const AccessRecord& record, LogFormat format, std::string_view time);

}  // namespace fixpoint
