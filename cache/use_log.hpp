// Which entries of a store were used, for its writer to record.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/key.hpp"

namespace fixpoint {

// The first use of an entry in each span is recorded and the others are not: this is how exact
// "least recently used" is, and how often an entry that is used all the time is written. A span
// ends with time, and as soon as the store grew by a small share of what it may hold: in a busy
// store an entry goes from the newest to the oldest within minutes.
//
// Every hit comes here, and nearly all were noted already: those take no lock and read 64 bytes. A
// span has room for some ten thousand entries; when there are more, some are recorded again.
class UseLog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit UseLog(std::int64_t max_bytes) : span_bytes_(max_bytes / kSpanShare) {}

  // For every thread.
  void note(const CacheKey& key) {
    if (key.hex.size() != 64) return;
    std::uint64_t first = 0, second = 0;  // of the digest, which is spread evenly
    std::memcpy(&first, key.hex.data(), sizeof first);
    std::memcpy(&second, key.hex.data() + sizeof first, sizeof second);
    second += span_ + static_cast<std::uint64_t>(key.kind) * kMix;
    Line& line = lines_[first * kMix >> (64 - kLineBits)];
    const auto mark = static_cast<std::uint32_t>(second * kMix >> 32) | 1;
    for (const auto& noted : line.marks) {
      if (noted.load(std::memory_order_relaxed) == mark) return;
    }
    const std::lock_guard lock(mutex_);
    line.marks[line.next++ % line.marks.size()].store(mark, std::memory_order_relaxed);
    if (new_.size() < kMaxNew) new_.push_back({key.kind, key.hex, {}});
  }

  // The rest is the writer's, on its thread.
  void note_growth(std::int64_t bytes) {
    grown_ += std::max<std::int64_t>(bytes, 0);
    if (grown_ >= span_bytes_) begin_span();
  }
  void note_time(Clock::time_point now) {
    if (now < span_end_) return;
    begin_span();
    span_end_ = now + kSpan;
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return new_.empty();
  }
  // Those since the last call, without their material.
  std::vector<CacheKey> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(new_, {});
  }

 private:
  static constexpr std::chrono::minutes kSpan{10};
  static constexpr std::int64_t kSpanShare = 16;
  static constexpr std::size_t kMaxNew = 65'536;
  static constexpr int kLineBits = 12;
  static constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15;

  // Marks of entries and the spans in which they were used; a new one takes the oldest one's place.
  struct alignas(64) Line {
    std::array<std::atomic<std::uint32_t>, 15> marks{};  // 0: none
    std::uint32_t next = 0;
  };

  void begin_span() {
    grown_ = 0;
    ++span_;
  }

  const std::int64_t span_bytes_;
  std::int64_t grown_ = 0;  // in this span
  Clock::time_point span_end_{};
  std::atomic<std::uint64_t> span_ = 0;
  std::vector<Line> lines_ = std::vector<Line>(std::size_t{1} << kLineBits);
  mutable std::mutex mutex_;  // over lines' changes
  std::vector<CacheKey> new_;
};

}  // namespace fixpoint
