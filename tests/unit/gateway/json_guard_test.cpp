#include "gateway/json_guard.hpp"

#include <gtest/gtest.h>

namespace fixpoint {
namespace {

std::string problem(const std::string& text, const JsonLimits& limits = {}) {
  const auto parsed = parse_json(text, limits);
  return parsed ? "" : parsed.error().message;
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonGuard, LetsOrdinaryJsonThrough) {
  const auto parsed = parse_json(R"({"b":[1,2.5,null,true,"x"],"a":{}})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->dump(), R"({"b":[1,2.5,null,true,"x"],"a":{}})");
  EXPECT_EQ(problem("7"), "");
}

TEST(JsonGuard, NamesWhatIsNoJson) {
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,}", "nul", "\"\xff\"", "1 2"}) {
    EXPECT_NE(problem(bad).find("is not JSON"), std::string::npos) << bad;
  }
  EXPECT_NE(problem("1e999").find("double"), std::string::npos);
}

TEST(JsonGuard, HoldsEachLimit) {
  EXPECT_EQ(problem(nested(128)), "");
  EXPECT_NE(problem(nested(129)).find("128 levels"), std::string::npos);
  EXPECT_NE(problem(nested(1'000'000)).find("128 levels"), std::string::npos);  // and no crash

  JsonLimits limits;
  limits.members_per_object = 2;
  EXPECT_EQ(problem(R"([{"a":1,"b":2},{"a":1,"b":2}])", limits), "");
  EXPECT_NE(problem(R"({"a":1,"b":2,"c":3})", limits).find("2 members"), std::string::npos);
  limits.members = 3;
  EXPECT_NE(problem(R"([{"a":1,"b":2},{"a":1,"b":2}])", limits).find("3 members in all"),
            std::string::npos);
  limits.values = 4;
  EXPECT_EQ(problem("[1,2,3]", limits), "");
  EXPECT_NE(problem("[1,2,3,4]", limits).find("4 values"), std::string::npos);
}

}  // namespace
}  // namespace fixpoint
