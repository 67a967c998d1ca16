#include "gateway/tenants/price_table.hpp"

#include <algorithm>
#include <cmath>

namespace fixpoint {
namespace {

constexpr std::int64_t kPicoPerMicro = 1'000'000;

// Tokens of one answer times the highest price in pico-dollars: 10^20.
__extension__ using Wide = __int128;

// One dollar per million tokens is a micro-dollar per token.
std::int64_t pico_dollars(double price) {
  return std::llround(price * kPicoPerMicro);
}

Wide bounded(std::uint64_t tokens) {
  return std::min(tokens, kMaxTokensPerAnswer);
}

}  // namespace

Result<PriceTable> PriceTable::make(const std::vector<PriceConfig>& prices) {
  PriceTable table;
  for (const PriceConfig& price : prices) {
    for (const double value : {price.input, price.output, price.cached_input}) {
      if (!(value >= 0 && value <= kMaxPrice)) {  // NaN too
        return fail(ErrorCode::invalid, "prices: those of '" + price.model +
                                            "' must be from 0 to " +
                                            std::to_string(static_cast<int>(kMaxPrice)) +
                                            " US dollars per million tokens");
      }
    }
    table.prices_.push_back({price.model, pico_dollars(price.input), pico_dollars(price.output),
                             pico_dollars(price.cached_input)});
  }
  return table;
}

MicroDollars PriceTable::cost(std::string_view model, const TokenCounts& tokens) const {
  const auto price = std::find_if(prices_.begin(), prices_.end(),
                                  [&](const Price& one) { return glob_matches(one.model, model); });
  if (price == prices_.end()) return 0;
  const Wide prompt = bounded(tokens.prompt);
  const Wide cached = std::min(bounded(tokens.cached), prompt);
  const Wide pico = (prompt - cached) * price->input + cached * price->cached_input +
                    bounded(tokens.completion) * price->output;
  return static_cast<MicroDollars>((pico + kPicoPerMicro - 1) / kPicoPerMicro);
}

}  // namespace fixpoint
