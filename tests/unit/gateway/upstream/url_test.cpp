#include <gtest/gtest.h>

#include "gateway/upstream/client.hpp"

namespace fixpoint {
namespace {

TEST(Url, Accepted) {
  const Result<Url> plain = parse_url("http://127.0.0.1:8000/v1/");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->scheme, "http");
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 8000);
  EXPECT_EQ(plain->path, "/v1");
  const Result<Url> tls = parse_url("HTTPS://api.example.com");
  ASSERT_TRUE(tls);
  EXPECT_EQ(tls->scheme, "https");
  EXPECT_EQ(tls->port, 443);
  EXPECT_EQ(tls->path, "");
  const Result<Url> v6 = parse_url("http://[::1]:81/a/b//");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 81);
  EXPECT_EQ(v6->path, "/a/b");
  EXPECT_EQ(parse_url("http://a")->port, 80);
}

TEST(Url, Refused) {
  for (const char* text : {"",
                           "a",
                           "a.example/v1",
                           "ftp://a",
                           "http://",
                           "http:///v1",
                           "http://a?b",
                           "http://a/b?c",
                           "http://a#b",
                           "http://u:p@a/",
                           "http://a:0",
                           "http://a:",
                           "http://a:65536",
                           "http://a:8x",
                           "http://a b",
                           "http://[::1",
                           "http://[::1]x",
                           "http://[g]",
                           "http://a/b c",
                           "http://a/\xff",
                           "http://a\r\nX: y"}) {
    const Result<Url> url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::invalid) << text;
  }
  EXPECT_EQ(parse_url("http://user:secret@a/").error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace fixpoint
