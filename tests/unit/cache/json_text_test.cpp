#include "cache/json_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace fixpoint {
namespace {

// Numbers and escapes that a parser would rewrite.
constexpr const char* kText =
    R"( {"a" : [1.0, -0, 1e2,12345678901234567890.5] ,"b\u0041":{ },"c":[] , "d":[ {"e":"x\/y,:{"},"f"],)"
    R"("g":null} )";

TEST(JsonText, ChangesWhiteSpaceAlone) {
  ASSERT_TRUE(is_json(kText));
  EXPECT_EQ(layout_json(kText, JsonLayout::compact),
            R"({"a":[1.0,-0,1e2,12345678901234567890.5],"b\u0041":{},"c":[],)"
            R"("d":[{"e":"x\/y,:{"},"f"],"g":null})");
  EXPECT_EQ(layout_json(kText, JsonLayout::spaced),
            R"({"a": [1.0, -0, 1e2, 12345678901234567890.5], "b\u0041": {}, "c": [], )"
            R"("d": [{"e": "x\/y,:{"}, "f"], "g": null})");
  EXPECT_EQ(layout_json(kText, JsonLayout::indented), R"({
  "a": [
    1.0,
    -0,
    1e2,
    12345678901234567890.5
  ],
  "b\u0041": {},
  "c": [],
  "d": [
    {
      "e": "x\/y,:{"
    },
    "f"
  ],
  "g": null
})");
  EXPECT_EQ(layout_json(kText, JsonLayout::readable), R"({
  "a": [1.0, -0, 1e2, 12345678901234567890.5],
  "b\u0041": {},
  "c": [],
  "d": [
    {
      "e": "x\/y,:{"
    },
    "f"
  ],
  "g": null
})");
  for (const JsonLayout layout : {JsonLayout::spaced, JsonLayout::indented, JsonLayout::readable}) {
    const std::string text = layout_json(kText, layout);
    EXPECT_EQ(layout_json(text, layout), text);
    EXPECT_EQ(layout_json(text, JsonLayout::compact), layout_json(kText, JsonLayout::compact));
  }
  EXPECT_EQ(layout_json(" 17 ", JsonLayout::indented), "17");
}

TEST(JsonText, SaysWhatIsNoJson) {
  for (const char* text : {"", "{", "{} {}", "{\"a\":1,\"a\":2}", "'a'", "\xFF", "[1e400]"}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
  EXPECT_FALSE(is_json(std::string(101, '[') + std::string(101, ']')));
  EXPECT_TRUE(is_json(std::string(100, '[') + std::string(100, ']')));
}

// What an upstream may answer, beside a request of any size.
TEST(JsonText, TakesWhatAnAnswerMayHold) {
  const auto array = [](std::size_t values, const char* value) {
    std::string text = "[";
    for (std::size_t i = 1; i < values; ++i) text.append(value) += ',';
    return text + value + "]";
  };
  const std::string numbers = array(1'100'000, "1"), objects = array(110'000, "{\"a\":1}");
  EXPECT_TRUE(is_json(numbers));
  EXPECT_TRUE(is_json(objects));
  const auto members = json_members(R"({"answer":)" + numbers + R"(,"material":)" + objects + "}");
  ASSERT_TRUE(members);
  EXPECT_EQ((*members)[1].name, "material");
}

TEST(JsonText, MembersKeepTheirSpelling) {
  const auto members = json_members(kText);
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 5u);
  EXPECT_EQ((*members)[0].name, "a");
  EXPECT_EQ((*members)[0].value, "[1.0, -0, 1e2,12345678901234567890.5]");
  EXPECT_EQ((*members)[1].name, "bA");
  EXPECT_EQ((*members)[4].value, "null");
  EXPECT_FALSE(json_members("[]"));
  EXPECT_FALSE(json_members("{"));
  EXPECT_FALSE(json_members(R"([{"a":1}])"));
  EXPECT_FALSE(json_members(R"({"a":1,"\u0061":2})"));
  EXPECT_TRUE(json_members(R"({"a":{"b":1},"b":[{"a":1}]})"));
}

// The text of an answer that is as deep and as large as is_json() allows, read back from a file.
TEST(JsonText, WhatIsJsonCanBeReadBesideOthers) {
  std::string text(99, '[');
  text += "0";
  const auto append = [&](std::size_t count, std::string_view value) {
    for (std::size_t i = 0; i < count; ++i) text.append(",").append(value);
  };
  append(4'000'000, R"({"a":0})");            // the deepest, all members and twice as many values
  append(16'000'000 - 8'000'000 - 100, "0");  // the arrays and the first are values, too
  text += std::string(99, ']');
  EXPECT_FALSE(is_json("[" + text + "]"));
  ASSERT_TRUE(is_json(text));
  const auto members = json_members(R"({"entry":{"request":{"b":0},"response":)" + text + "}}");
  ASSERT_TRUE(members) << members.error().message;
  EXPECT_EQ(members->size(), 1u);
}

TEST(JsonText, StringsComeBackOrAreRefused) {
  for (const std::string& text :
       {std::string("plain"), std::string("q\"\\\n\0z", 6), std::string("\xC3\xA4\xF0\x9F\x98\x80"),
        std::string("\xEF\xBF\xBD")}) {
    const auto json = quote_json(text);
    ASSERT_TRUE(json);
    EXPECT_EQ(unquote_json(*json), text);
  }
  EXPECT_FALSE(quote_json("\xFF"));
  EXPECT_FALSE(quote_json("\xC3"));
  EXPECT_FALSE(unquote_json("17"));
}

}  // namespace
}  // namespace fixpoint
