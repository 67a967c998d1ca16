#include "local_engine/text/tokenizer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>

#include "tests/unit/local_engine/text/golden_tokens.hpp"

namespace fixpoint::test {
namespace {

using engine::ErrorCode;
using engine::TokenId;
using engine::Tokenizer;
using engine::TokenizerData;

TokenId id_of(const TokenizerData& data, const std::string& spelling) {
  const auto found = std::find(data.tokens.begin(), data.tokens.end(), spelling);
  if (found == data.tokens.end()) throw std::runtime_error("no token " + spelling);
  return static_cast<TokenId>(found - data.tokens.begin());
}

TEST(Tokenizer, IdsAreThoseOfTheReference) {
  const nlohmann::json golden = read_golden("tiny_bpe/tokens.json");
  for (const std::string& pre_tokenizer : kPreTokenizers) {
    expect_golden_ids(*make_tokenizer(tiny_bpe(pre_tokenizer)), pre_tokenizer, golden);
  }
}

// The vocabulary lacks the bytes 04 and 16; everything else comes back.
TEST(Tokenizer, AnyBytesRoundTrip) {
  for (const std::string pre_tokenizer : {"smollm", "gpt-2", "llama-bpe"}) {
    const auto tokenizer = make_tokenizer(tiny_bpe(pre_tokenizer));
    EXPECT_TRUE(rc::check("decode(encode(text)) == text", [&](std::string text, bool special) {
      std::erase_if(text, [](char c) { return c == '\x04' || c == '\x16'; });
      RC_ASSERT(tokenizer->decode(tokenizer->encode(text, special)) == text);
    }));
  }
}

TEST(Tokenizer, AnInvalidByteIsATokenOfItsOwn) {
  const auto tokenizer = make_tokenizer(tiny_bpe("gpt-2"));
  for (const std::string text :
       {"\xFF", "a\xE2\x82", "\xC0\xAF", "\xED\xA0\x80 surrogate", "the\x80the"}) {
    const auto ids = tokenizer->encode(text, false);
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
  EXPECT_EQ(tokenizer->encode("\xE2\x82", false).size(), 2U);
  // The text around it is encoded as if alone.
  auto expected = tokenizer->encode("the", false);
  const auto middle = tokenizer->encode("\x80", false);
  ASSERT_EQ(middle.size(), 1U);
  const auto the = expected;
  expected.push_back(middle[0]);
  expected.insert(expected.end(), the.begin(), the.end());
  EXPECT_EQ(tokenizer->encode("the\x80the", false), expected);
}

TEST(Tokenizer, AByteThatTheVocabularyLacksGivesNothing) {
  const auto tokenizer = make_tokenizer(tiny_bpe("smollm"));
  EXPECT_TRUE(tokenizer->encode("\x04", false).empty());
}

TEST(Tokenizer, SpecialTokensOnlyWhenAskedAndTheLongestFirst) {
  const TokenizerData data = tiny_bpe("smollm");
  const auto tokenizer = make_tokenizer(data);
  const std::vector<TokenId> ids = tokenizer->encode("<|end|>+<|end|>", true);
  EXPECT_EQ(ids, (std::vector<TokenId>{id_of(data, "<|end|>+"), id_of(data, "<|end|>")}));
  for (const TokenId id : tokenizer->encode("<|end|>+<|end|>", false)) {
    EXPECT_FALSE(tokenizer->is_special(id));
  }
  EXPECT_EQ(tokenizer->decode(ids), "<|end|>+<|end|>");
}

TEST(Tokenizer, WholeWordsFirstOnlyForLlama) {
  const TokenizerData data = tiny_bpe("llama-bpe");  // no merge leads to zyxwv
  const TokenId whole = id_of(data, "zyxwv");
  EXPECT_EQ(make_tokenizer(data)->encode("zyxwv", false), std::vector<TokenId>{whole});
  EXPECT_GT(make_tokenizer(tiny_bpe("qwen2"))->encode("zyxwv", false).size(), 1U);
}

TEST(Tokenizer, LongRunsOfOneClass) {
  const auto tokenizer = make_tokenizer(tiny_bpe("llama-bpe"));
  for (const std::string unit : {"a", " ", "\n", ".", "7", "\u00e9", "\u4e2d"}) {
    std::string text;
    while (text.size() < (std::size_t{1} << 20)) text += unit;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, true)), text) << unit;
  }
}

TEST(Tokenizer, DigestCoversEverythingThatDecidesIds) {
  const std::vector<std::function<void(TokenizerData&)>> changes = {
      [](TokenizerData&) {},
      [](TokenizerData& data) { data.tokens.back() += "x"; },
      [](TokenizerData& data) { std::swap(data.merges[0], data.merges[1]); },
      [](TokenizerData& data) { data.merges.pop_back(); },
      [](TokenizerData& data) { data.is_special.back() = true; },
      [](TokenizerData& data) { data.pre_tokenizer = "gpt-2"; },
      [](TokenizerData& data) { data.bos = 1; },
      [](TokenizerData& data) { data.eos = 1; },
      [](TokenizerData& data) { data.end_of_turn = {1}; },
      [](TokenizerData& data) {
        data.bos = 1;
        data.add_bos = true;
      },
  };
  std::vector<std::string> digests;
  for (const auto& change : changes) {
    TokenizerData data = tiny_bpe("smollm");
    change(data);
    const std::string digest = make_tokenizer(data)->digest();
    EXPECT_EQ(digest.size(), 64U);
    EXPECT_EQ(std::count(digests.begin(), digests.end(), digest), 0);
    digests.push_back(digest);
  }
  EXPECT_EQ(make_tokenizer(tiny_bpe("smollm"))->digest(), digests[0]);
}

TEST(Tokenizer, RefusesBadVocabularies) {
  const auto refused = [](const std::function<void(TokenizerData&)>& change) {
    TokenizerData data = tiny_bpe("smollm");
    change(data);
    const auto created = Tokenizer::create(data);
    return created ? std::string("accepted") : created.error().message;
  };
  const auto expect = [&](const char* part, const std::function<void(TokenizerData&)>& change) {
    const std::string message = refused(change);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect("twice", [](TokenizerData& data) { data.tokens.back() = data.tokens[20]; });
  expect("empty", [](TokenizerData& data) { data.tokens.back().clear(); });
  expect("byte-level", [](TokenizerData& data) { data.tokens.back() = "a b"; });
  expect("not in the vocabulary", [](TokenizerData& data) { data.merges.push_back("nope nope"); });
  expect("not two tokens", [](TokenizerData& data) { data.merges.push_back("nope"); });
  expect("twice", [](TokenizerData& data) { data.merges.push_back(data.merges[0]); });
  expect("token types", [](TokenizerData& data) { data.is_special.pop_back(); });
  expect("is no token", [](TokenizerData& data) { data.eos = 100000; });
  expect("is no token", [](TokenizerData& data) { data.bos = -1; });
  expect("add_bos", [](TokenizerData& data) { data.add_bos = true; });

  TokenizerData data = tiny_bpe("gpt-5");
  const auto created = Tokenizer::create(data);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::unsupported);
  EXPECT_NE(created.error().message.find("smollm, gpt-2, llama-bpe, qwen2"), std::string::npos);
}

TEST(Tokenizer, EndsOfGeneration) {
  TokenizerData data = tiny_bpe("smollm");
  data.eos = 2;
  data.end_of_turn = {0};
  const auto tokenizer = make_tokenizer(data);
  EXPECT_TRUE(tokenizer->ends_generation(2));
  EXPECT_TRUE(tokenizer->ends_generation(0));
  EXPECT_FALSE(tokenizer->ends_generation(1));
  EXPECT_THROW(tokenizer->bytes(static_cast<TokenId>(tokenizer->size())), std::out_of_range);
}

}  // namespace
}  // namespace fixpoint::test
