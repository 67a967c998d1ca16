#include "cache/redis/record.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::redis {
namespace {

Entry sample(const std::string& body) {
  Entry entry = test::entry_of("material", body);
  entry.tenant = "team";
  return entry;
}

TEST(RedisRecordTest, TheTagAloneSaysWhatFiltersAsk) {
  const std::string value = encode_record(sample(std::string(9000, 'x')), 4096);
  const Result<std::size_t> bytes = tag_bytes(value);
  ASSERT_TRUE(bytes);
  EXPECT_LE(*bytes, kUsualTagBytes);
  const Result<Tag> tag = decode_tag(value.substr(0, *bytes));
  ASSERT_TRUE(tag) << tag.error().message;
  EXPECT_EQ(tag->model, "model-1");
  EXPECT_EQ(tag->tenant, "team");
  EXPECT_EQ(tag->created_ms, 1'700'000'000'123);
  EXPECT_EQ(tag->body_bytes, 9000u);
  EXPECT_LT(tag->stored_bytes, 100u);
  EXPECT_EQ(tag->entry_bytes, value.size() - *bytes);
  EXPECT_EQ(decode_tag(encode_record(sample("12345"), 4096))->stored_bytes, 5u);
  Entry streamed = sample("12345");
  streamed.pace = "10 20 30";
  EXPECT_EQ(decode_tag(encode_record(streamed, 4096))->stored_bytes, 5u);
}

TEST(RedisRecordTest, EveryChangedByteIsFound) {
  const std::string value = encode_record(sample("body"), 4096);
  ASSERT_TRUE(decode_record(value));
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::string changed = value;
    changed[i] ^= 1;
    const Result<Entry> entry = decode_record(changed);
    // The kept length is the only part that nothing else tells; it is for statistics.
    const bool statistic = i >= kTagHeadBytes + 16 && i < kTagHeadBytes + 24;
    ASSERT_EQ(entry.has_value(), statistic) << "byte " << i;
    if (!statistic) {
      EXPECT_EQ(entry.error().code, ErrorCode::corrupt);
    }
  }
  for (std::size_t size = 0; size < value.size(); ++size) {
    ASSERT_FALSE(decode_record(value.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_record(value + "x"));
}

RC_GTEST_PROP(RedisRecordProperty, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  RC_ASSERT(!decode_record(bytes).has_value());
  RC_ASSERT(!decode_record(std::string("FPR\x01", 4) + bytes).has_value());
  (void)decode_tag(std::string("FPR\x01\x30\0\0\0", 8) + bytes);
}

RC_GTEST_PROP(RedisRecordProperty, NamesComeBack,
              (const std::string& model, const std::string& tenant, const std::string& body)) {
  Entry entry = sample(body);
  entry.model = model;
  entry.tenant = tenant;
  const std::string value = encode_record(entry, 16);
  const Result<Tag> tag = decode_tag(value);
  RC_ASSERT(tag.has_value() && tag->model == model && tag->tenant == tenant);
  const Result<Entry> back = decode_record(value);
  RC_ASSERT(back.has_value() && *back->body == body);
}

TEST(RedisRecordTest, KeysHaveNames) {
  const CacheKey key = test::key_of("material");
  const std::string name = record_key("fixpoint:", key);
  EXPECT_EQ(name, "fixpoint:e:{body:" + key.hex + "}");
  const Result<CacheKey> back = parse_record_key("fixpoint:", name);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->name(), key.name());
  EXPECT_FALSE(parse_record_key("other:", name));
  EXPECT_FALSE(parse_record_key("fixpoint:", name + "x"));
  EXPECT_FALSE(parse_record_key("fixpoint:", "fixpoint:e:{body:short}"));
  EXPECT_FALSE(parse_record_key("fixpoint:", "fixpoint:e:"));
  EXPECT_EQ(record_pattern("a*[b]?\\"), "a\\*\\[b\\]\\?\\\\e:{*}");
}

}  // namespace
}  // namespace fixpoint::redis
