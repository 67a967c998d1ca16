#include "cache/base/release.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fixpoint {
namespace {

TEST(Release, KeepsNoMemory) {
  std::string text(100'000, 'x');
  std::vector<std::string> list(1000, text);
  release(text);
  release(list);
  EXPECT_TRUE(text.empty());
  EXPECT_LT(text.capacity(), 100U);
  EXPECT_EQ(list.capacity(), 0U);
}

}  // namespace
}  // namespace fixpoint
