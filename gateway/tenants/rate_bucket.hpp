// One limit per minute.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fixpoint {

// A leaky bucket: what is spent drains away continuously, a minute's limit per minute. It remembers
// what was spent and not what is left, so that a changed limit needs no conversion. Integers in
// units of a 60-millionth: draining is exact at every microsecond. One thread at a time.
// Precondition of everything: 1 <= limit <= kMaxPerMinute, and drain() with that limit went before.
class RateBucket {
 public:
  // It never holds more than the limits of so many minutes (at most 60): 1 for what is admitted one
  // by one, more for what is counted afterwards and may go beyond the limit.
  explicit RateBucket(std::int64_t most_minutes) : most_minutes_(most_minutes) {}

  void drain(std::uint64_t limit, std::int64_t now_us) {
    // Threads look at the clock before they come here, so that times may be a little out of order;
    // far back means that the clock was set.
    const std::int64_t elapsed = now_us - last_us_;
    if (elapsed > 0 || elapsed < -kUnit) last_us_ = now_us;
    if (elapsed > 0) {
      // limit * elapsed could overflow; beyond this much time everything has drained.
      const std::int64_t empty_after = reset_us(limit);
      spent_ = elapsed >= empty_after ? 0 : spent_ - static_cast<std::int64_t>(limit) * elapsed;
    }
    spent_ = std::min(spent_, most_minutes_ * capacity(limit));  // the limit may have been lowered
  }
  bool has_room(std::uint64_t limit) const { return spent_ + kUnit <= capacity(limit); }
  void add(std::uint64_t limit, std::uint64_t count) {
    const std::int64_t room = most_minutes_ * capacity(limit) - spent_;
    const auto units = static_cast<std::uint64_t>(room / kUnit);
    spent_ += static_cast<std::int64_t>(std::min(count, units)) * kUnit;
  }
  std::uint64_t remaining(std::uint64_t limit) const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(capacity(limit) - spent_, 0) / kUnit);
  }
  // Microseconds until there is room for one, and until all has drained; rounded up.
  std::int64_t wait_us(std::uint64_t limit) const {
    return divide_up(std::max<std::int64_t>(spent_ + kUnit - capacity(limit), 0), limit);
  }
  std::int64_t reset_us(std::uint64_t limit) const { return divide_up(spent_, limit); }

 private:
  static constexpr std::int64_t kUnit = 60'000'000;  // one request or token; microseconds a minute

  static std::int64_t capacity(std::uint64_t limit) {
    return static_cast<std::int64_t>(limit) * kUnit;
  }
  static std::int64_t divide_up(std::int64_t amount, std::uint64_t limit) {
    const auto rate = static_cast<std::int64_t>(limit);
    return (amount + rate - 1) / rate;
  }

  std::int64_t most_minutes_;
  std::int64_t spent_ = 0;  // in units
  std::int64_t last_us_ = 0;
};

}  // namespace fixpoint
