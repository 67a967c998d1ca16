#include "cache/base/canonical_json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace fixpoint {
namespace {

using namespace std::string_literals;

std::string canonical(std::string_view text) {
  const Result<std::string> result = canonical_json(text);
  return result ? *result : "error: " + result.error().message;
}

std::string error_of(std::string_view text, const CanonicalOptions& options = {}) {
  const Result<std::string> result = canonical_json(text, options);
  if (result) return "accepted: " + *result;
  EXPECT_EQ(result.error().code, ErrorCode::invalid);
  return result.error().message;
}

// RFC 8785, sections 3.2.2 and 3.2.4, but for its first number: the RFC rounds 333333333.33333329
// to the double 333333333.3333333, and here it keeps its digits, since the double would print
// ...331 for them.
TEST(CanonicalJson, RfcSample) {
  EXPECT_EQ(canonical(R"({
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  })"),
            R"({"literals":[null,true,false],)"
            R"("numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],)"
            R"("string":"€$\u000f\nA'B\"\\\\\"/"})");
}

// RFC 8785, section 3.2.3: U+1F600 is a surrogate pair and sorts before U+FB33.
TEST(CanonicalJson, RfcSorting) {
  EXPECT_EQ(canonical(R"({"\u20ac":"Euro Sign","\r":"Carriage Return",
    "\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face",
    "\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"})"),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\","
            "\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\","
            "\"\U0001F600\":\"Emoji: Grinning Face\","
            "\"\uFB33\":\"Hebrew Letter Dalet With Dagesh\"}");
}

TEST(CanonicalJson, ShapesAndScalars) {
  EXPECT_EQ(canonical(" [ ] "), "[]");
  EXPECT_EQ(canonical("{}"), "{}");
  EXPECT_EQ(canonical("\"\""), "\"\"");
  EXPECT_EQ(canonical("-0"), "0");
  EXPECT_EQ(canonical(R"([[],{},[[1,{"b":[2,{"d":4,"c":3}],"a":""}]]])"),
            R"([[],{},[[1,{"a":"","b":[2,{"c":3,"d":4}]}]]])");
  EXPECT_EQ(canonical(R"("\u0000\u001F\u007f\b\f\n\r\t\/")"),
            "\"\\u0000\\u001f\x7f\\b\\f\\n\\r\\t/\"");
}

TEST(CanonicalJson, IntegersKeepTheirDigits) {
  EXPECT_EQ(canonical("[9007199254740992,9007199254740993,18446744073709551615,"
                      "-9223372036854775808,18446744073709551616,18446744073709551617]"),
            "[9007199254740992,9007199254740993,18446744073709551615,"
            "-9223372036854775808,18446744073709551616,18446744073709551617]");
}

TEST(CanonicalJson, AbsentIsNotNullAndCaseAndSpaceMatter) {
  EXPECT_NE(canonical(R"({"a":null})"), canonical("{}"));
  EXPECT_NE(canonical(R"({"a":0})"), canonical("{}"));
  EXPECT_NE(canonical(R"({"a":"Polish"})"), canonical(R"({"a":"polish"})"));
  EXPECT_NE(canonical(R"({"a":"x "})"), canonical(R"({"a":"x"})"));
  EXPECT_NE(canonical(R"(["1"])"), canonical("[1]"));
  EXPECT_NE(canonical("[1,2]"), canonical("[2,1]"));
  // No Unicode normalisation: e with acute is not e followed by a combining acute.
  EXPECT_NE(canonical(R"(["\u00e9"])"), canonical(R"(["e\u0301"])"));
}

TEST(CanonicalJson, DuplicateMembersAreNamed) {
  EXPECT_EQ(error_of(R"({"a":1,"b":2,"a":1})"), "invalid JSON: duplicate member \"a\"");
  EXPECT_EQ(error_of(R"({"x":[{"k":1,"\u006b":2}]})"), "invalid JSON: duplicate member \"k\"");
  const std::string_view exclude[] = {"a"};
  CanonicalOptions options;
  options.exclude = exclude;
  EXPECT_EQ(error_of(R"({"a":1,"a":2})", options), "invalid JSON: duplicate member \"a\"");
  // A long name is cut between characters: 32 of these two-byte ones fit.
  std::string name;
  for (int i = 0; i < 40; ++i) name += "é";
  std::string cut = name.substr(0, 64);
  EXPECT_EQ(error_of("{\"" + name + "\":1,\"" + name + "\":1}"),
            "invalid JSON: duplicate member \"" + cut + "...\"");
  EXPECT_EQ(error_of("{\"x" + name + "\":1,\"x" + name + "\":1}"),
            "invalid JSON: duplicate member \"x" + cut.substr(0, 62) + "...\"");
}

TEST(CanonicalJson, MembersOfTheTopKeepTheirSpelling) {
  const std::string text =
      R"( {"b" : 1.50, "\u0061":{"x":[1, 2],"y":"z"} ,"c":"t\u0041", "d":[ ] , "e":-0} )";
  std::vector<JsonMember> members;
  const auto canonical_text = canonical_json(text, {}, &members);
  ASSERT_TRUE(canonical_text);
  EXPECT_EQ(*canonical_text, R"({"a":{"x":[1,2],"y":"z"},"b":1.5,"c":"tA","d":[],"e":0})");
  std::string seen;
  for (const auto& member : members) seen += member.name + "=" + std::string(member.value) + ";";
  EXPECT_EQ(seen, R"(b=1.50;a={"x":[1, 2],"y":"z"};c="t\u0041";d=[ ];e=-0;)");
  members.clear();
  EXPECT_TRUE(canonical_json("[1,{\"a\":2}]", {}, &members));
  EXPECT_TRUE(members.empty());
}

TEST(CanonicalJson, LimitsOfMembersAndValues) {
  CanonicalOptions options;
  options.max_members = 3;
  EXPECT_TRUE(canonical_json(R"([{"a":1,"b":2},{"a":3}])", options));
  EXPECT_EQ(error_of(R"([{"a":1,"b":2},{"a":3,"b":4}])", options),
            "invalid JSON: more than 3 members in all");
  options = {};
  options.max_values = 3;
  EXPECT_TRUE(canonical_json("[1,2]", options));
  EXPECT_EQ(error_of("[1,2,3]", options), "invalid JSON: more than 3 values");
}

// What the two parsers accept is the same but for what the header names, and a byte order mark.
TEST(CanonicalJson, AcceptsWhatAnotherParserAccepts) {
  EXPECT_TRUE(rc::check([] {
    const std::string alphabet =
        "{}[]:,\"\\ntrufalse0123456789+-.eE \n\t/bu\x01\xC3\xA9\xED\xA0\xF4\x90";
    std::string text;
    const auto size = *rc::gen::inRange(0, 14);
    for (int i = 0; i < size; ++i) text += *rc::gen::elementOf(alphabet);
    const auto result = canonical_json(text);
    const bool known_difference =
        !result && (result.error().message.find("duplicate") != std::string::npos ||
                    result.error().message.find("range of a double") != std::string::npos);
    if (!known_difference) RC_ASSERT(result.has_value() == nlohmann::json::accept(text));
  }));
}

TEST(CanonicalJson, DepthLimit) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_EQ(canonical(nested(128)), nested(128));
  EXPECT_EQ(error_of(nested(129)), "invalid JSON: nested deeper than 128 levels");
  CanonicalOptions options;
  options.max_depth = 2;
  EXPECT_EQ(error_of(R"({"a":{"b":[]}})", options), "invalid JSON: nested deeper than 2 levels");
  EXPECT_TRUE(canonical_json(R"({"a":{"b":1}})", options));
}

TEST(CanonicalJson, ErrorsCarryTheOffsetAndNotTheText) {
  EXPECT_EQ(error_of("{\"a\":\"sec\xFFret\"}"), "invalid JSON: ill-formed UTF-8 at byte 9");
  const auto has_offset = [](std::string_view text, int offset) {
    const std::string message = error_of(text);
    EXPECT_TRUE(message.ends_with(" at byte " + std::to_string(offset))) << message;
    EXPECT_EQ(message.find("secret"), std::string::npos) << message;
  };
  has_offset("", 0);
  has_offset("[1,]", 3);
  has_offset("[1] x", 4);
  has_offset("\"secret\xC3", 7);
  has_offset("\"secret\xED\xA0\x80\"", 7);  // a surrogate in UTF-8
  has_offset("\"secret\xC0\x80\"", 7);      // overlong
  has_offset("\"secret\n\"", 7);
  EXPECT_EQ(error_of("{}\0{}"s), "invalid JSON: something follows the value at byte 2");
  EXPECT_EQ(error_of("[1e400]").substr(0, 50),
            "invalid JSON: number beyond the range of a double ");
  for (const char* text : {"{",
                           "[",
                           "{]",
                           "01",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "nul",
                           "'a'",
                           "[1 2]",
                           "{a:1}",
                           "// c\n1",
                           "NaN",
                           "Infinity",
                           R"("\ud800")",
                           R"("\udc00\ud800")",
                           R"("\x41")",
                           R"({"a" 1})",
                           R"({"a":1,})",
                           "1 1"}) {
    EXPECT_FALSE(canonical_json(text)) << text;
  }
}

TEST(CanonicalJson, ExcludesTopLevelMembersOnly) {
  const std::string_view exclude[] = {"stream", "user"};
  CanonicalOptions options;
  options.exclude = exclude;
  EXPECT_EQ(*canonical_json(R"({"user":{"stream":1},"str\u0065am":true,"b":{"user":1},"Stream":1})",
                            options),
            R"({"Stream":1,"b":{"user":1}})");
  EXPECT_EQ(*canonical_json(R"({"user":1})", options), "{}");
  EXPECT_EQ(*canonical_json(R"([{"user":1}])", options), R"([{"user":1}])");
  EXPECT_FALSE(canonical_json(R"({"user":{"a":1,"a":1}})", options));
}

struct Member;

// A random JSON value, kept so that it can be written in many ways.
struct Value {
  enum { kScalar, kArray, kObject } kind = kScalar;
  std::string scalar;  // as JSON, when it is neither of the others
  std::vector<Value> items;
  std::vector<Member> members;
};

struct Member {
  std::string name;  // as a JSON string
  Value value;
};

using Random = std::mt19937_64;

std::string random_string(Random& random) {
  static const char* const kPieces[] = {"a",    "B",          "0",      " ",       "é",
                                        "€",    "\U0001F600", "\uFB33", "\uE000",  "\uFFFF",
                                        "\\\"", "\\\\",       "\\n",    "\\u0001", "\x7f"};
  std::string text = "\"";
  for (std::uint64_t left = random() % 5; left > 0; --left) text += kPieces[random() % 15];
  return text + "\"";
}

std::string random_number(Random& random) {
  switch (random() % 4) {
    case 0:
      return std::to_string(random() % 10);
    case 1:
      return std::to_string(static_cast<std::int64_t>(random()));
    case 2:
      return std::to_string(random()) + "." + std::to_string(random() % 1000);
    default:
      return "-" + std::to_string(random() % 100) + "." + std::to_string(random()) + "e" +
             std::to_string(static_cast<int>(random() % 600) - 320);
  }
}

Value random_value(Random& random, int depth) {
  Value value;
  const std::uint64_t kind = random() % (depth > 0 ? 6 : 3);
  if (kind == 0) value.scalar = random_string(random);
  if (kind == 1) value.scalar = random_number(random);
  if (kind == 2) value.scalar = std::vector{"null", "true", "false"}[random() % 3];
  if (kind == 3) {
    value.kind = Value::kArray;
    for (std::uint64_t n = random() % 4; n > 0; --n) {
      value.items.push_back(random_value(random, depth - 1));
    }
  }
  if (kind > 3) {
    value.kind = Value::kObject;
    for (std::uint64_t n = random() % 5; n > 0; --n) {
      std::string name = random_string(random);
      const bool taken = std::any_of(value.members.begin(), value.members.end(),
                                     [&](const auto& member) { return member.name == name; });
      if (!taken) value.members.push_back({name, random_value(random, depth - 1)});
    }
  }
  return value;
}

// Members in random order, with random white space.
std::string render(const Value& value, Random& random) {
  const auto space = [&] {
    static const char* const kSpaces[] = {"", "", " ", "\n", "\t\r"};
    return std::string(kSpaces[random() % 5]);
  };
  std::string text = space();
  if (value.kind == Value::kScalar) return text + value.scalar + space();
  if (value.kind == Value::kArray) {
    text += '[';
    text += space();
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      text += (i > 0 ? "," : "") + render(value.items[i], random);
    }
    return text + ']' + space();
  }
  std::vector<Member> members = value.members;
  std::shuffle(members.begin(), members.end(), random);
  text += '{';
  text += space();
  for (std::size_t i = 0; i < members.size(); ++i) {
    text += (i > 0 ? "," : "") + space() + members[i].name + space() + ':' +
            render(members[i].value, random);
  }
  return text + '}' + space();
}

TEST(CanonicalJson, OrderAndSpaceDoNotMatter) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    const Value value = random_value(random, 4);
    RC_ASSERT(canonical(render(value, random)) == canonical(render(value, random)));
  }));
}

// What was parsed is what the canonical text parses to; so two different values have two texts.
TEST(CanonicalJson, KeepsTheValueAndIsItsOwnCanonicalForm) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    const std::string text = render(random_value(random, 4), random);
    const std::string once = canonical(text);
    RC_ASSERT(nlohmann::json::parse(once) == nlohmann::json::parse(text));
    RC_ASSERT(canonical(once) == once);
  }));
}

// A cut text is never taken for a whole one, unless it is one number cut to a shorter number.
TEST(CanonicalJson, EveryCutOfAnObjectIsAnError) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    Value value = random_value(random, 3);
    RC_PRE(value.kind == Value::kObject);
    std::string text = render(value, random);
    text.erase(text.rfind('}') + 1);
    for (std::size_t size = 0; size < text.size(); ++size) {
      RC_ASSERT(!canonical_json(std::string_view(text).substr(0, size)));
    }
  }));
}

// What a thread keeps for its next text is bounded, and no short answer carries a long text's
// memory.
TEST(CanonicalJson, KeepsNoLongTextsMemory) {
  const std::string name = "\\u0061" + std::string(1 << 20, 'x');
  for (const std::string& text :
       {"[\"" + std::string(1 << 20, 'x') + "\", nonsense", "{\"" + name + "\":1}"}) {
    (void)canonical_json(text);
    const auto small = canonical_json("{}");
    ASSERT_TRUE(small);
    EXPECT_LT(small->capacity(), 1000U);
  }
}

}  // namespace
}  // namespace fixpoint
