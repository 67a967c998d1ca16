// SHA-256 over a stream of parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fixpoint::engine {

// One digest, one thread. The result is taken once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  // Adds the length (8 bytes, little-endian) before the bytes, so that no two lists of parts
  // collide.
  void update_part(std::string_view part);
  // The digest in lower-case hex.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fixpoint::engine
