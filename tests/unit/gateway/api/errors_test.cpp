#include "gateway/api/errors.hpp"

#include <gtest/gtest.h>

#include "gateway/log.hpp"

namespace fixpoint {
namespace {

TEST(UpstreamErrors, WhatTheClientIsTold) {
  struct {
    ErrorCode error;
    int status;
    const char* code;
  } const cases[] = {
      {ErrorCode::timeout, 504, "upstream_timeout"},
      {ErrorCode::overloaded, 503, "upstream_overloaded"},
      {ErrorCode::protocol, 502, "upstream_invalid_response"},
      {ErrorCode::invalid, 502, "upstream_invalid_response"},
      {ErrorCode::closed, 502, "upstream_closed"},
      {ErrorCode::unreachable, 502, "upstream_unreachable"},
  };
  for (const auto& c : cases) {
    const ApiError error = upstream_error(Error{c.error, "why"}, "name");
    EXPECT_EQ(error.status, c.status);
    EXPECT_EQ(error.code, c.code);
    EXPECT_EQ(error.message, "Upstream 'name': why");
  }
}

TEST(UpstreamErrors, KeysAreHiddenHoweverTheyAreSpelled) {
  hide_in_log({"sk-of/the+gateway"});
  EXPECT_EQ(upstream_words(R"({"error":"bad key sk-of/the+gateway"})"),
            R"({"error":"bad key ***"})");
  EXPECT_EQ(upstream_words(R"({"error":"bad key sk-of\/the\u002bgateway"})"),
            R"({"error":"bad key ***"})");
  // What quotes none goes as it came.
  EXPECT_EQ(upstream_words(R"({"error":  "caf\u00e9\n"})"), R"({"error":  "caf\u00e9\n"})");
  EXPECT_EQ(upstream_words(R"(no JSON \ sk-of/the+gateway)"), R"(no JSON \ ***)");
}

TEST(UpstreamErrors, WhetherTheClientShouldTryAgain) {
  const ApiError full = upstream_error(Error{ErrorCode::overloaded, ""}, "name");
  ASSERT_NE(full.headers.find("Retry-After"), nullptr);
  EXPECT_EQ(*full.headers.find("Retry-After"), "1");
  const ApiError beyond_limit = upstream_error(Error{ErrorCode::invalid, ""}, "name");
  ASSERT_NE(beyond_limit.headers.find("x-should-retry"), nullptr);
  EXPECT_EQ(*beyond_limit.headers.find("x-should-retry"), "false");
}

}  // namespace
}  // namespace fixpoint
