#include "local_engine/text/text_stream.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fixpoint::engine {
namespace {

TEST(TextStream, ShowsPlainTextAtOnce) {
  TextStream stream({});
  EXPECT_EQ(stream.push("Hello"), "Hello");
  EXPECT_EQ(stream.push(" world"), " world");
  EXPECT_EQ(stream.tokens_shown(), 2U);
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, HoldsACharacterUntilItIsWhole) {
  TextStream stream({});
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.tokens_shown(), 1U);  // shown in part
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.tokens_shown(), 1U);
  EXPECT_EQ(stream.push("\x80!"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(stream.tokens_shown(), 3U);
}

TEST(TextStream, BrokenBytesShowAsReplacement) {
  const std::string r = "\xEF\xBF\xBD";
  TextStream stream({});
  EXPECT_EQ(stream.push("\x80"), r);                          // a continuation byte alone
  EXPECT_EQ(stream.push("\xE2\x82\x41"), r + "A");            // a start without its end: one each
  EXPECT_EQ(stream.push("\xC0\xAF"), r + r);                  // overlong
  EXPECT_EQ(stream.push("\xED\xA0\x80"), r + r + r);          // a surrogate
  EXPECT_EQ(stream.push("\xF4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.finish(), r);
  EXPECT_EQ(stream.tokens_shown(), 6U);
}

TEST(TextStream, CutsBeforeAStopStringThatSpansTokens) {
  TextStream stream({"\n\nUser:"});
  EXPECT_EQ(stream.push("Yes.\n"), "Yes.");
  EXPECT_EQ(stream.push("\nUs"), "");
  EXPECT_EQ(stream.tokens_shown(), 1U);
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.push("er: no"), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.stopped_by(), "\n\nUser:");
  EXPECT_EQ(stream.push("more"), "");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.tokens_shown(), 1U);
}

TEST(TextStream, GivesBackWhatDidNotBecomeAStopString) {
  TextStream stream({"abcd"});
  EXPECT_EQ(stream.push("xab"), "x");
  EXPECT_EQ(stream.push("c"), "");
  EXPECT_EQ(stream.push("ab"), "abc");
  EXPECT_EQ(stream.tokens_shown(), 2U);
  EXPECT_EQ(stream.finish(), "ab");
  EXPECT_EQ(stream.tokens_shown(), 3U);
}

TEST(TextStream, TheStopThatEndsFirstWins) {
  TextStream inner({"abc", "b"});
  EXPECT_EQ(inner.push("abc"), "a");
  EXPECT_EQ(inner.stopped_by(), "b");
  TextStream together({"bc", "abc"});
  EXPECT_EQ(together.push("xabc"), "x");
  EXPECT_EQ(together.stopped_by(), "abc");
}

TEST(TextStream, ACharacterCutByAStopIsBroken) {
  TextStream stream({"END"});
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("END"), "\xEF\xBF\xBD");
  EXPECT_TRUE(stream.stopped());
}

TEST(TextStream, TokensWithoutBytesCountInOrder) {
  TextStream stream({"stop"});
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.tokens_shown(), 1U);
  stream.push("st");
  stream.push("");
  EXPECT_EQ(stream.tokens_shown(), 1U);
  stream.push("x");
  EXPECT_EQ(stream.tokens_shown(), 4U);
}

// However the bytes are cut into tokens, the same text is shown, and it never holds the stop
// string.
TEST(TextStream, TextDoesNotDependOnTheCuts) {
  EXPECT_TRUE(rc::check("cuts", [] {
    const auto piece = rc::gen::elementOf(std::vector<std::string>{
        "a", "b", "ab", "aab", "\xC3\xA9", "\xF0\x9F\x98\x80", "\x80", "\xE2"});
    const auto pieces = *rc::gen::container<std::vector<std::string>>(piece);
    const auto stops = *rc::gen::elementOf(std::vector<std::vector<std::string>>{
        {}, {"aab"}, {"ba", "aab"}, {"\xC3\xA9\x62"}, {"bbbb"}});
    std::string bytes;
    for (const auto& p : pieces) bytes += p;
    TextStream whole(stops), cut(stops);
    std::string expected = whole.push(bytes);
    expected += whole.finish();

    std::string shown;
    for (std::size_t at = 0; at < bytes.size();) {
      const auto size = *rc::gen::inRange<std::size_t>(1, 5);
      const std::string token = bytes.substr(at, size);
      shown += cut.push(token);
      at += token.size();
    }
    shown += cut.finish();
    RC_ASSERT(shown == expected);
    RC_ASSERT(whole.stopped() == cut.stopped());
    for (const auto& stop : stops) RC_ASSERT(shown.find(stop) == std::string::npos);
  }));
}

}  // namespace
}  // namespace fixpoint::engine
