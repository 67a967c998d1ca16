// The key of a request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/tenants/tenants.hpp"

namespace fixpoint {
namespace {

using testing::HasSubstr;

TEST(PresentedKey, IsABearerTokenOrAnthropicsHeader) {
  const std::string secret = "fp-" + std::string(43, 'a');
  const auto key_of = [](const std::string& authorization, const std::string& api_key) {
    Headers headers;
    if (!authorization.empty()) headers.add("Authorization", authorization);
    if (!api_key.empty()) headers.add("X-Api-Key", api_key);
    return std::string(presented_key(headers));
  };
  EXPECT_EQ(key_of("", ""), "");
  EXPECT_EQ(key_of("Bearer " + secret, ""), secret);
  EXPECT_EQ(key_of("bearer  " + secret, ""), secret);
  EXPECT_EQ(key_of("", secret), secret);
  EXPECT_EQ(key_of("Bearer other", secret), secret);
  EXPECT_EQ(key_of("Bearer " + secret, "other"), secret);
  EXPECT_EQ(key_of("Bearer other", ""), "other");
  EXPECT_EQ(key_of("Basic " + secret, ""), "");
  EXPECT_EQ(key_of("Bearer", ""), "");
  EXPECT_EQ(key_of("Bearer ", ""), "");
}

TEST(PresentedKey, AnUnknownOneIsNotRepeated) {
  EXPECT_EQ(unknown_key(true).status, 401);
  EXPECT_EQ(unknown_key(true).code, "invalid_api_key");
  EXPECT_THAT(unknown_key(false).message, HasSubstr("needs an API key"));
}

}  // namespace
}  // namespace fixpoint
