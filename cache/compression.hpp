// zstd for stored bodies.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint {

// Thread-safe, both. Nothing when the result would not be smaller.
std::optional<std::string> compress(std::string_view bytes);

// Exactly `size` bytes, which the caller has bounded. Errors: corrupt.
Result<std::string> decompress(std::string_view bytes, std::size_t size);

}  // namespace fixpoint
