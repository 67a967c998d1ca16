// Reader of safetensors files: eight bytes of header length (little-endian), a JSON header, then
// the tensors' bytes (format: https://huggingface.co/docs/safetensors).
//
// Every length and range is checked against the file's size and the limits below before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/cpu.hpp"
#include "local_engine/mapped_file.hpp"
#include "local_engine/result.hpp"

namespace fixpoint::engine {

struct SafetensorsLimits {
  static constexpr std::uint64_t kHeaderBytes = 100'000'000;  // the format's own limit
  static constexpr std::size_t kTensors = 65'536;
  static constexpr std::size_t kTensorNameBytes = 256;
  static constexpr std::size_t kDimensions = 8;
};

struct SafetensorsTensor {
  kernels::DType type = kernels::DType::f32;  // f32, f16 or bf16
  std::vector<std::uint64_t> shape;           // outermost first; the last is the row length
  std::uint64_t begin = 0, end = 0;           // bytes, from the start of the file

  std::uint64_t elements() const;  // never overflows: checked when the file was read
};

using SafetensorsHeader = std::map<std::string, SafetensorsTensor, std::less<>>;  // by name

// Parses the header of a whole file. Each tensor lies inside the file, has as many bytes as its
// shape and type say, and shares none of them with another.
// Errors: bad_model_file; unsupported for another type of tensor than F32, F16 and BF16.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file);

// A mapped file with its header. The spans live as long as this object; see MappedFile on SIGBUS.
class SafetensorsFile {
 public:
  // Errors: io and those of parse_safetensors.
  static Result<SafetensorsFile> open(const std::string& path);

  const SafetensorsHeader& tensors() const { return tensors_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // Precondition: `tensor` is one of tensors().
  std::span<const std::byte> data(const SafetensorsTensor& tensor) const;

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}
  MappedFile file_;
  SafetensorsHeader tensors_;
};

}  // namespace fixpoint::engine
