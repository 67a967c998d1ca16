#include "cache/entry_codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>

#include "cache/base/digest.hpp"
#include "cache/compression.hpp"
#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// With the checksum that fits.
std::string sealed(std::string bytes) {
  const Sha256Bytes digest = sha256(bytes);
  bytes.append(digest.begin(), digest.end());
  return bytes;
}

std::string error_of(std::string_view bytes, std::size_t max_body = kMaxDecodedBody) {
  const Result<Entry> entry = decode_entry(bytes, max_body);
  if (entry) return "none";
  EXPECT_EQ(entry.error().code, ErrorCode::corrupt);
  return entry.error().message;
}

TEST(EntryCodec, GivesEveryFieldBack) {
  for (const Entry& entry : awkward_entries()) {
    for (const std::size_t above : {std::size_t{0}, std::size_t{4096}, kNever}) {
      const Result<Entry> back = decode_entry(encode_entry(entry, above));
      ASSERT_TRUE(back) << back.error().message;
      expect_equal(*back, entry);
    }
  }
}

RC_GTEST_PROP(EntryCodec, AnyEntryComesBack, ()) {
  Entry entry = entry_of(*rc::gen::arbitrary<std::string>(), *rc::gen::arbitrary<std::string>(),
                         *rc::gen::element(KeyKind::prompt, KeyKind::body));
  entry.tenant = *rc::gen::arbitrary<std::string>();
  entry.model = *rc::gen::arbitrary<std::string>();
  entry.created_ms = *rc::gen::arbitrary<std::int64_t>();
  entry.first_token_ms = *rc::gen::arbitrary<std::uint32_t>();
  entry.pace = *rc::gen::arbitrary<std::string>();
  const Result<Entry> back = decode_entry(encode_entry(entry, *rc::gen::inRange(0, 100)));
  RC_ASSERT(back.has_value());
  expect_equal(*back, entry);
}

TEST(EntryCodec, CompressesWhatIsLongEnoughAndGetsSmaller) {
  const Entry text = entry_of("m", std::string(10'000, 'x'));
  EXPECT_LT(encode_entry(text, 9'999).size(), 1000u);
  EXPECT_GT(encode_entry(text, 10'000).size(), 10'000u);
  const Entry noise = entry_of("m", "short");
  EXPECT_EQ(encode_entry(noise, 0), encode_entry(noise, kNever));
}

// The form is kept by other processes: these bytes may only change with the version.
TEST(EntryCodec, TheFormOfVersion1) {
  Entry entry = entry_of("mat", "body");
  entry.tenant = "t";
  entry.created_ms = 0x0102030405060708;
  entry.first_token_ms = 1;
  entry.total_ms = 2;
  const auto text = [](const std::string& value) {
    return std::string{static_cast<char>(value.size()), 0, 0, 0} + value;
  };
  const std::string expected =
      std::string("FPE\x01") + '\x01' + '\0' + "\x08\x07\x06\x05\x04\x03\x02\x01" +
      std::string("\x01\0\0\0\x02\0\0\0", 8) + std::string("\x04\0\0\0\0\0\0\0", 8) +
      text(entry.key.hex) + text("mat") + text("t") + text("chat.completions") + text("model-1") +
      text("upstream") + text("gen-0123456789abcdef01234567") +
      std::string("\x04\0\0\0\0\0\0\0", 8) + "body";
  EXPECT_EQ(encode_entry(entry, kNever), sealed(expected));
}

TEST(EntryCodec, Version2HasThePaceAfterTheGeneration) {
  Entry entry = entry_of("mat", "body");
  std::string expected = encode_entry(entry, kNever);
  entry.pace = "1 23";
  expected.resize(expected.size() - 32);
  expected[3] = 2;
  expected.insert(expected.size() - 12, std::string("\x04\0\0\0", 4) + "1 23");
  EXPECT_EQ(encode_entry(entry, kNever), sealed(expected));
}

TEST(EntryCodec, RefusesEveryChangedOrMissingByte) {
  const std::string bytes = encode_entry(entry_of("material", std::string(300, 'x')), 100);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_NE(error_of(changed), "none") << i;
    EXPECT_NE(error_of(std::string_view(bytes).substr(0, i)), "none") << i;
  }
  EXPECT_NE(error_of(bytes + "x"), "none");
  EXPECT_THAT(error_of(bytes.substr(1)), HasSubstr("is none"));
}

// A right checksum does not make the rest right.
TEST(EntryCodec, RefusesWhatDoesNotFitBehindARightChecksum) {
  const auto changed = [](const Entry& entry, std::size_t above, auto change) {
    std::string bytes = encode_entry(entry, above);
    bytes.resize(bytes.size() - 32);
    change(bytes);
    return error_of(sealed(bytes));
  };
  const Entry plain = entry_of("m", "body");
  const Entry large = entry_of("m", std::string(10'000, 'x'));
  constexpr std::size_t kVersionAt = 3, kKindAt = 4, kCompressionAt = 5, kBodySizeAt = 22;
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b[kVersionAt] = 3; }), HasSubstr("not know"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b[kKindAt] = 2; }), HasSubstr("unknown kind"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b[kCompressionAt] = 2; }), HasSubstr("unknown"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b[kCompressionAt] = 1; }), HasSubstr("length"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b[kBodySizeAt] = 5; }), HasSubstr("length"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b.pop_back(); }), HasSubstr("do not fit"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b += 'x'; }), HasSubstr("do not fit"));
  EXPECT_THAT(changed(plain, kNever, [](auto& b) { b.resize(20); }), HasSubstr("do not fit"));
  EXPECT_THAT(changed(large, 0, [](auto& b) { b[kBodySizeAt] = 1; }), HasSubstr("length"));
  EXPECT_THAT(changed(large, 0, [](auto& b) { b.back() = char(~b.back()); }),
              HasSubstr("decompress"));
}

TEST(EntryCodec, ALimitOnTheBody) {
  const Entry large = entry_of("m", std::string(10'000, 'x'));
  for (const std::size_t above : {std::size_t{0}, kNever}) {
    EXPECT_TRUE(decode_entry(encode_entry(large, above), 10'000));
    EXPECT_THAT(error_of(encode_entry(large, above), 9'999), HasSubstr("limit"));
  }
}

TEST(Compression, TakesNoMoreThanTheClaimedLength) {
  const std::string compressed = *compress(std::string(100'000, 'x'));
  EXPECT_EQ(decompress(compressed, 100'000)->size(), 100'000u);
  for (const std::size_t size : {0u, 99'999u, 100'001u}) {
    EXPECT_EQ(decompress(compressed, size).error().code, ErrorCode::corrupt);
  }
  EXPECT_FALSE(decompress("garbage", 7));
  EXPECT_FALSE(decompress("", 0));
  EXPECT_FALSE(compress("").has_value());
}

}  // namespace
}  // namespace fixpoint::test
