// Reader of GGUF model files, versions 2 and 3, little-endian
// (format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
//
// Reads the metadata and the tensor table of any GGUF file, whatever its architecture or tensor
// types. Every count, length and offset of the file is checked against the file's size and the
// limits below before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "local_engine/mapped_file.hpp"
#include "local_engine/result.hpp"

namespace fixpoint::engine {

// Generous for real files (the largest have a few thousand tensors and a vocabulary under a
// million), small enough that a hostile file cannot make the reader allocate more than a few
// hundred megabytes.
struct GgufLimits {
  static constexpr std::uint64_t kMetadataEntries = 65'536;
  static constexpr std::uint64_t kTensors = 65'536;
  static constexpr std::uint64_t kKeyBytes = 65'535;  // the format's own limit
  static constexpr std::uint64_t kTensorNameBytes = 256;
  static constexpr std::uint64_t kHeaderBytes = std::uint64_t{256} << 20;  // all before tensor data
  static constexpr std::uint64_t kArrayElements = std::uint64_t{1} << 24;  // of all arrays together
  static constexpr std::uint64_t kDimensions = 4;
  static constexpr std::uint64_t kAlignment = 65'536;
};

// The format's numbers.
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
std::string_view name(GgufType type);
// Bytes of one number or boolean in the file; 0 for strings, arrays and unknown types.
std::size_t number_bytes(GgufType type);

// An array of numbers, booleans or strings. Numbers stay in the file's encoding.
class GgufArray {
 public:
  GgufArray(GgufType element, std::vector<std::byte> numbers);
  explicit GgufArray(std::vector<std::string> strings);

  GgufType element() const { return element_; }
  std::size_t size() const;
  // Empty for an array of numbers.
  const std::vector<std::string>& strings() const { return strings_; }
  // Element i of an array of integers or booleans. Precondition: i < size().
  std::optional<std::int64_t> integer(std::size_t i) const;
  // Element i of an array of numbers, exact for floats. Precondition: i < size().
  std::optional<double> number(std::size_t i) const;

 private:
  GgufType element_;
  std::vector<std::byte> numbers_;
  std::vector<std::string> strings_;
};

struct GgufValue {
  GgufType type;
  // Unsigned types, signed types, both float types, boolean, string, array.
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufArray> value;

  std::optional<std::uint64_t> unsigned_integer() const;  // also a signed value >= 0
  std::optional<double> number() const;                   // any number
  std::optional<bool> boolean() const;
  const std::string* string() const;
  const GgufArray* array() const;
  // For people: arrays are cut after max_elements and strings after max_bytes, and both say so.
  std::string to_text(std::size_t max_elements = 8, std::size_t max_bytes = 256) const;
};

struct GgufTensor {
  std::string name;
  std::uint32_t type;                  // the format's number
  std::vector<std::uint64_t> dims;     // dims[0] is the row length
  std::uint64_t offset;                // from the start of the tensor data
  std::optional<std::uint64_t> bytes;  // none for a type that this reader does not know

  std::uint64_t elements() const;  // never overflows: checked when the file was read
  std::string type_name() const;   // "Q4_1", or "type 99" for an unknown number
};

// Name, weights per block and bytes per block of a tensor type; none for unknown numbers.
struct GgufTensorType {
  std::string_view name;
  std::uint32_t block_weights;
  std::uint32_t block_bytes;
};
std::optional<GgufTensorType> gguf_tensor_type(std::uint32_t type);

// What stands before the tensor data, copied out of the file.
struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;
  std::vector<std::pair<std::string, GgufValue>> metadata;  // in the file's order
  std::vector<GgufTensor> tensors;                          // in the file's order

  const GgufValue* find(std::string_view key) const;
  const GgufTensor* find_tensor(std::string_view tensor_name) const;
};

// Parses the header of a whole file and checks that each tensor lies inside it.
// Errors: bad_model_file, unsupported (version 1, big-endian, nested arrays).
Result<GgufHeader> parse_gguf(std::span<const std::byte> file);

// A mapped file with its header. The spans live as long as this object; see MappedFile on SIGBUS.
class GgufFile {
 public:
  // Errors: io and those of parse_gguf.
  static Result<GgufFile> open(const std::string& path);

  const GgufHeader& header() const { return header_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  // Precondition: `tensor` is one of header().tensors and its size is known.
  std::span<const std::byte> data(const GgufTensor& tensor) const;

 private:
  GgufFile(MappedFile file, GgufHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}
  MappedFile file_;
  GgufHeader header_;
};

}  // namespace fixpoint::engine
