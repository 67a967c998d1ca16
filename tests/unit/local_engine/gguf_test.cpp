#include "local_engine/gguf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using test::GgufDamage;
using test::TinyGgufOptions;
using ::testing::HasSubstr;

std::vector<std::byte> tiny_bytes(const TinyGgufOptions& options = {}) {
  const test::TemporaryDirectory directory;
  std::ifstream in(test::write_tiny_gguf(directory / "tiny.gguf", options), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A file by hand: header, metadata and tensor table, padded to where data would start.
class Builder {
 public:
  explicit Builder(std::uint32_t version = 3) {
    text_ = "GGUF";
    add(version);
  }
  template <class T>
  Builder& add(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Builder& string(std::string_view value) {
    add(std::uint64_t{value.size()});
    text_ += value;
    return *this;
  }
  Result<GgufHeader> parse(std::size_t data_bytes = 0) {
    text_.resize((text_.size() + 31) / 32 * 32 + data_bytes, '\0');
    return parse_gguf(std::as_bytes(std::span(text_)));
  }

 private:
  std::string text_;
};

Builder counts(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
  Builder builder(version);
  builder.add(tensors).add(entries);
  return builder;
}

Builder one_tensor(std::vector<std::uint64_t> dims, std::uint32_t type, std::uint64_t offset) {
  Builder builder = counts(1, 0);
  builder.string("weight").add(static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) builder.add(dim);
  builder.add(type).add(offset);
  return builder;
}

TEST(Gguf, ReadsMetadataAndTensorsInOrder) {
  const auto header = parse_gguf(tiny_bytes()).value();
  EXPECT_EQ(header.version, 3U);
  EXPECT_EQ(header.metadata.front().first, "general.architecture");
  EXPECT_EQ(*header.find("general.architecture")->string(), "llama");
  EXPECT_EQ(header.find("llama.block_count")->unsigned_integer(), 2U);
  EXPECT_FLOAT_EQ(
      static_cast<float>(*header.find("llama.attention.layer_norm_rms_epsilon")->number()), 1e-5F);
  EXPECT_EQ(header.find("tokenizer.ggml.add_bos_token")->boolean(), false);
  const GgufArray& tokens = *header.find("tokenizer.ggml.tokens")->array();
  EXPECT_EQ(tokens.size(), 300U);
  EXPECT_EQ(tokens.strings().back(), "<|im_end|>");
  const GgufArray& types = *header.find("tokenizer.ggml.token_type")->array();
  EXPECT_EQ(types.integer(0), 1);
  EXPECT_EQ(types.integer(299), 3);
  EXPECT_EQ(header.find("no.such.key"), nullptr);
  EXPECT_EQ(header.tensors.front().name, "token_embd.weight");
  const GgufTensor& tensor = *header.find_tensor("blk.1.ffn_down.weight");
  EXPECT_EQ(tensor.dims, (std::vector<std::uint64_t>{128, 64}));
  EXPECT_EQ(tensor.bytes, 128U * 64 * 4);
  EXPECT_EQ(tensor.type_name(), "F32");
}

TEST(Gguf, ReadsEveryScalarType) {
  Builder b = counts(0, 12, 2);
  b.string("u8").add(0U).add(std::uint8_t{200});
  b.string("i8").add(1U).add(std::int8_t{-100});
  b.string("u16").add(2U).add(std::uint16_t{60'000});
  b.string("i16").add(3U).add(std::int16_t{-30'000});
  b.string("u32").add(4U).add(4'000'000'000U);
  b.string("i32").add(5U).add(-2'000'000'000);
  b.string("f32").add(6U).add(0.1F);
  b.string("bool").add(7U).add(std::uint8_t{1});
  b.string("string").add(8U).string("a\n\"b\"");
  b.string("u64").add(10U).add(UINT64_MAX);
  b.string("i64").add(11U).add(INT64_MIN);
  b.string("f64").add(12U).add(0.1);
  const auto h = b.parse().value();
  EXPECT_EQ(h.version, 2U);
  const auto text = [&](const char* key) { return h.find(key)->to_text(); };
  EXPECT_EQ(text("u8"), "200");
  EXPECT_EQ(text("i8"), "-100");
  EXPECT_EQ(text("u16"), "60000");
  EXPECT_EQ(text("i16"), "-30000");
  EXPECT_EQ(text("u32"), "4000000000");
  EXPECT_EQ(text("i32"), "-2000000000");
  EXPECT_EQ(text("f32"), "0.100000001");
  EXPECT_EQ(text("bool"), "true");
  EXPECT_EQ(text("string"), "\"a\\n\\\"b\\\"\"");
  EXPECT_EQ(text("u64"), "18446744073709551615");
  EXPECT_EQ(text("i64"), "-9223372036854775808");
  EXPECT_EQ(h.find("i8")->unsigned_integer(), std::nullopt);
  EXPECT_EQ(h.find("f64")->number(), 0.1);
}

TEST(Gguf, ShowsLongValuesCut) {
  Builder b = counts(0, 2);
  b.string("long").add(8U).string(std::string(300, 'x'));
  b.string("list").add(9U).add(3U).add(std::uint64_t{3});
  b.add(std::int16_t{-1}).add(std::int16_t{2}).add(std::int16_t{3});
  const auto h = b.parse().value();
  EXPECT_EQ(h.find("long")->to_text(8, 3), "\"xxx\"... (300 bytes)");
  EXPECT_EQ(h.find("list")->to_text(2), "[-1, 2, ... (3 elements)]");
  EXPECT_EQ(h.find("list")->to_text(), "[-1, 2, 3]");
}

TEST(Gguf, KeepsTensorsOfUnknownType) {
  const auto h = one_tensor({64, 2}, 12'345, 0).parse().value();
  EXPECT_EQ(h.tensors[0].type_name(), "type 12345");
  EXPECT_EQ(h.tensors[0].bytes, std::nullopt);
  EXPECT_EQ(h.tensors[0].elements(), 128U);
}

TEST(Gguf, ChecksTensorsAgainstTheFile) {
  const auto message = [](Builder builder, std::size_t data_bytes) {
    const auto header = builder.parse(data_bytes);
    return header ? std::string() : header.error().message;
  };
  EXPECT_EQ(message(one_tensor({32, 2}, 2, 0), 36), "");
  EXPECT_THAT(message(one_tensor({32, 2}, 2, 0), 35), HasSubstr("needs 36 bytes at 0 of 35"));
  EXPECT_THAT(message(one_tensor({32, 2}, 2, 32), 36), HasSubstr("is cut"));
  EXPECT_THAT(message(one_tensor({32}, 2, 1), 64), HasSubstr("multiple of the alignment 32"));
  EXPECT_THAT(message(one_tensor({31}, 2, 0), 64), HasSubstr("Q4_0's block of 32"));
  EXPECT_THAT(message(one_tensor({0}, 0, 0), 64), HasSubstr("dimension of 0"));
  EXPECT_THAT(message(one_tensor({1ULL << 33, 1ULL << 33}, 0, 0), 64), HasSubstr("absurd size"));
  EXPECT_THAT(message(one_tensor({1ULL << 62}, 0, 0), 64), HasSubstr("absurd size"));
  EXPECT_THAT(message(one_tensor({1, 1, 1, 1, 1}, 0, 0), 64), HasSubstr("limit is 4"));
  EXPECT_THAT(message(one_tensor({8}, 0, ~31ULL), 64), HasSubstr("is cut"));
}

TEST(Gguf, RefusesWhatItDoesNotRead) {
  const auto code = [](Result<GgufHeader> header) { return header.error().code; };
  EXPECT_EQ(code(parse_gguf({})), ErrorCode::bad_model_file);
  EXPECT_EQ(code(parse_gguf(tiny_bytes({.damage = GgufDamage::bad_magic}))),
            ErrorCode::bad_model_file);
  EXPECT_EQ(code(counts(0, 0, 1).parse()), ErrorCode::unsupported);
  EXPECT_EQ(code(counts(0, 0, 0x03000000).parse()), ErrorCode::unsupported);
  EXPECT_EQ(code(counts(0, 1).string("nested").add(9U).add(9U).add(std::uint64_t{1}).parse()),
            ErrorCode::unsupported);
  EXPECT_EQ(code(counts(0, 1).string("odd").add(13U).parse()), ErrorCode::bad_model_file);
  EXPECT_EQ(code(counts(0, 1).string("general.alignment").add(4U).add(24U).parse()),
            ErrorCode::bad_model_file);
  EXPECT_EQ(code(counts(0, 2).string("k").add(4U).add(1U).string("k").add(4U).add(1U).parse()),
            ErrorCode::bad_model_file);
}

TEST(Gguf, NamesTheLimitOfAbsurdSizes) {
  const auto message = [](GgufDamage damage) {
    const auto header = parse_gguf(tiny_bytes({.damage = damage}));
    return header ? std::string() : header.error().message;
  };
  EXPECT_THAT(message(GgufDamage::absurd_tensors), HasSubstr("the limit is 65536"));
  EXPECT_THAT(message(GgufDamage::absurd_string), HasSubstr("the limit is"));
  EXPECT_THAT(message(GgufDamage::absurd_array), HasSubstr("the limit is 16777216"));
  EXPECT_THAT(message(GgufDamage::absurd_dims), HasSubstr("absurd size"));
  EXPECT_THAT(message(GgufDamage::tensor_outside), HasSubstr("is cut"));
  EXPECT_THAT(message(GgufDamage::cut), HasSubstr("is cut"));
  EXPECT_THAT(message(GgufDamage::cut_header), HasSubstr("is cut"));
}

// A count that the file's size cannot hold must fail before memory is reserved for it.
TEST(Gguf, ReservesNoMoreThanTheFileHolds) {
  Builder b = counts(0, 1);
  b.string("list").add(9U).add(8U).add(GgufLimits::kArrayElements);
  EXPECT_THAT(b.parse().error().message, HasSubstr("claims 16777216 strings"));
}

TEST(Gguf, EveryCutOfTheHeaderIsAnError) {
  const auto bytes = tiny_bytes();
  const auto header = parse_gguf(bytes).value();
  for (std::size_t size = 0; size < header.data_offset; size += 1 + size / 64) {
    ASSERT_FALSE(parse_gguf(std::span(bytes).first(size))) << size;
  }
}

TEST(Gguf, ChangedBytesNeverCrash) {
  const auto bytes = tiny_bytes({.layers = 1});
  const std::size_t header_size = parse_gguf(bytes).value().data_offset;
  EXPECT_TRUE(rc::check("any header bytes", [&] {
    auto changed = bytes;
    const auto edits = *rc::gen::inRange(1, 8);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, header_size);
      changed[at] = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    }
    const auto header = parse_gguf(changed);
    if (!header) return;
    for (const GgufTensor& tensor : header->tensors) {
      RC_ASSERT(header->data_offset + tensor.offset + tensor.bytes.value_or(0) <= changed.size());
    }
  }));
}

TEST(GgufFile, OpensFilesOnly) {
  const test::TemporaryDirectory directory;
  EXPECT_EQ(GgufFile::open(directory / "absent").error().code, ErrorCode::io);
  EXPECT_EQ(GgufFile::open("/tmp").error().code, ErrorCode::io);
  std::ofstream(directory / "empty").close();
  EXPECT_EQ(GgufFile::open(directory / "empty").error().code, ErrorCode::bad_model_file);
}

}  // namespace
}  // namespace fixpoint::engine
