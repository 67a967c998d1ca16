#include "cache/token_log_tokens.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <limits>

#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

rc::Gen<float> any_float() {  // every bit pattern
  return rc::gen::map(rc::gen::arbitrary<std::uint32_t>(),
                      [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
}

rc::Gen<std::optional<std::int32_t>> any_id() {
  return rc::gen::map(rc::gen::pair(rc::gen::arbitrary<bool>(),
                                    rc::gen::element<std::int32_t>(0, 1, -1, 127, 128, 50'000,
                                                                   INT32_MAX, INT32_MIN)),
                      [](const std::pair<bool, std::int32_t>& pair) {
                        return pair.first ? std::optional(pair.second) : std::nullopt;
                      });
}

LoggedToken any_token() {
  LoggedToken token;
  token.choice = *rc::gen::element<std::uint32_t>(0, 0, 1, UINT32_MAX);
  token.position = *rc::gen::element<std::uint32_t>(0, 1, 2, 300, UINT32_MAX);
  token.id = *any_id();
  token.bytes = *rc::gen::arbitrary<std::string>();
  token.logprob = *any_float();
  const float margin = *any_float();
  if (!std::isnan(margin)) token.margin = margin;
  token.redacted = *rc::gen::arbitrary<bool>();
  for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
    token.top.push_back({*any_id(), *rc::gen::arbitrary<std::string>(), *any_float()});
  }
  return token;
}

std::vector<LoggedToken> any_tokens() {
  std::vector<LoggedToken> tokens;
  for (int left = *rc::gen::inRange(0, 6); left > 0; --left) tokens.push_back(any_token());
  // As they come: positions that follow each other, too.
  if (*rc::gen::arbitrary<bool>()) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i].choice = 0;
      tokens[i].position = static_cast<std::uint32_t>(i);
    }
  }
  return tokens;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

RC_GTEST_PROP(TokenPacking, GivesBackWhatWasPacked, ()) {
  const std::vector<LoggedToken> tokens = any_tokens();
  const Result<std::vector<LoggedToken>> again = unpack_tokens(pack_tokens(tokens));
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->size() == tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const LoggedToken &one = tokens[i], &other = (*again)[i];
    RC_ASSERT(std::tie(one.choice, one.position, one.id, one.bytes, one.margin, one.redacted) ==
              std::tie(other.choice, other.position, other.id, other.bytes, other.margin,
                       other.redacted));
    RC_ASSERT(same_bits(one.logprob, other.logprob));
    RC_ASSERT(one.top.size() == other.top.size());
    for (std::size_t j = 0; j < one.top.size(); ++j) {
      RC_ASSERT(one.top[j].id == other.top[j].id);
      RC_ASSERT(one.top[j].bytes == other.top[j].bytes);
      RC_ASSERT(same_bits(one.top[j].logprob, other.top[j].logprob));
    }
  }
}

// A list that is cut is whole only where a token ends.
RC_GTEST_PROP(TokenPacking, CutBytesAreFewerTokensOrCorrupt, ()) {
  const std::vector<LoggedToken> tokens = any_tokens();
  const std::string packed = pack_tokens(tokens);
  RC_PRE(!packed.empty());
  const std::string cut = packed.substr(0, *rc::gen::inRange<std::size_t>(0, packed.size()));
  const Result<std::vector<LoggedToken>> again = unpack_tokens(cut);
  if (again) {
    RC_ASSERT(again->size() < tokens.size());
    RC_ASSERT(pack_tokens(*again) == cut);
  } else {
    RC_ASSERT(again.error().code == ErrorCode::corrupt);
  }
}

RC_GTEST_PROP(TokenPacking, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  unpack_tokens(bytes);
  std::string packed = pack_tokens(any_tokens());
  for (const char c : bytes) {  // damaged here and there
    if (!packed.empty()) packed[std::size_t(static_cast<unsigned char>(c)) % packed.size()] = c;
  }
  unpack_tokens(packed);
}

TEST(TokenPacking, AHugeCountReservesNothing) {
  // flags 8, logprob, empty text, 2^56 alternatives
  const std::string bytes("\x08\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 14);
  EXPECT_EQ(unpack_tokens(bytes).error().code, ErrorCode::corrupt);
}

TEST(TokenPacking, ATokenTakesFewBytes) {
  LoggedToken token = token_of(0, 0, 0.5f);
  token.id = 1000;
  token.bytes = " word";
  EXPECT_EQ(pack_tokens({token}).size(), 1u + 2 + 4 + 4 + 1 + 5 + 1);
}

TEST(MarginCounts, CountsBelowEachStep) {
  const MarginCounts none = count_margins({token_of(0, 0, std::nullopt)});
  EXPECT_EQ(none.tokens, 1);
  EXPECT_EQ(none.with_margin, 0);
  EXPECT_EQ(none.least, std::nullopt);
  const MarginCounts some =
      count_margins({token_of(0, 0, 0.0f), token_of(0, 1, 0.01f), token_of(0, 2, 0.099f),
                     token_of(0, 3, 1.0f), token_of(0, 4, 0.999f), token_of(0, 5, kNan)});
  EXPECT_EQ(some.tokens, 6);
  EXPECT_EQ(some.with_margin, 5);
  EXPECT_EQ(some.below[0], 1);  // not 0.01 itself
  EXPECT_EQ(some.below[1], 3);
  EXPECT_EQ(some.below[2], 4);
  EXPECT_EQ(some.least, 0.0f);
}

}  // namespace
}  // namespace fixpoint::test
