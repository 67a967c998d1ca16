#include "cache/token_alternatives.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <limits>

namespace fixpoint {
namespace {

TEST(TokenAlternatives, FormatIsFixed) {
  const std::vector<LoggedAlternative> two = {{7, "ab", -1.0f}, {std::nullopt, "", -0.5f}};
  EXPECT_EQ(encode_alternatives(two), std::string("\x01\x07\0\0\0\0\0\x80\xBF\x02\0\0\0ab"
                                                  "\0\0\0\0\0\0\0\0\xBF\0\0\0\0",
                                                  28));
  EXPECT_EQ(encode_alternatives({}), "");
}

TEST(TokenAlternatives, BitsComeBack) {
  EXPECT_TRUE(
      rc::check([](const std::vector<std::string>& texts, std::uint32_t bits, std::int32_t id) {
        std::vector<LoggedAlternative> before;
        for (const std::string& text : texts) {
          before.push_back({text.size() % 2 == 0 ? std::optional(id) : std::nullopt, text,
                            std::bit_cast<float>(bits += 0x9E3779B9)});
        }
        const Result<std::vector<LoggedAlternative>> after =
            decode_alternatives(encode_alternatives(before));
        RC_ASSERT(after.has_value());
        RC_ASSERT(after->size() == before.size());
        for (std::size_t i = 0; i < before.size(); ++i) {
          RC_ASSERT((*after)[i].id == before[i].id);
          RC_ASSERT((*after)[i].bytes == before[i].bytes);
          RC_ASSERT(std::bit_cast<std::uint32_t>((*after)[i].logprob) ==
                    std::bit_cast<std::uint32_t>(before[i].logprob));
        }
      }));
}

TEST(TokenAlternatives, EveryCutAndEveryBadFlagIsCorrupt) {
  const std::string bytes = encode_alternatives({{7, "abc", -1.0f}});
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    const auto cut = decode_alternatives(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code, ErrorCode::corrupt);
  }
  EXPECT_FALSE(decode_alternatives(bytes + "x"));
  std::string flag = bytes;
  flag[0] = 2;
  EXPECT_FALSE(decode_alternatives(flag));
  std::string length = bytes;
  length[12] = '\xFF';
  EXPECT_FALSE(decode_alternatives(length));
}

}  // namespace
}  // namespace fixpoint
