// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "local_engine/result.hpp"

namespace fixpoint::engine {

// Owns the mapping. A file that another process shortens while it is mapped raises SIGBUS on the
// next read beyond its new end: nothing that outlives loading may point in here.
class MappedFile {
 public:
  // Errors: io. An empty file maps to an empty span.
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace fixpoint::engine
