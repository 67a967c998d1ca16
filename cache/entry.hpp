// One stored answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/key.hpp"

namespace fixpoint {

struct Entry {
  CacheKey key;
  std::string endpoint;                     // "chat.completions", "completions"
  std::string model;                        // as the answer names it
  std::string provider;                     // upstream's name, or "local"
  std::string generation;                   // token log id of the generation that made it
  std::int64_t created_ms = 0;              // Unix milliseconds
  std::shared_ptr<const std::string> body;  // the complete non-streamed JSON answer, byte for byte
};

}  // namespace fixpoint
