#include "gateway/api/job.hpp"

#include <gtest/gtest.h>

#include <cctype>

namespace fixpoint {
namespace {

TEST(GenerationId, BeginsWithItsTime) {
  const auto early = new_generation_id(1'764'000'000'000),
             late = new_generation_id(1'764'000'000'001);
  EXPECT_EQ(early.substr(0, 15), "gen-19ab697e800");
  EXPECT_LT(early.substr(0, 15), late.substr(0, 15));
  EXPECT_NE(new_generation_id(1), new_generation_id(1));
  ASSERT_EQ(early.size(), 28U);
  for (const char c : early.substr(4)) EXPECT_TRUE(std::isxdigit(static_cast<unsigned char>(c)));
}

TEST(RandomHex, HasAsManyDigitsAsAsked) {
  for (const std::size_t digits : {0U, 1U, 13U, 16U, 17U, 32U}) {
    EXPECT_EQ(random_hex(digits).size(), digits);
  }
  EXPECT_NE(random_hex(24), random_hex(24));
}

}  // namespace
}  // namespace fixpoint
