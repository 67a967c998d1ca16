#include "gateway/json_guard.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>

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

TEST(JsonGuard, TakesHalfASurrogatePairFromAnswers) {
  const auto read = [](const std::string& text) {
    bool exact = true;
    const auto parsed = parse_answer(text, &exact);
    EXPECT_TRUE(parsed) << text;
    EXPECT_EQ(parse_json(text).has_value(), exact) << text;
    return parsed ? parsed->get<std::string>() : std::string();
  };
  EXPECT_EQ(read(R"("a\ud83d\ude00b")"), "a\U0001F600b");
  EXPECT_EQ(read(R"("a\ud83d")"), "a\uFFFD");
  EXPECT_EQ(read(R"("\ude00b")"), "\uFFFDb");
  EXPECT_EQ(read(R"("\ud83d\ud83d\ude00")"), "\uFFFD\U0001F600");
  EXPECT_EQ(read(R"("\ud83d\u0041")"), "\uFFFDA");
  EXPECT_EQ(read(R"("\ud83d\\ude00")"), "\uFFFD\\ude00");
  EXPECT_EQ(read(R"("\ude00\ud83d")"), "\uFFFD\uFFFD");
  EXPECT_EQ(read(R"("\ud83d\n")"), "\uFFFD\n");
  EXPECT_FALSE(parse_answer(R"("\ud83d\ude0")"));
  EXPECT_FALSE(parse_answer(R"("\ud83d\x")"));
}

TEST(JsonGuard, HoldsEachLimit) {
  EXPECT_EQ(problem(nested(128)), "");
  EXPECT_NE(problem(nested(129)).find("128 levels"), std::string::npos);
  EXPECT_NE(problem(nested(1'000'000)).find("128 levels"), std::string::npos);  // and no crash

  JsonLimits shallow;
  shallow.depth = 2;
  EXPECT_EQ(problem("[[]]", shallow), "");
  EXPECT_NE(problem("[[[]]]", shallow).find("2 levels"), std::string::npos);

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

// A value of random kind, with members of one name now and then.
std::string any_json(int depth) {
  static const std::vector<std::string> kScalars = {"null",
                                                    "true",
                                                    "false",
                                                    "0",
                                                    "-0",
                                                    "-1",
                                                    "18446744073709551615",
                                                    "18446744073709551616",
                                                    "-9223372036854775808",
                                                    "-9223372036854775809",
                                                    "1.5",
                                                    "-2.5e-3",
                                                    "1E5",
                                                    "1e-400",
                                                    "4.9e-324",
                                                    "123456789012345678901234.5",
                                                    "\"\"",
                                                    "\"a\\u00e9\\n\"",
                                                    "\"\\ud83d\\ude00 \xC3\xA9\"",
                                                    "[]",
                                                    "{}"};
  static const std::vector<std::string> kNames = {"a",       "b", "c",
                                                  "\\u0061", "",  "a long name of a member"};
  const int kind = depth > 3 ? 0 : *rc::gen::inRange(0, 3);
  if (kind == 0) return *rc::gen::elementOf(kScalars);
  std::string text(1, kind == 1 ? '[' : '{');
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += *rc::gen::element<std::string>(",", " ,", ",\n\t");
    if (kind == 2) text += '"' + *rc::gen::elementOf(kNames) + "\" :";
    text += any_json(depth + 1);
  }
  return text + (kind == 1 ? ']' : '}');
}

TEST(JsonGuard, BuildsWhatNlohmannParses) {
  EXPECT_TRUE(rc::check("of JSON, whole or with a byte changed", [] {
    auto text = any_json(0);
    if (*rc::gen::arbitrary<bool>()) {
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      text[at] =
          *rc::gen::element('"', '\\', ',', ':', '{', ']', '0', '-', '.', 'e', ' ', '\x01', '\xff');
    }
    const auto expected = nlohmann::ordered_json::parse(text, nullptr, false);
    const auto parsed = parse_json(text);
    RC_ASSERT(parsed.has_value() == !expected.is_discarded());
    if (!parsed) return;
    RC_ASSERT(*parsed == expected);
    RC_ASSERT(parsed->dump() == expected.dump());  // whole numbers and others, too
  }));
}

TEST(JsonGuard, OfOneNameTheLastCountsHoweverMany) {
  for (const int members : {3, 100, 1000}) {
    std::string text = "{";
    for (int i = 0; i < members; ++i) {
      text += "\"m" + std::to_string(i % (members - 2)) + "\":" + std::to_string(i) + ",";
    }
    text.back() = '}';
    const auto parsed = parse_json(text);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->dump(), nlohmann::ordered_json::parse(text).dump());
  }
}

// The tree's objects find a member by looking at each: building one must not, or this takes half a
// minute.
TEST(JsonGuard, TakesAnObjectOfManyMembers) {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  text.back() = '}';
  const auto parsed = parse_json(text, kAnswerLimits);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->size(), 100'000U);
}

TEST(JsonGuard, NumbersAreOfNlohmannsKinds) {
  for (const char* text :
       {"0", "5", "-0", "-5", "1.5", "18446744073709551615", "18446744073709551616",
        "-9223372036854775808", "-9223372036854775809"}) {
    EXPECT_EQ(parse_json(text)->type(), nlohmann::ordered_json::parse(text).type()) << text;
  }
}

// To nlohmann's parser a zero byte is the end of the text.
TEST(JsonGuard, RefusesWhatFollowsAZeroByte) {
  EXPECT_NE(problem(std::string("{}\0{}", 5)), "");
}

TEST(JsonGuard, IgnoresAByteOrderMark) {
  EXPECT_EQ(problem("\xEF\xBB\xBF{}"), "");
}

}  // namespace
}  // namespace fixpoint
