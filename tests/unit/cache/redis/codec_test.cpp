#include "cache/redis/codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace fixpoint::redis {
namespace {

TEST(RedisCodecTest, WritesCommandsWithAnyBytes) {
  EXPECT_EQ(command({"GET", std::string_view("a\0\r\n", 4)}),
            std::string("*2\r\n$3\r\nGET\r\n$4\r\na\0\r\n\r\n", 23));
  EXPECT_EQ(command({"PING", ""}), "*2\r\n$4\r\nPING\r\n$0\r\n\r\n");
}

RC_GTEST_PROP(RedisCodecProperty, CommandsAreArraysOfStrings,
              (const std::string& a, const std::string& b)) {
  ReplyReader reader;
  RC_ASSERT(reader.feed(command({a, b})).has_value());
  const Result<Reply> reply = reader.next();
  RC_ASSERT(reply.has_value() && *reply != nullptr && is_array(**reply));
  RC_ASSERT((*reply)->elements == 2u);
  RC_ASSERT(text_of(*(*reply)->element[0]) == a);
  RC_ASSERT(text_of(*(*reply)->element[1]) == b);
}

// However a stream is cut into pieces, the same replies come out.
RC_GTEST_PROP(RedisCodecProperty, PiecesMakeNoDifference, (const std::vector<std::string>& texts)) {
  std::string stream;
  for (const std::string& text : texts) {
    stream += "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
    stream += ":" + std::to_string(text.size()) + "\r\n";
  }
  ReplyReader reader;
  std::vector<std::string> seen;
  std::size_t at = 0;
  while (at < stream.size()) {
    const auto size =
        std::min<std::size_t>(*rc::gen::inRange<std::size_t>(1, 9), stream.size() - at);
    RC_ASSERT(reader.feed(std::string_view(stream).substr(at, size)).has_value());
    at += size;
    for (;;) {
      const Result<Reply> reply = reader.next();
      RC_ASSERT(reply.has_value());
      if (!*reply) break;
      if (is_text(**reply)) {
        seen.emplace_back(text_of(**reply));
      } else {
        RC_ASSERT(is_integer(**reply));
        RC_ASSERT((*reply)->integer == static_cast<long long>(seen.back().size()));
      }
    }
  }
  RC_ASSERT(seen == texts);
}

RC_GTEST_PROP(RedisCodecProperty, AnyBytesAreRepliesOrAnError, (const std::string& bytes)) {
  ReplyReader reader(1024);
  if (!reader.feed(bytes)) return;
  for (int i = 0; i < 1000; ++i) {
    const Result<Reply> reply = reader.next();
    if (!reply || !*reply) return;
  }
}

std::string error_after(const std::string& bytes, std::size_t max_bytes = 1000) {
  ReplyReader reader(max_bytes);
  if (const Result<void> fed = reader.feed(bytes); !fed) return fed.error().message;
  const Result<Reply> reply = reader.next();
  if (!reply) return reply.error().message;
  return *reply ? "a reply" : "waits";
}

TEST(RedisCodecTest, BoundsWhatAPeerMakesItKeep) {
  EXPECT_EQ(error_after("$1000\r\n"), "waits");
  EXPECT_NE(error_after("$1001\r\n").find("longer than 1000 bytes"), std::string::npos);
  EXPECT_NE(error_after("$99999999999999999999999\r\n"), "waits");
  EXPECT_NE(error_after("$" + std::string(100, '1')).find("length"), std::string::npos);
  EXPECT_NE(error_after("*2\r\n$600\r\n" + std::string(600, 'x') + "\r\n$600\r\n" +
                        std::string(500, 'x')),
            "waits");
  EXPECT_NE(error_after("*65537\r\n").find("65536"), std::string::npos);
  EXPECT_EQ(error_after("*65536\r\n"), "waits");
  EXPECT_EQ(error_after("+" + std::string(60'000, 'x'), 1 << 20), "waits");
  EXPECT_NE(error_after("+" + std::string(70'000, 'x'), 1 << 20).find("64 KiB"), std::string::npos);
  EXPECT_NE(error_after(":" + std::string(70'000, '1'), 1 << 20).find("64 KiB"), std::string::npos);
  EXPECT_NE(error_after("HTTP/1.1 400 Bad Request\r\n"), "waits");
}

// The limit is of one reply, not of the stream.
TEST(RedisCodecTest, CountsEachReplyAnew) {
  ReplyReader reader(1000);
  const std::string one = "$900\r\n" + std::string(900, 'x') + "\r\n";
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(reader.feed(one + "$9"));  // and the begin of the next
    const Result<Reply> reply = reader.next();
    ASSERT_TRUE(reply && *reply);
    const Result<Reply> rest = reader.next();
    ASSERT_TRUE(rest && !*rest) << rest.error().message;
    ASSERT_TRUE(reader.feed("00\r\n" + std::string(900, 'y') + "\r\n"));
    const Result<Reply> second = reader.next();
    ASSERT_TRUE(second && *second) << i;
  }
}

TEST(RedisCodecTest, ErrorsOfTheServerHaveACode) {
  const auto code = [](const std::string& line) {
    ReplyReader reader;
    EXPECT_TRUE(reader.feed("-" + line + "\r\n"));
    return error_of(**reader.next(), "SET").code;
  };
  EXPECT_EQ(code("OOM command not allowed"), ErrorCode::overloaded);
  EXPECT_EQ(code("READONLY You can't write"), ErrorCode::io);
  EXPECT_EQ(code("MISCONF Redis is configured"), ErrorCode::io);
  EXPECT_EQ(code("LOADING Redis is loading"), ErrorCode::unreachable);
  EXPECT_EQ(code("CLUSTERDOWN The cluster is down"), ErrorCode::unreachable);
  EXPECT_EQ(code("NOAUTH Authentication required."), ErrorCode::unreachable);
  EXPECT_EQ(code("ERR unknown"), ErrorCode::protocol);
  EXPECT_EQ(code("OOMX"), ErrorCode::protocol);
}

}  // namespace
}  // namespace fixpoint::redis
