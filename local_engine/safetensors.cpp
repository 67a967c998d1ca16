#include "local_engine/safetensors.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace fixpoint::engine {
namespace {

using kernels::DType;
using Limits = SafetensorsLimits;

constexpr std::size_t kLengthBytes = 8;

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// A piece of the file for a message: never longer than a line.
std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 80;
  return "\"" + std::string(text.substr(0, kMax)) + (text.size() > kMax ? "...\"" : "\"");
}

// Takes the header as events, so that a hostile one cannot grow into a tree many times its size.
// Depth 1 holds the tensors, depth 2 a tensor's members, depth 3 its lists of numbers.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::uint64_t data_offset, std::uint64_t file_bytes)
      : data_offset_(data_offset), file_bytes_(file_bytes) {}

  SafetensorsHeader header;
  std::optional<Error> failure;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3 || in_metadata_) return unexpected("a number");
    const std::size_t most = member_ == "shape" ? Limits::kDimensions : 2;
    if (numbers().size() == most) {
      return bad("has more than " + std::to_string(most) + " numbers in \"" + member_ + "\"");
    }
    numbers().push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ != 2) return unexpected("a text");
    if (in_metadata_) return true;
    if (member_ != "dtype") return unexpected("a text");
    if (value == "F32") {
      tensor_.type = DType::f32;
    } else if (value == "F16") {
      tensor_.type = DType::f16;
    } else if (value == "BF16") {
      tensor_.type = DType::bf16;
    } else {
      return stop(ErrorCode::unsupported, "tensor " + shown(name_) + " is " + shown(value) +
                                              "; F32, F16 and BF16 are read");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ >= 2) return unexpected("an object");
    ++depth_;
    if (depth_ == 2) {
      tensor_ = {};
      offsets_.clear();
      members_.clear();
    }
    return true;
  }

  bool key(string_t& value) override {
    if (depth_ == 1) {
      name_ = value;
      in_metadata_ = value == "__metadata__";
      return true;
    }
    if (in_metadata_) return true;
    member_ = value;
    if (member_ != "dtype" && member_ != "shape" && member_ != "data_offsets") {
      return bad("has the unknown member " + shown(member_));
    }
    return members_.insert(member_).second || bad("has \"" + member_ + "\" twice");
  }

  bool end_object() override {
    --depth_;
    return depth_ != 1 || in_metadata_ || add_tensor();
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || member_ == "dtype") return unexpected("a list");
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return stop(ErrorCode::bad_model_file,
                "safetensors header is not JSON at byte " + std::to_string(position));
  }

 private:
  std::vector<std::uint64_t>& numbers() { return member_ == "shape" ? tensor_.shape : offsets_; }

  bool stop(ErrorCode code, std::string message) {
    if (!failure) failure = Error{code, std::move(message)};
    return false;
  }
  bool bad(const std::string& what) {
    return stop(ErrorCode::bad_model_file, "tensor " + shown(name_) + " " + what);
  }
  bool unexpected(const std::string& what) {
    return stop(ErrorCode::bad_model_file,
                "safetensors header has " + what + " where none belongs, near " + shown(name_));
  }

  bool add_tensor() {
    if (members_.size() != 3 || offsets_.size() != 2) {
      return bad("must have dtype, shape and two data_offsets");
    }
    if (name_.size() > Limits::kTensorNameBytes) {
      return bad("has a name longer than " + std::to_string(Limits::kTensorNameBytes) + " bytes");
    }
    if (header.size() == Limits::kTensors) {
      return stop(ErrorCode::bad_model_file, "safetensors header has more than " +
                                                 std::to_string(Limits::kTensors) + " tensors");
    }
    std::optional<std::uint64_t> bytes = kernels::row_bytes(tensor_.type, 1);
    for (const std::uint64_t dim : tensor_.shape) {
      if (bytes) bytes = product(*bytes, dim);
    }
    const std::uint64_t room = file_bytes_ - data_offset_;
    if (offsets_[0] > offsets_[1] || offsets_[1] > room) {
      return bad("lies at bytes " + std::to_string(offsets_[0]) + " to " +
                 std::to_string(offsets_[1]) + "; the file has " + std::to_string(room) +
                 " bytes of data");
    }
    if (bytes != offsets_[1] - offsets_[0]) {
      return bad("has " + std::to_string(offsets_[1] - offsets_[0]) +
                 " bytes, but its shape and type need " +
                 (bytes ? std::to_string(*bytes) : "more than 2^64"));
    }
    tensor_.begin = data_offset_ + offsets_[0];
    tensor_.end = data_offset_ + offsets_[1];
    return header.emplace(name_, tensor_).second || bad("is there twice");
  }

  const std::uint64_t data_offset_, file_bytes_;
  int depth_ = 0;
  bool in_metadata_ = false;
  std::string name_, member_;
  std::set<std::string> members_;  // of this tensor, so far
  std::vector<std::uint64_t> offsets_;
  SafetensorsTensor tensor_;
};

Result<void> check_no_overlap(const SafetensorsHeader& header) {
  std::vector<const SafetensorsHeader::value_type*> by_place;
  for (const auto& entry : header) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  for (std::size_t i = 1; i < by_place.size(); ++i) {
    if (by_place[i]->second.begin < by_place[i - 1]->second.end) {
      return fail(ErrorCode::bad_model_file, "tensors " + shown(by_place[i - 1]->first) + " and " +
                                                 shown(by_place[i]->first) + " overlap");
    }
  }
  return {};
}

}  // namespace

std::uint64_t SafetensorsTensor::elements() const {
  std::uint64_t count = 1;
  for (const std::uint64_t dim : shape) count *= dim;
  return count;
}

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return fail(ErrorCode::bad_model_file, "safetensors file has " + std::to_string(file.size()) +
                                               " bytes; the header's length alone has 8");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  if (length > Limits::kHeaderBytes || length > file.size() - kLengthBytes) {
    return fail(ErrorCode::bad_model_file, "safetensors header claims " + std::to_string(length) +
                                               " bytes; the limit is " +
                                               std::to_string(Limits::kHeaderBytes) +
                                               " and the file has " + std::to_string(file.size()));
  }
  HeaderReader reader(kLengthBytes + length, file.size());
  const auto* text = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
  if (!nlohmann::json::sax_parse(text, text + length, &reader)) {
    return tl::make_unexpected(*reader.failure);
  }
  if (auto apart = check_no_overlap(reader.header); !apart) {
    return tl::make_unexpected(apart.error());
  }
  return std::move(reader.header);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return tl::make_unexpected(file.error());
  auto header = parse_safetensors(file->bytes());
  if (!header) return tl::make_unexpected(header.error());
  return SafetensorsFile(*std::move(file), *std::move(header));
}

std::span<const std::byte> SafetensorsFile::data(const SafetensorsTensor& tensor) const {
  return file_.bytes().subspan(tensor.begin, tensor.end - tensor.begin);
}

}  // namespace fixpoint::engine
