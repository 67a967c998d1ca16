#include "local_engine/gguf.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

static_assert(std::endian::native == std::endian::little,
              "GGUF values are read as they lie in the file, little-endian");

namespace fixpoint::engine {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"

// Reads forward and remembers the first error; after it, every read gives zero and false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return !error_; }
  const Error& error() const { return *error_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }

  bool stop(ErrorCode code, std::string message) {
    if (!error_) error_ = Error{code, std::move(message)};
    return false;
  }
  bool bad(std::string message) { return stop(ErrorCode::bad_model_file, std::move(message)); }

  template <class T>
  T number(std::string_view what) {
    T value{};
    const auto from = take(sizeof value, what);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }

  // A length-prefixed string.
  std::string string(std::string_view what, std::uint64_t max_bytes) {
    const auto length = number<std::uint64_t>(what);
    if (!check_limit(length, max_bytes, what, "bytes")) return {};
    const auto from = take(length, what);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }

  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (!ok()) return {};
    if (count > left()) {
      bad("GGUF file is cut: " + std::string(what) + " needs " + std::to_string(count) +
          " bytes at offset " + std::to_string(position_) + ", the header has " +
          std::to_string(left()) + " left");
      return {};
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  bool check_limit(std::uint64_t value, std::uint64_t limit, std::string_view what,
                   std::string_view unit) {
    if (!ok()) return false;
    if (value <= limit) return true;
    return bad("GGUF " + std::string(what) + " has " + std::to_string(value) + " " +
               std::string(unit) + ", the limit is " + std::to_string(limit));
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
  std::optional<Error> error_;
};

std::optional<GgufValue> read_scalar(Reader& in, GgufType type, std::string_view what) {
  switch (type) {
    case GgufType::u8:
      return GgufValue{type, std::uint64_t{in.number<std::uint8_t>(what)}};
    case GgufType::u16:
      return GgufValue{type, std::uint64_t{in.number<std::uint16_t>(what)}};
    case GgufType::u32:
      return GgufValue{type, std::uint64_t{in.number<std::uint32_t>(what)}};
    case GgufType::u64:
      return GgufValue{type, in.number<std::uint64_t>(what)};
    case GgufType::i8:
      return GgufValue{type, std::int64_t{in.number<std::int8_t>(what)}};
    case GgufType::i16:
      return GgufValue{type, std::int64_t{in.number<std::int16_t>(what)}};
    case GgufType::i32:
      return GgufValue{type, std::int64_t{in.number<std::int32_t>(what)}};
    case GgufType::i64:
      return GgufValue{type, in.number<std::int64_t>(what)};
    case GgufType::f32:
      return GgufValue{type, double{in.number<float>(what)}};
    case GgufType::f64:
      return GgufValue{type, in.number<double>(what)};
    case GgufType::boolean:
      return GgufValue{type, in.number<std::uint8_t>(what) != 0};
    case GgufType::string:
      return GgufValue{type, in.string(what, GgufLimits::kHeaderBytes)};
    case GgufType::array:
      break;
  }
  return std::nullopt;
}

std::optional<GgufValue> read_array(Reader& in, std::string_view what, std::uint64_t& budget) {
  const auto element = static_cast<GgufType>(in.number<std::uint32_t>(what));
  const auto count = in.number<std::uint64_t>(what);
  if (!in.check_limit(count, budget, what, "array elements")) return std::nullopt;
  budget -= count;
  if (element == GgufType::string) {
    // Each string needs at least its length's 8 bytes, so the reservation is bounded by the file.
    if (count > in.left() / 8) {
      in.bad("GGUF file is cut: " + std::string(what) + " claims " + std::to_string(count) +
             " strings, the header has " + std::to_string(in.left()) + " bytes left");
      return std::nullopt;
    }
    std::vector<std::string> strings;
    strings.reserve(count);
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
      strings.push_back(in.string(what, GgufLimits::kHeaderBytes));
    }
    return GgufValue{GgufType::array, GgufArray(std::move(strings))};
  }
  const std::uint64_t width = number_bytes(element);
  if (width == 0) {
    in.stop(ErrorCode::unsupported, "GGUF " + std::string(what) + " is an array of type " +
                                        std::to_string(static_cast<std::uint32_t>(element)) +
                                        "; arrays of numbers, booleans and strings are read");
    return std::nullopt;
  }
  const auto raw = in.take(count * width, what);  // count <= 2^24: no overflow
  return GgufValue{GgufType::array, GgufArray(element, {raw.begin(), raw.end()})};
}

void read_metadata(Reader& in, std::uint64_t count, GgufHeader& header) {
  std::unordered_set<std::string> keys;
  std::uint64_t array_budget = GgufLimits::kArrayElements;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    std::string key = in.string("metadata key " + std::to_string(i), GgufLimits::kKeyBytes);
    const auto type = static_cast<GgufType>(in.number<std::uint32_t>("type of " + key));
    if (!in.ok()) return;
    if (!keys.insert(key).second) {
      in.bad("GGUF metadata key \"" + key + "\" occurs twice");
      return;
    }
    const std::string what = "metadata \"" + key + "\"";
    auto value =
        type == GgufType::array ? read_array(in, what, array_budget) : read_scalar(in, type, what);
    if (!value) {
      in.bad("GGUF " + what + " has unknown type " +
             std::to_string(static_cast<std::uint32_t>(type)));
      return;
    }
    header.metadata.emplace_back(std::move(key), *std::move(value));
  }
}

// Elements and bytes of a tensor, checked for overflow and whole blocks.
bool size_tensor(Reader& in, GgufTensor& tensor) {
  std::uint64_t elements = 1;
  for (const std::uint64_t dim : tensor.dims) {
    if (dim == 0 || __builtin_mul_overflow(elements, dim, &elements)) {
      return in.bad("GGUF tensor \"" + tensor.name + "\" has an absurd size: a dimension of " +
                    std::to_string(dim));
    }
  }
  const auto type = gguf_tensor_type(tensor.type);
  if (!type) return true;
  const std::uint64_t row = tensor.dims.empty() ? 1 : tensor.dims[0];
  std::uint64_t bytes = 0;
  if (row % type->block_weights != 0) {
    return in.bad("GGUF tensor \"" + tensor.name + "\" has rows of " + std::to_string(row) +
                  " weights, not a multiple of " + std::string(type->name) + "'s block of " +
                  std::to_string(type->block_weights));
  }
  if (__builtin_mul_overflow(elements / type->block_weights, std::uint64_t{type->block_bytes},
                             &bytes)) {
    return in.bad("GGUF tensor \"" + tensor.name + "\" has an absurd size");
  }
  tensor.bytes = bytes;
  return true;
}

void read_tensors(Reader& in, std::uint64_t count, GgufHeader& header) {
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    GgufTensor tensor{};
    tensor.name = in.string("name of tensor " + std::to_string(i), GgufLimits::kTensorNameBytes);
    const std::string what = "tensor \"" + tensor.name + "\"";
    const auto dims = in.number<std::uint32_t>(what);
    if (!in.check_limit(dims, GgufLimits::kDimensions, what, "dimensions")) return;
    for (std::uint32_t d = 0; d < dims; ++d) tensor.dims.push_back(in.number<std::uint64_t>(what));
    tensor.type = in.number<std::uint32_t>(what);
    tensor.offset = in.number<std::uint64_t>(what);
    if (!in.ok() || !size_tensor(in, tensor)) return;
    if (!names.insert(tensor.name).second) {
      in.bad("GGUF " + what + " occurs twice");
      return;
    }
    header.tensors.push_back(std::move(tensor));
  }
}

void read_alignment(Reader& in, GgufHeader& header) {
  const GgufValue* given = header.find("general.alignment");
  if (!given) return;
  const auto alignment = given->unsigned_integer();
  if (!alignment || !std::has_single_bit(*alignment) || *alignment > GgufLimits::kAlignment) {
    in.bad("GGUF metadata \"general.alignment\" is " + given->to_text() +
           "; it must be a power of two of at most " + std::to_string(GgufLimits::kAlignment));
    return;
  }
  header.alignment = *alignment;
}

// Where tensor data starts, and that each tensor lies inside the file.
void place_tensors(Reader& in, std::uint64_t file_bytes, GgufHeader& header) {
  const std::uint64_t mask = header.alignment - 1;
  header.data_offset = (in.position() + mask) & ~mask;
  const std::uint64_t data_bytes = file_bytes - std::min(file_bytes, header.data_offset);
  for (const GgufTensor& tensor : header.tensors) {
    const std::uint64_t bytes = tensor.bytes.value_or(0);
    if ((tensor.offset & mask) != 0) {
      in.bad("GGUF tensor \"" + tensor.name + "\" starts at " + std::to_string(tensor.offset) +
             ", not a multiple of the alignment " + std::to_string(header.alignment));
      return;
    }
    if (tensor.offset > data_bytes || bytes > data_bytes - tensor.offset) {
      in.bad("GGUF file is cut: tensor \"" + tensor.name + "\" needs " + std::to_string(bytes) +
             " bytes at " + std::to_string(tensor.offset) + " of " + std::to_string(data_bytes) +
             " bytes of tensor data");
      return;
    }
  }
}

}  // namespace

Result<GgufHeader> parse_gguf(std::span<const std::byte> file) {
  Reader in(file.first(std::min<std::uint64_t>(file.size(), GgufLimits::kHeaderBytes)));
  GgufHeader header;
  if (in.number<std::uint32_t>("magic") != kMagic && in.ok()) {
    return fail(ErrorCode::bad_model_file, "not a GGUF file: it does not start with \"GGUF\"");
  }
  header.version = in.number<std::uint32_t>("version");
  if (in.ok() && header.version != 2 && header.version != 3) {
    const bool swapped = (header.version & 0xffff) == 0 && header.version != 0;
    return fail(ErrorCode::unsupported,
                swapped ? std::string("GGUF file is big-endian; little-endian files are read")
                        : "GGUF version " + std::to_string(header.version) +
                              " is not read; versions 2 and 3 are");
  }
  const auto tensors = in.number<std::uint64_t>("tensor count");
  const auto entries = in.number<std::uint64_t>("metadata count");
  if (in.check_limit(tensors, GgufLimits::kTensors, "file", "tensors") &&
      in.check_limit(entries, GgufLimits::kMetadataEntries, "file", "metadata entries")) {
    read_metadata(in, entries, header);
    if (in.ok()) read_alignment(in, header);
    if (in.ok()) read_tensors(in, tensors, header);
    if (in.ok()) place_tensors(in, file.size(), header);
  }
  if (!in.ok()) return tl::make_unexpected(in.error());
  return header;
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::make_unexpected(file.error());
  auto header = parse_gguf(file->bytes());
  if (!header) {
    return fail(header.error().code, header.error().message + " (\"" + path + "\")");
  }
  return GgufFile(*std::move(file), *std::move(header));
}

std::span<const std::byte> GgufFile::data(const GgufTensor& tensor) const {
  return file_.bytes().subspan(header_.data_offset + tensor.offset, tensor.bytes.value_or(0));
}

}  // namespace fixpoint::engine
