// Values, arrays and tensor types of GGUF; the parser is in gguf.cpp.
#include <array>
#include <cstring>
#include <sstream>

#include "local_engine/gguf.hpp"

namespace fixpoint::engine {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void append_quoted(std::string& out, std::string_view text, std::size_t max_bytes) {
  out += '"';
  for (const char c : text.substr(0, max_bytes)) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7f) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  out += '"';
  if (text.size() > max_bytes) out += "... (" + std::to_string(text.size()) + " bytes)";
}

std::string number_text(double value) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(9);  // enough for every float to be told from its neighbours
  out << value;
  return out.str();
}

}  // namespace

std::string_view name(GgufType type) {
  constexpr std::array<std::string_view, 13> kNames = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                       "i32", "f32", "bool", "string", "array",
                                                       "u64", "i64", "f64"};
  const auto i = static_cast<std::size_t>(type);
  return i < kNames.size() ? kNames[i] : "unknown";
}

std::size_t number_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

GgufArray::GgufArray(GgufType element, std::vector<std::byte> numbers)
    : element_(element), numbers_(std::move(numbers)) {}

GgufArray::GgufArray(std::vector<std::string> strings)
    : element_(GgufType::string), strings_(std::move(strings)) {}

std::size_t GgufArray::size() const {
  return element_ == GgufType::string ? strings_.size() : numbers_.size() / number_bytes(element_);
}

std::optional<std::int64_t> GgufArray::integer(std::size_t i) const {
  if (element_ == GgufType::string) return std::nullopt;
  const std::byte* at = numbers_.data() + i * number_bytes(element_);
  switch (element_) {
    case GgufType::u8:
    case GgufType::boolean:
      return load<std::uint8_t>(at);
    case GgufType::i8:
      return load<std::int8_t>(at);
    case GgufType::u16:
      return load<std::uint16_t>(at);
    case GgufType::i16:
      return load<std::int16_t>(at);
    case GgufType::u32:
      return load<std::uint32_t>(at);
    case GgufType::i32:
      return load<std::int32_t>(at);
    case GgufType::i64:
      return load<std::int64_t>(at);
    case GgufType::u64: {
      const auto value = load<std::uint64_t>(at);
      if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufArray::number(std::size_t i) const {
  if (element_ == GgufType::string) return std::nullopt;
  const std::byte* at = numbers_.data() + i * number_bytes(element_);
  if (element_ == GgufType::f32) return static_cast<double>(load<float>(at));
  if (element_ == GgufType::f64) return load<double>(at);
  if (element_ == GgufType::u64) return static_cast<double>(load<std::uint64_t>(at));
  const auto whole = integer(i);
  if (!whole) return std::nullopt;
  return static_cast<double>(*whole);
}

std::optional<std::uint64_t> GgufValue::unsigned_integer() const {
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return *u;
  if (const auto* i = std::get_if<std::int64_t>(&value); i && *i >= 0) {
    return static_cast<std::uint64_t>(*i);
  }
  return std::nullopt;
}

std::optional<double> GgufValue::number() const {
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  return std::nullopt;
}

const std::string* GgufValue::string() const {
  return std::get_if<std::string>(&value);
}
const GgufArray* GgufValue::array() const {
  return std::get_if<GgufArray>(&value);
}

std::string GgufValue::to_text(std::size_t max_elements, std::size_t max_bytes) const {
  if (const auto* u = std::get_if<std::uint64_t>(&value)) return std::to_string(*u);
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) return number_text(*d);
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  std::string out;
  if (const auto* s = string()) {
    append_quoted(out, *s, max_bytes);
    return out;
  }
  const GgufArray& items = std::get<GgufArray>(value);
  out = "[";
  for (std::size_t i = 0; i < items.size() && i < max_elements; ++i) {
    if (i) out += ", ";
    if (items.element() == GgufType::string) {
      append_quoted(out, items.strings()[i], max_bytes);
    } else if (const auto whole = items.integer(i)) {
      out += std::to_string(*whole);
    } else {
      out += number_text(items.number(i).value_or(0));
    }
  }
  if (items.size() > max_elements) {
    out += ", ... (" + std::to_string(items.size()) + " elements)";
  }
  return out + "]";
}

std::optional<GgufTensorType> gguf_tensor_type(std::uint32_t type) {
  // Numbers and block layouts of ggml's tensor types (ggml.h, ggml-common.h). Gaps were withdrawn.
  switch (type) {
    case 0:
      return GgufTensorType{"F32", 1, 4};
    case 1:
      return GgufTensorType{"F16", 1, 2};
    case 2:
      return GgufTensorType{"Q4_0", 32, 18};
    case 3:
      return GgufTensorType{"Q4_1", 32, 20};
    case 6:
      return GgufTensorType{"Q5_0", 32, 22};
    case 7:
      return GgufTensorType{"Q5_1", 32, 24};
    case 8:
      return GgufTensorType{"Q8_0", 32, 34};
    case 9:
      return GgufTensorType{"Q8_1", 32, 36};
    case 10:
      return GgufTensorType{"Q2_K", 256, 84};
    case 11:
      return GgufTensorType{"Q3_K", 256, 110};
    case 12:
      return GgufTensorType{"Q4_K", 256, 144};
    case 13:
      return GgufTensorType{"Q5_K", 256, 176};
    case 14:
      return GgufTensorType{"Q6_K", 256, 210};
    case 15:
      return GgufTensorType{"Q8_K", 256, 292};
    case 16:
      return GgufTensorType{"IQ2_XXS", 256, 66};
    case 17:
      return GgufTensorType{"IQ2_XS", 256, 74};
    case 18:
      return GgufTensorType{"IQ3_XXS", 256, 98};
    case 19:
      return GgufTensorType{"IQ1_S", 256, 50};
    case 20:
      return GgufTensorType{"IQ4_NL", 32, 18};
    case 21:
      return GgufTensorType{"IQ3_S", 256, 110};
    case 22:
      return GgufTensorType{"IQ2_S", 256, 82};
    case 23:
      return GgufTensorType{"IQ4_XS", 256, 136};
    case 24:
      return GgufTensorType{"I8", 1, 1};
    case 25:
      return GgufTensorType{"I16", 1, 2};
    case 26:
      return GgufTensorType{"I32", 1, 4};
    case 27:
      return GgufTensorType{"I64", 1, 8};
    case 28:
      return GgufTensorType{"F64", 1, 8};
    case 29:
      return GgufTensorType{"IQ1_M", 256, 56};
    case 30:
      return GgufTensorType{"BF16", 1, 2};
    case 34:
      return GgufTensorType{"TQ1_0", 256, 54};
    case 35:
      return GgufTensorType{"TQ2_0", 256, 66};
    case 39:
      return GgufTensorType{"MXFP4", 32, 17};
    default:
      return std::nullopt;
  }
}

std::uint64_t GgufTensor::elements() const {
  std::uint64_t count = 1;
  for (const std::uint64_t dim : dims) count *= dim;
  return count;
}

std::string GgufTensor::type_name() const {
  const auto known = gguf_tensor_type(type);
  return known ? std::string(known->name) : "type " + std::to_string(type);
}

const GgufValue* GgufHeader::find(std::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

const GgufTensor* GgufHeader::find_tensor(std::string_view tensor_name) const {
  for (const GgufTensor& tensor : tensors) {
    if (tensor.name == tensor_name) return &tensor;
  }
  return nullptr;
}

}  // namespace fixpoint::engine
