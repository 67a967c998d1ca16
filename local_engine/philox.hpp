// Philox-4x32-10: a counter-based random generator. The same key and counter give the same numbers,
// so a draw needs no state (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace fixpoint::engine {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox_4x32_10(PhiloxCounter c, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ key[0],
         static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ key[1],
         static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // the golden ratio, as the paper's Weyl sequence has it
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return c;
}

// A uniform number in [0, 1) with 53 random bits. Key: the request's seed. Counter: the position of
// the token in its sequence and the draw's index.
constexpr double uniform_draw(std::uint64_t seed, std::uint64_t position, std::uint32_t draw) {
  const PhiloxCounter counter = {static_cast<std::uint32_t>(position),
                                 static_cast<std::uint32_t>(position >> 32), draw, 0};
  const PhiloxKey key = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  const PhiloxCounter random = philox_4x32_10(counter, key);
  const std::uint64_t bits = (std::uint64_t{random[1]} << 32) | random[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace fixpoint::engine
