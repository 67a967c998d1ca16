// The pace of a stream: taken down while it comes, kept with its answer, and played again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cache/entry.hpp"

namespace fixpoint {

// Takes down when a stream's events came. However long it is, memory and text are small: with each
// doubling of its length, every second point is forgotten.
class PaceRecorder {
 public:
  // The time since the request.
  void event(std::chrono::milliseconds at);
  // Entry::pace. Empty: there were no events.
  std::string text() const;

 private:
  static constexpr std::size_t kMaxPoints = 128;

  std::vector<std::int64_t> points_;  // the time of every stride_-th event, from the first
  std::size_t stride_ = 1, events_ = 0;
};

// When the events of an answer are to be sent again. An entry without a pace (a plain answer, or an
// older version's) has its first event when that came and the others evenly until its end.
class PacePlayer {
 public:
  // `events`: of the stream that is made of the entry now, which need not be as many as came.
  PacePlayer(const Entry& entry, std::size_t events);
  // Since the request. Never less than that of the event before.
  std::chrono::milliseconds time_of(std::size_t event) const;

 private:
  std::vector<std::int64_t> points_;  // at equal parts of the stream; the last one is its end
  std::size_t events_;
};

}  // namespace fixpoint
