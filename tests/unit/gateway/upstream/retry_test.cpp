#include "gateway/upstream/retry.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace fixpoint {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
const auto kNow = std::chrono::system_clock::from_time_t(784111777);

Headers fields(const std::vector<std::pair<std::string, std::string>>& list) {
  Headers headers;
  for (const auto& [name, value] : list) headers.add(name, value);
  return headers;
}

TEST(Retry, Statuses) {
  for (const int status : {408, 409, 429, 500, 501, 502, 503, 504, 529}) {
    EXPECT_TRUE(may_retry(status, {})) << status;
    EXPECT_FALSE(may_retry(status, fields({{"X-Should-Retry", "false"}}))) << status;
    EXPECT_TRUE(may_pass(status)) << status;
    EXPECT_TRUE(may_retry(status, fields({{"x-should-retry", "nonsense"}}))) << status;
  }
  for (const int status : {200, 204, 301, 400, 401, 403, 404, 413, 422}) {
    EXPECT_FALSE(may_retry(status, {})) << status;
    EXPECT_FALSE(may_pass(status)) << status;
  }
  EXPECT_TRUE(may_retry(400, fields({{"x-should-retry", "True"}})));
  EXPECT_FALSE(may_retry(200, fields({{"x-should-retry", "true"}}))) << "an answer is an answer";
}

TEST(Retry, Errors) {
  for (const auto code : {ErrorCode::unreachable, ErrorCode::timeout, ErrorCode::closed}) {
    EXPECT_TRUE(may_retry(Error{code, ""}));
    EXPECT_TRUE(is_upstream_fault(Error{code, ""}));
  }
  for (const auto code : {ErrorCode::invalid, ErrorCode::protocol, ErrorCode::overloaded}) {
    EXPECT_FALSE(may_retry(Error{code, ""}));
  }
  EXPECT_TRUE(is_upstream_fault(Error{ErrorCode::protocol, ""}));
  EXPECT_FALSE(is_upstream_fault(Error{ErrorCode::overloaded, ""}));
  EXPECT_FALSE(is_upstream_fault(Error{ErrorCode::invalid, ""}));
}

TEST(Retry, Faults) {
  for (const int status : {500, 502, 503, 504, 529}) EXPECT_TRUE(is_upstream_fault(status));
  for (const int status : {200, 400, 408, 409, 429, 499, 501}) {
    EXPECT_FALSE(is_upstream_fault(status)) << status;
  }
}

TEST(Retry, WhatTheUpstreamAsksFor) {
  struct Case {
    std::vector<std::pair<std::string, std::string>> headers;
    long long ms;  // -1: nothing
  };
  const std::vector<Case> cases = {
      {{}, -1},
      {{{"Retry-After-Ms", "250"}}, 250},
      {{{"retry-after-ms", "250.2"}}, 251},
      {{{"retry-after-ms", "250"}, {"retry-after", "9"}}, 250},
      {{{"retry-after-ms", "x"}, {"retry-after", "9"}}, 9000},
      {{{"retry-after-ms", "0"}, {"retry-after", "9"}}, 9000},
      {{{"retry-after", "1.5"}}, 1500},
      {{{"retry-after", "0"}}, -1},
      {{{"retry-after", "-3"}}, -1},
      {{{"retry-after", "nan"}}, -1},
      {{{"retry-after", "soon"}}, -1},
      {{{"retry-after", ""}}, -1},
      {{{"retry-after", "7 "}}, -1},
      {{{"retry-after", "1e400"}}, -1},
      {{{"retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"}}, 10'000},
      {{{"retry-after", "Sunday, 06-Nov-94 08:49:47 GMT"}}, 10'000},
      {{{"retry-after", "Sun Nov  6 08:49:47 1994"}}, 10'000},
      {{{"retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"}}, -1},
      {{{"retry-after", "Sun, 06 Nov 1993 08:49:37 GMT"}}, -1},
      {{{"retry-after", "Sun, 06 Nov 1994 08:49:47 CET"}}, -1},
  };
  for (const Case& c : cases) {
    const auto wait = retry_after(fields(c.headers), kNow);
    const std::string name = c.headers.empty() ? "none" : c.headers.back().second;
    EXPECT_EQ(wait ? wait->count() : -1, c.ms) << name;
  }
  const auto huge = retry_after(fields({{"retry-after", "1e300"}}), kNow);
  ASSERT_TRUE(huge);
  EXPECT_GT(*huge, kMaxRetryWait);
}

TEST(Retry, BackoffDoublesToItsLimit) {
  const long long expected[] = {500, 1000, 2000, 4000, 8000, 8000, 8000};
  for (std::uint64_t failed = 1; failed <= 7; ++failed) {
    EXPECT_EQ(retry_wait(failed, nullptr, kNow, 0)->count(), expected[failed - 1]);
    EXPECT_EQ(retry_wait(failed, nullptr, kNow, 1)->count(), expected[failed - 1] * 3 / 4);
  }
  EXPECT_EQ(retry_wait(UINT64_MAX, nullptr, kNow, 0), milliseconds(8000));
  for (int i = 0; i < 1000; ++i) {
    const double random = retry_random();
    EXPECT_GE(random, 0);
    EXPECT_LT(random, 1);
  }
}

TEST(Retry, AskedWaitsGoBeforeBackoff) {
  const Headers asks = fields({{"retry-after", "3"}});
  EXPECT_EQ(retry_wait(1, &asks, kNow, 0.5), seconds(3));
  const Headers most = fields({{"retry-after", "60"}});
  EXPECT_EQ(retry_wait(1, &most, kNow, 0.5), seconds(60));
  const Headers more = fields({{"retry-after", "61"}});
  EXPECT_FALSE(retry_wait(1, &more, kNow, 0.5));
  const Headers nonsense = fields({{"retry-after", "later"}});
  EXPECT_EQ(retry_wait(1, &nonsense, kNow, 0), milliseconds(500));
}

}  // namespace
}  // namespace fixpoint
