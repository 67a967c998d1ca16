#include "local_engine/text/pretokenize.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fixpoint::engine {
namespace {

std::vector<std::string> split(const char* name, std::string_view text) {
  const auto pre_tokenizer = PreTokenizer::create(name);
  if (!pre_tokenizer) throw std::runtime_error(pre_tokenizer.error().message);
  std::vector<std::string> words;
  (*pre_tokenizer)->split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

using Words = std::vector<std::string>;

TEST(PreTokenizer, FamiliesDifferInDigitsAndSpaces) {
  EXPECT_EQ(split("gpt-2", "a  12345"), (Words{"a", " ", " 12345"}));
  EXPECT_EQ(split("smollm", "a  123"), (Words{"a", "  ", "1", "2", "3"}));
  EXPECT_EQ(split("llama-bpe", "a  12345"), (Words{"a", " ", " ", "123", "45"}));
  EXPECT_EQ(split("qwen2", "a 12"), (Words{"a", " ", "1", "2"}));
}

TEST(PreTokenizer, ContractionsAndCase) {
  EXPECT_EQ(split("gpt-2", "it's IT'S"), (Words{"it", "'s", " IT", "'", "S"}));
  EXPECT_EQ(split("llama-bpe", "it's IT'S"), (Words{"it", "'s", " IT", "'S"}));
}

// PCRE2 alone counts U+180E as white space; the published patterns' engine does not.
TEST(PreTokenizer, MongolianVowelSeparatorIsNoSpace) {
  EXPECT_EQ(split("gpt-2", " \u180E"), (Words{" \u180E"}));
  EXPECT_EQ(split("gpt-2", "\u3000\u2028"), (Words{"\u3000\u2028"}));
}

TEST(PreTokenizer, OnlyQwen2Composes) {
  EXPECT_EQ(split("qwen2", "e\u0301"), (Words{"\u00e9"}));
  EXPECT_EQ(split("gpt-2", "e\u0301"), (Words{"e", "\u0301"}));
}

TEST(PreTokenizer, InvalidBytesStandAlone) {
  EXPECT_EQ(split("gpt-2", "ab\xFF\xE2\x82 cd"), (Words{"ab", "\xFF", "\xE2", "\x82", " cd"}));
}

TEST(PreTokenizer, UnknownNameListsTheKnown) {
  const auto created = PreTokenizer::create("tekken");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::unsupported);
  EXPECT_NE(created.error().message.find("llama-bpe"), std::string::npos);
}

}  // namespace
}  // namespace fixpoint::engine
