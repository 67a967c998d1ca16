// What tokens cost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/tenants/api_key.hpp"

namespace fixpoint {

struct TokenCounts {
  std::uint64_t prompt = 0;      // cached ones among them, as OpenAI counts
  std::uint64_t completion = 0;  // reasoning among them
  std::uint64_t cached = 0;      // of the prompt: from the provider's own prompt cache
};

// What an upstream may claim that one answer took; more is counted as this.
constexpr std::uint64_t kMaxTokensPerAnswer = 100'000'000;
constexpr double kMaxPrice = 1'000'000;  // US dollars per million tokens

// Immutable.
class PriceTable {
 public:
  // Errors: invalid (negative, beyond kMaxPrice, no number).
  static Result<PriceTable> make(const std::vector<PriceConfig>& prices);

  // The first glob that matches counts; 0 when none does. Exact, then rounded up to a whole
  // micro-dollar, so that a budget cannot be passed by many small answers.
  MicroDollars cost(std::string_view model, const TokenCounts& tokens) const;

 private:
  // Pico-dollars per token: exact for prices of up to six decimals.
  struct Price {
    std::string model;
    std::int64_t input, output, cached_input;
  };
  std::vector<Price> prices_;
};

}  // namespace fixpoint
