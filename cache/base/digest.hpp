// SHA-256.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fixpoint {

using Sha256Bytes = std::array<std::uint8_t, 32>;

Sha256Bytes sha256(std::string_view bytes);
std::string to_hex(const Sha256Bytes& digest);
inline std::string sha256_hex(std::string_view bytes) {
  return to_hex(sha256(bytes));
}

}  // namespace fixpoint
