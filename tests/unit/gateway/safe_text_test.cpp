#include "gateway/safe_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace fixpoint {
namespace {

TEST(SafeText, KeepsWhatIsHarmless) {
  const std::string text = "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80";
  EXPECT_EQ(safe_text(text), text);
}

TEST(SafeText, EscapesWhatATerminalObeys) {
  EXPECT_EQ(safe_text("a\x1b[2Jb\r\n\t\x7f"), "a\\x1b[2Jb\\x0d\\n\\t\\x7f");
  EXPECT_EQ(safe_text("\xC2\x9B"
                      "31m"),
            "\\u009b31m");  // C1: the one-character CSI
  EXPECT_EQ(safe_text("\xE2\x80\xAE"
                      "x"),
            "\\u202ex");                     // right-to-left override
  EXPECT_EQ(safe_text("\\x1b"), "\\\\x1b");  // text that looks like an escape
  EXPECT_EQ(safe_text(std::string_view("\0", 1)), "\\x00");
}

TEST(SafeText, KnowsUtf8) {
  for (const char* text : {"", "a", "\xC3\xA9", "\xE2\x82\xAC x", "\xF0\x9F\x98\x80"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  for (const char* text : {"\xff", "a\x80", "\xC3", "\xC0\x9B", "\xED\xA0\x80"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

TEST(SafeText, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(safe_text("\x80"), "\\x80");
  EXPECT_EQ(safe_text("\xC0\x9B"), "\\xc0\\x9b");           // an overlong form of ESC's kin
  EXPECT_EQ(safe_text("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(safe_text("\xF0\x9F\x98"), "\\xf0\\x9f\\x98");  // a cut character
  EXPECT_EQ(safe_text("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(SafeText, NeverLetsAControlByteThrough) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    for (const char c : safe_text(text)) {
      RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    }
  }));
}

TEST(JsonString, DecodesToTheText) {
  const auto json = [](std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
  };
  EXPECT_EQ(json("plain text"), "\"plain text\"");
  EXPECT_EQ(json(""), "\"\"");
  EXPECT_EQ(json("a\"b\\c\nd\te"), "\"a\\\"b\\\\c\\nd\\te\"");
  EXPECT_EQ(json("\x1b[0m\x7f"), "\"\\u001b[0m\\u007f\"");
  EXPECT_EQ(json("\xe2\x80\xae\xc2\x9b"), "\"\\u202e\\u009b\"");  // U+202E, U+009B
  EXPECT_EQ(json("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  EXPECT_EQ(json("a\xff\xc3(\xed\xa0\x80"), "\"a\\ufffd\\ufffd(\\ufffd\\ufffd\\ufffd\"");
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(json("\0x"sv), "\"\\u0000x\"");
  EXPECT_TRUE(rc::check([&](const std::string& bytes) {
    const std::string text = json(bytes);
    RC_ASSERT(text.find('\n') == std::string::npos);
    RC_ASSERT(nlohmann::json::parse(text).is_string());
  }));
  EXPECT_TRUE(rc::check([&] {
    const auto ascii = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
    RC_ASSERT(nlohmann::json::parse(json(ascii)) == ascii);
  }));
}

}  // namespace
}  // namespace fixpoint
