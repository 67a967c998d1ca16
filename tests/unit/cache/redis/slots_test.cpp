#include "cache/redis/slots.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace fixpoint::redis {
namespace {

const Address kAsked{"asked", 7000};

Reply reply_of(const std::string& bytes) {
  ReplyReader reader;
  EXPECT_TRUE(reader.feed(bytes));
  Result<Reply> reply = reader.next();
  return reply ? std::move(*reply) : nullptr;
}

TEST(RedisSlotsTest, Crc16IsTheClusters) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);  // Redis Cluster specification
  EXPECT_EQ(crc16(""), 0);
}

// Slots as CLUSTER KEYSLOT of Redis 7 says.
TEST(RedisSlotsTest, HashTagsDecideTheSlot) {
  EXPECT_EQ(key_slot("foo"), 12182);
  EXPECT_EQ(key_slot("123456789"), 12739);
  EXPECT_EQ(key_slot("{user1000}.following"), key_slot("user1000"));
  EXPECT_EQ(key_slot("{user1000}.followers"), key_slot("user1000"));
  EXPECT_EQ(key_slot("foo{}{bar}"), crc16("foo{}{bar}") % kSlots);
  EXPECT_EQ(key_slot("foo{{bar}}zap"), key_slot("{bar"));
  EXPECT_EQ(key_slot("foo{bar}{zap}"), key_slot("bar"));
  EXPECT_EQ(key_slot("foo{bar"), crc16("foo{bar") % kSlots);
}

RC_GTEST_PROP(RedisSlotsProperty, ATagsSlotIsItsOwn, (std::string tag, std::string after)) {
  std::erase(tag, '}');
  RC_PRE(!tag.empty());
  RC_ASSERT(key_slot("prefix:{" + tag + "}" + after) == crc16(tag) % kSlots);
}

// The bitwise definition against the table.
RC_GTEST_PROP(RedisSlotsProperty, Crc16IsThePolynomials, (const std::string& bytes)) {
  unsigned crc = 0;
  for (const char c : bytes) {
    for (int bit = 7; bit >= 0; --bit) {
      const unsigned in = (static_cast<unsigned char>(c) >> bit & 1) ^ (crc >> 15 & 1);
      crc = (crc << 1 & 0xffff) ^ (in != 0 ? 0x1021 : 0);
    }
  }
  RC_ASSERT(crc16(bytes) == crc);
}

TEST(RedisSlotsTest, ReadsRedirects) {
  const auto moved = parse_redirect("MOVED 3999 127.0.0.1:6381", kAsked);
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->ask);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->node, (Address{"127.0.0.1", 6381}));
  const auto ask = parse_redirect("ASK 0 ::1:6381", kAsked);
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->ask);
  EXPECT_EQ(ask->node, (Address{"::1", 6381}));
  EXPECT_EQ(parse_redirect("MOVED 1 :6381", kAsked)->node, (Address{"asked", 6381}));
  EXPECT_EQ(parse_redirect("MOVED 1 ?:6381", kAsked)->node, (Address{"asked", 6381}));
  for (const char* bad : {"", "MOVED", "MOVED ", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1",
                          "MOVED x a:1", "MOVED 1 a", "MOVED 1 a:0", "MOVED 1 a:65536",
                          "MOVED 1 a:1x", "moved 1 a:1", "ASKED 1 a:1", "ERR MOVED 1 a:1"}) {
    EXPECT_FALSE(parse_redirect(bad, kAsked)) << bad;
  }
}

RC_GTEST_PROP(RedisSlotsProperty, AnyErrorIsReadOrRefused, (const std::string& text)) {
  const auto redirect = parse_redirect("MOVED " + text, kAsked);
  if (redirect) RC_ASSERT(redirect->slot < kSlots && redirect->node.port != 0);
}

TEST(RedisSlotsTest, ReadsTheMap) {
  const Reply reply = reply_of(
      "*3\r\n"
      "*4\r\n:0\r\n:5460\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n*3\r\n$1\r\nr\r\n:9\r\n$2\r\nid\r\n"
      "*3\r\n:5461\r\n:16382\r\n*4\r\n$0\r\n\r\n:2\r\n$2\r\nid\r\n*0\r\n"
      "*3\r\n:16383\r\n:16383\r\n*2\r\n$-1\r\n:3\r\n");
  ASSERT_TRUE(reply);
  Result<SlotMap> map = SlotMap::parse(*reply, kAsked);
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->masters(), (std::vector<Address>{{"a", 1}, {"asked", 2}, {"asked", 3}}));
  EXPECT_EQ(*map->master_of(0), (Address{"a", 1}));
  EXPECT_EQ(*map->master_of(5460), (Address{"a", 1}));
  EXPECT_EQ(*map->master_of(5461), (Address{"asked", 2}));
  EXPECT_EQ(*map->master_of(16383), (Address{"asked", 3}));
  map->set(0, {"new", 4});
  EXPECT_EQ(*map->master_of(0), (Address{"new", 4}));
  EXPECT_EQ(*map->master_of(1), (Address{"a", 1}));
}

TEST(RedisSlotsTest, KnowsSlotsOfNobody) {
  const Reply reply = reply_of("*1\r\n*3\r\n:1\r\n:2\r\n*2\r\n$1\r\na\r\n:1\r\n");
  const Result<SlotMap> map = SlotMap::parse(*reply, kAsked);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->master_of(0), nullptr);
  EXPECT_NE(map->master_of(1), nullptr);
  EXPECT_EQ(map->master_of(3), nullptr);
}

TEST(RedisSlotsTest, RefusesAMapThatIsNone) {
  for (const char* bytes :
       {"+OK\r\n", ":1\r\n", "$-1\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n$1\r\na\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:7\r\n:1\r\n"}) {
    const Reply reply = reply_of(bytes);
    ASSERT_TRUE(reply) << bytes;
    const Result<SlotMap> map = SlotMap::parse(*reply, kAsked);
    ASSERT_FALSE(map) << bytes;
    EXPECT_EQ(map.error().code, ErrorCode::protocol);
  }
}

}  // namespace
}  // namespace fixpoint::redis
