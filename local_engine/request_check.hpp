// Checks a request before it is queued, so that the scheduler can trust it.
#pragma once

#include "local_engine/generate.hpp"

namespace fixpoint::engine {

struct RequestLimits {
  std::size_t context = 0;
  std::size_t vocabulary = 0;
};

inline constexpr std::size_t kMaxStops = 16;
inline constexpr std::size_t kMaxStopBytes = 256;
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr std::size_t kMaxLogitBias = 1024;

// Errors: bad_request, naming the field and its limit; context_exceeded. Temperatures, penalties
// and the rest have the ranges of OpenAI's API reference.
Result<void> check_request(const GenerateRequest& request, const RequestLimits& limits);

}  // namespace fixpoint::engine
