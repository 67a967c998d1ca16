#include "cache/redis/url.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace fixpoint::redis {
namespace {

std::string error_of_url(const std::string& text) {
  const Result<Url> url = parse_url(text);
  return url ? "none" : url.error().message;
}

TEST(RedisUrlTest, ReadsEveryPart) {
  const Result<Url> url = parse_url("rediss://al%69ce:p%40ss%3A%2F@cache.example:7000/3");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->user, "alice");
  EXPECT_EQ(url->password, "p@ss:/");
  EXPECT_EQ(url->address, (Address{"cache.example", 7000}));
  EXPECT_EQ(url->database, 3u);
}

TEST(RedisUrlTest, LeavesOutWhatMayBeLeftOut) {
  const Result<Url> url = parse_url("redis://localhost");
  ASSERT_TRUE(url);
  EXPECT_FALSE(url->tls);
  EXPECT_EQ(url->address, (Address{"localhost", 6379}));
  EXPECT_EQ(url->user + url->password, "");
  EXPECT_EQ(url->database, 0u);
  EXPECT_EQ(parse_url("redis://:secret@localhost")->password, "secret");
  EXPECT_EQ(parse_url("redis://localhost/")->database, 0u);
}

TEST(RedisUrlTest, ReadsAddresses) {
  EXPECT_EQ(parse_url("redis://[::1]:7000")->address, (Address{"::1", 7000}));
  EXPECT_EQ(parse_url("redis://[::1]")->address.name(), "[::1]:6379");
  EXPECT_EQ(parse_url("redis://127.0.0.1:1/0")->address.name(), "127.0.0.1:1");
}

TEST(RedisUrlTest, AnErrorNamesThePartAndQuotesNothing) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://SECRET", "scheme"},
      {"REDIS://SECRET", "scheme"},
      {"", "scheme"},
      {"redis://", "host"},
      {"redis://u:SECRET@", "host"},
      {"redis://u:SECRET@host:0", "port"},
      {"redis://u:SECRET@host:", "port"},
      {"redis://u:SECRET@host:65536", "port"},
      {"redis://u:SECRET@host:080", "port"},
      {"redis://u:SECRET@host:+80", "port"},
      {"redis://SECRET@host", "user:password"},
      {"redis://u:@host", "password is empty"},
      {"redis://u:SEC:RET@host", "%3A"},
      {"redis://u:SEC@RET@host", "%40"},
      {"redis://u:SECRET%2@host", "password"},
      {"redis://u%zz:SECRET@host", "user"},
      {"redis://u:SEC/RET@host", "path"},
      {"redis://u:SEC?RET@host", "query"},
      {"redis://u:SEC#RET@host", "fragment"},
      {"redis://u:SEC RET@host", "space"},
      {"redis://u:SECRET@host/x", "database"},
      {"redis://u:SECRET@host/0/1", "database"},
      {"redis://u:SECRET@host/-1", "database"},
      {"redis://u:SECRET@host/99999999999", "database"},
      {"redis://u:SECRET@[::1", "host"},
      {"redis://u:SECRET@[SECRET]", "host"},
      {"redis://u:SECRET@[::1]x", "host"},
      {"redis://u:SECRET@ho$t", "host"},
      {"redis://u:SECRET@a,b:1", "host"},
  };
  for (const auto& [text, part] : cases) {
    const std::string message = error_of_url(text);
    EXPECT_NE(message.find(part), std::string::npos) << text << ": " << message;
    EXPECT_TRUE(message.starts_with("redis url: ")) << text << ": " << message;
    EXPECT_EQ(message.find("SEC"), std::string::npos) << message;
    EXPECT_EQ(message.find("RET"), std::string::npos) << message;
  }
  EXPECT_NE(error_of_url("redis://" + std::string(3000, 'a')).find("2048"), std::string::npos);
}

std::string percent_encode(const std::string& text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

RC_GTEST_PROP(RedisUrlProperty, AnyUserAndPasswordComesBack,
              (const std::string& user, const std::string& password)) {
  RC_PRE(!password.empty() && user.size() + password.size() < 600);
  const Result<Url> url =
      parse_url("redis://" + percent_encode(user) + ":" + percent_encode(password) + "@h:1/2");
  RC_ASSERT(url.has_value());
  RC_ASSERT(url->user == user);
  RC_ASSERT(url->password == password);
  RC_ASSERT(url->database == 2u);
}

RC_GTEST_PROP(RedisUrlProperty, AnyTextIsReadOrRefused, (const std::string& text)) {
  const Result<Url> url = parse_url("redis://" + text);
  if (url) {
    RC_ASSERT(!url->address.host.empty());
    RC_ASSERT(url->address.port != 0);
  } else {
    RC_ASSERT(url.error().code == ErrorCode::invalid);
  }
}

}  // namespace
}  // namespace fixpoint::redis
