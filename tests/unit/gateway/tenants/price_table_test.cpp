#include "gateway/tenants/price_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fixpoint {
namespace {

PriceTable table(const std::vector<PriceConfig>& prices) {
  return PriceTable::make(prices).value();
}

TEST(PriceTable, TheFirstMatchCounts) {
  const PriceTable prices = table({{"gpt-4o-mini*", 0.15, 0.6, 0.075}, {"gpt-4o*", 2.5, 10, 1.25}});
  EXPECT_EQ(prices.cost("gpt-4o-2024-08-06", {.prompt = 100, .completion = 10, .cached = 0}), 350);
  EXPECT_EQ(prices.cost("gpt-4o-mini", {.prompt = 1000, .completion = 100, .cached = 0}), 210);
  EXPECT_EQ(prices.cost("claude", {.prompt = 1000, .completion = 100, .cached = 0}), 0);
}

TEST(PriceTable, CachedTokensAreAPartOfThePrompt) {
  const PriceTable prices = table({{"*", 2.5, 10, 1.25}});
  EXPECT_EQ(prices.cost("m", {.prompt = 100, .completion = 0, .cached = 80}), 50 + 100);
  // An upstream that counts them beside the prompt does not make it negative.
  EXPECT_EQ(prices.cost("m", {.prompt = 100, .completion = 0, .cached = 500}), 125);
}

TEST(PriceTable, IsExactAndRoundsUp) {
  const PriceTable prices = table({{"*", 0.1, 0.2, 0.1}});
  // 0.1 * 10 + 0.2 * 10 in doubles is more than 3.
  EXPECT_EQ(prices.cost("m", {.prompt = 10, .completion = 10, .cached = 0}), 3);
  EXPECT_EQ(prices.cost("m", {.prompt = 1, .completion = 0, .cached = 0}), 1);
  EXPECT_EQ(prices.cost("m", {.prompt = 11, .completion = 0, .cached = 0}), 2);
  EXPECT_EQ(prices.cost("m", {.prompt = 0, .completion = 0, .cached = 0}), 0);
}

TEST(PriceTable, AnUpstreamsAbsurdCountIsBounded) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  const PriceTable prices = table({{"*", kMaxPrice, kMaxPrice, kMaxPrice}});
  EXPECT_EQ(prices.cost("m", {.prompt = kMost, .completion = kMost, .cached = kMost}),
            2 * static_cast<MicroDollars>(kMaxTokensPerAnswer * 1'000'000));
}

TEST(PriceTable, RefusesWhatIsNoPrice) {
  for (const double bad : {-0.1, kMaxPrice * 1.01, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    const auto made = PriceTable::make({{"gpt-*", 1, bad, 1}});
    ASSERT_FALSE(made) << bad;
    EXPECT_EQ(made.error().code, ErrorCode::invalid);
    EXPECT_THAT(made.error().message, testing::HasSubstr("'gpt-*'"));
  }
}

}  // namespace
}  // namespace fixpoint
