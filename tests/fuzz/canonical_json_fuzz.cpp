// Any bytes: an error, or a text that is its own canonical form and means what the input means.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cache/base/canonical_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto once = fixpoint::canonical_json(text);
  if (!once) {
    if (once.error().code != fixpoint::ErrorCode::invalid) std::abort();
    // Messages are shown in JSON answers: they must be text.
    (void)nlohmann::json(once.error().message).dump();
    return 0;
  }
  const auto twice = fixpoint::canonical_json(*once);
  if (!twice || *twice != *once) std::abort();
  if (nlohmann::json::parse(*once) != nlohmann::json::parse(text)) std::abort();
  return 0;
}
