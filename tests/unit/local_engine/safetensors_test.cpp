#include "local_engine/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>

#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using ::testing::HasSubstr;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i) & 255);
  return file + rest;
}
std::string file_of(const std::string& header, std::size_t data_bytes = 0) {
  return with_length(header.size(), header + std::string(data_bytes, 'x'));
}
Result<SafetensorsHeader> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)));
}
std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return '"' + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape +
         R"(],"data_offsets":[)" + offsets + "]}";
}

TEST(Safetensors, ReadsTensorsOfEveryTypeAndRank) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},)" + tensor("a", "F32", "2,3", "0,24") + "," +
      tensor("b", "F16", "5", "24,34") + "," + tensor("c", "BF16", "", "34,36") + "," +
      tensor("d", "F32", "7,0", "36,36") + "}   ";
  const test::TemporaryDirectory folder;
  const std::string path = folder / "m.safetensors";
  const std::string bytes = file_of(header, 36);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto file = SafetensorsFile::open(path).value();
  ASSERT_EQ(file.tensors().size(), 4U);
  const auto& a = file.tensors().at("a");
  EXPECT_EQ(a.type, kernels::DType::f32);
  EXPECT_EQ(a.shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(a.elements(), 6U);
  EXPECT_EQ(file.data(a).data(), file.bytes().data() + 8 + header.size());
  EXPECT_EQ(file.tensors().at("b").type, kernels::DType::f16);
  EXPECT_EQ(file.tensors().at("c").type, kernels::DType::bf16);
  EXPECT_EQ(file.tensors().at("c").elements(), 1U);
  EXPECT_EQ(file.data(file.tensors().at("c")).size(), 2U);
  EXPECT_EQ(file.tensors().at("d").elements(), 0U);
}

struct BadFile {
  std::string file, message;
  ErrorCode code = ErrorCode::bad_model_file;
};
class BadSafetensors : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsAnErrorThatNamesTheProblem) {
  const auto header = parse(GetParam().file);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, GetParam().code);
  EXPECT_THAT(header.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Lengths, BadSafetensors,
    ::testing::Values(BadFile{"", "has 0 bytes"}, BadFile{"1234567", "has 7 bytes"},
                      BadFile{with_length(3, "{}"), "claims 3 bytes"},
                      BadFile{with_length(~std::uint64_t{0}, "{}"), "the limit is 100000000"},
                      BadFile{file_of(""), "not JSON"}, BadFile{file_of("{\"a\":"), "not JSON"},
                      BadFile{file_of("{}{}"), "not JSON"}));
INSTANTIATE_TEST_SUITE_P(
    Shapes, BadSafetensors,
    ::testing::Values(
        BadFile{file_of("[]"), "a list"}, BadFile{file_of("7"), "a number"},
        BadFile{file_of(R"({"a":null})"), "null"},
        BadFile{file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4),
                "unknown member \"x\""},
        BadFile{file_of(R"({"a":{"dtype":"F32","dtype":"F32"}})"), "twice"},
        BadFile{file_of(R"({"a":{"dtype":"F32","shape":[1]}})"), "must have dtype"},
        BadFile{file_of(R"({"a":{"shape":[[1]]}})"), "a list"},
        BadFile{file_of(R"({"a":{"shape":[-1]}})"), "a negative number"},
        BadFile{file_of(R"({"a":{"shape":[1.5]}})"), "a fraction"},
        BadFile{file_of(R"({"a":{"shape":[1,1,1,1,1,1,1,1,1]}})"), "more than 8"},
        BadFile{file_of(R"({"a":{"shape":{"b":1}}})"), "an object"},
        BadFile{file_of("{" + tensor("a", "I8", "4", "0,4") + "}", 4), "\"I8\"",
                ErrorCode::unsupported},
        BadFile{file_of("{" + tensor(std::string(300, 'n'), "F32", "1", "0,4") + "}", 4),
                "longer than 256"}));
INSTANTIATE_TEST_SUITE_P(
    Ranges, BadSafetensors,
    ::testing::Values(
        BadFile{file_of("{" + tensor("a", "F32", "2", "0,8") + "}", 7), "has 7 bytes of data"},
        BadFile{file_of("{" + tensor("a", "F32", "1", "4,0") + "}", 8), "bytes 4 to 0"},
        BadFile{file_of("{" + tensor("a", "F32", "2", "0,4") + "}", 8), "need 8"},
        BadFile{file_of("{" + tensor("a", "F32", "1", "0,4,8") + "}", 8), "more than 2"},
        BadFile{file_of("{" + tensor("a", "F32", "1", "18446744073709551612,18446744073709551615") +
                            "}",
                        8),
                "of data"},
        BadFile{file_of("{" + tensor("a", "F32", "4294967296,4294967296", "0,0") + "}"),
                "more than 2^64"},
        BadFile{file_of("{" + tensor("a", "F32", "2", "0,8") + "," +
                            tensor("b", "F32", "1", "4,8") + "}",
                        8),
                "\"a\" and \"b\" overlap"},
        BadFile{file_of("{" + tensor("a", "F32", "1", "0,4") + "," +
                            tensor("a", "F32", "1", "4,8") + "}",
                        8),
                "is there twice"}));

TEST(Safetensors, LimitsTheNumberOfTensors) {
  std::string header = "{";
  for (std::size_t i = 0; i <= SafetensorsLimits::kTensors; ++i) {
    header += (i ? "," : "") + tensor("t" + std::to_string(i), "F32", "0", "0,0");
  }
  EXPECT_THAT(parse(file_of(header + "}")).error().message, HasSubstr("65536 tensors"));
}

// Cut anywhere, or with any byte changed: an error, or tensors that lie inside the file.
TEST(Safetensors, DamageNeverLeadsOutside) {
  const std::string good = file_of(
      "{" + tensor("a", "F32", "2,3", "0,24") + "," + tensor("b", "BF16", "4", "24,32") + "}", 32);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parse(good.substr(0, size))) << size;
  }
  EXPECT_TRUE(rc::check([&] {
    std::string file = good;
    const auto at = *rc::gen::inRange<std::size_t>(0, file.size());
    file[at] = *rc::gen::arbitrary<char>();
    if (const auto header = parse(file)) {
      for (const auto& [name, found] : *header) {
        RC_ASSERT(found.begin <= found.end && found.end <= file.size());
        RC_ASSERT(found.elements() * kernels::row_bytes(found.type, 1) == found.end - found.begin);
      }
    }
  }));
}

}  // namespace
}  // namespace fixpoint::engine
