#include "gateway/json_edit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace fixpoint {
namespace {

using testing::HasSubstr;

TEST(JsonEdit, FindsTheValueAsSpelled) {
  const std::string object = R"( {"a" : 1.50e+3 , "b":{"a":2}, "c":[ 1, "x}" ] } )";
  EXPECT_EQ(**find_member(object, "a"), "1.50e+3");
  EXPECT_EQ(**find_member(object, "b"), R"({"a":2})");
  EXPECT_EQ(**find_member(object, "c"), R"([ 1, "x}" ])");
  EXPECT_EQ(*find_member(object, "d"), std::nullopt);
}

TEST(JsonEdit, NamesCompareDecoded) {
  EXPECT_EQ(**find_member(R"({"mod\u0065l":1})", "model"), "1");
  EXPECT_EQ(**find_member(R"({"\ud83d\ude00\n\"":1})", "\xF0\x9F\x98\x80\n\""), "1");
  EXPECT_FALSE(find_member(R"({"\ud83d":1})", "a"));  // a lone surrogate is no text
}

TEST(JsonEdit, SetReplacesTheValueAlone) {
  const std::string object = "{\"big\" :123456789012345678901234567890,\n\t\"model\" : \"x\" }";
  EXPECT_EQ(*set_member(object, "model", "\"yy\""),
            "{\"big\" :123456789012345678901234567890,\n\t\"model\" : \"yy\" }");
  EXPECT_EQ(*set_member(object, "n", "2"),
            "{\"big\" :123456789012345678901234567890,\n\t\"model\" : \"x\",\"n\":2 }");
  EXPECT_EQ(*set_member("{ }", "a\"", "null"), "{\"a\\\"\":null }");
}

TEST(JsonEdit, RefusesWhatIsNoObject) {
  for (const char* bad :
       {"", "[]", "{", "{\"a\":1", "{\"a\":1,}", "{\"a\"}", "{a:1}", "{\"a\":01}", "{\"a\":1.}",
        "{\"a\":.5}", "{\"a\":+1}", "{\"a\":tru}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}", "{\"a\":1}x", "{\"a\":1 \"b\":2}", "{\"a\":[1,]}", "{\"a\":NaN}"}) {
    EXPECT_FALSE(find_member(bad, "a")) << bad;
    EXPECT_FALSE(set_member(bad, "a", "1")) << bad;
  }
  EXPECT_THAT(find_member("{\"a\":1,}", "a").error().message, HasSubstr("at byte 7"));
}

TEST(JsonEdit, RefusesDoubledMembersAndBadValues) {
  EXPECT_THAT(find_member(R"({"a":1,"\u0061":2})", "a").error().message,
              HasSubstr("\"a\" is given twice"));
  EXPECT_TRUE(find_member(R"({"a":1,"a":2})", "b"));
  for (const char* bad : {"", "1,\"x\":2", "{", "a", "1 2"}) {
    EXPECT_FALSE(set_member("{}", "a", bad)) << bad;
  }
}

TEST(JsonEdit, DepthIsLimited) {
  const auto nested = [](std::size_t n) {
    return "{\"a\":" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  EXPECT_TRUE(find_member(nested(127), "a"));
  EXPECT_FALSE(find_member(nested(128), "a"));
  EXPECT_FALSE(find_member("{\"a\":" + std::string(1'000'000, '['), "a"));
}

TEST(JsonEdit, StringsRoundTrip) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    std::string ascii;  // nlohmann refuses what is not UTF-8
    for (const char c : bytes) ascii += static_cast<char>(c & 0x7f);
    RC_ASSERT(nlohmann::json::parse(json_string(ascii)).get<std::string>() == ascii);
  }));
}

// Any edit gives what a parser, the same edit and a parser give.
TEST(JsonEdit, AgreesWithAParser) {
  EXPECT_TRUE(rc::check([] {
    using Json = nlohmann::ordered_json;
    const auto names = *rc::gen::unique<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::element('a', 'b', '"', '\\', '\n')));
    Json object = Json::object();
    for (const std::string& name : names) {
      object[name] = *rc::gen::element<Json>(Json(1), Json("}\","), Json::array({1, "]"}),
                                             Json({{"a", nullptr}}), Json(-1.5e-7), Json(true));
    }
    const int indent = *rc::gen::inRange(-1, 3);
    const std::string text = object.dump(indent);
    const auto name = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '"'));

    const auto found = find_member(text, name);
    RC_ASSERT(found.has_value());
    RC_ASSERT(found->has_value() == object.contains(name));
    if (*found) RC_ASSERT(Json::parse(**found) == object[name]);

    const auto set = set_member(text, name, "[7]");
    Json expected = object;
    expected[name] = Json::array({7});
    RC_ASSERT(Json::parse(*set) == expected);
  }));
}

TEST(JsonEdit, AcceptsExactlyWhatAParserAccepts) {
  EXPECT_TRUE(rc::check([] {
    const auto inner = *rc::gen::container<std::string>(rc::gen::element(
        '{', '}', '[', ']', '"', ':', ',', '1', '0', '-', '.', 'e', ' ', '\\', 'n', 'u'));
    const std::string text = "{\"k\":" + inner + "}";
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    if (!parsed.is_discarded()) {
      RC_ASSERT(find_member(text, "no such").has_value());
    } else {
      RC_ASSERT(!find_member(text, "no such").has_value());
    }
  }));
}

}  // namespace
}  // namespace fixpoint
