#include "gateway/api/pace.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace fixpoint {
namespace {

// Of a recording that somebody may have edited: what is no time ends it.
std::vector<std::int64_t> parse_points(std::string_view text, std::size_t limit) {
  std::vector<std::int64_t> points;
  while (!text.empty() && points.size() < limit) {
    std::uint32_t point = 0;
    const auto number = std::from_chars(text.data(), text.data() + text.size(), point);
    if (number.ec != std::errc()) break;
    points.push_back(point);
    text.remove_prefix(static_cast<std::size_t>(number.ptr - text.data()));
    if (!text.starts_with(' ')) break;
    text.remove_prefix(1);
  }
  return points;
}

}  // namespace

void PaceRecorder::event(std::chrono::milliseconds at) {
  if (events_++ % stride_ != 0) return;
  if (points_.size() == kMaxPoints) {
    for (std::size_t i = 0; i < kMaxPoints / 2; ++i) points_[i] = points_[2 * i];
    points_.resize(kMaxPoints / 2);
    stride_ *= 2;  // this event is a multiple of it, as kMaxPoints is even
  }
  points_.push_back(at.count());
}

std::string PaceRecorder::text() const {
  std::string text;
  for (const auto point : points_) {
    if (!text.empty()) text += ' ';
    text += std::to_string(point);
  }
  return text;
}

PacePlayer::PacePlayer(const Entry& entry, std::size_t events) : events_(events) {
  constexpr std::size_t kMostRead = 1024;
  points_ = parse_points(entry.pace, kMostRead);
  if (points_.empty()) points_.push_back(entry.first_token_ms);
  points_.push_back(entry.total_ms);
  for (std::size_t i = 1; i < points_.size(); ++i) {
    points_[i] = std::max(points_[i], points_[i - 1]);
  }
}

std::chrono::milliseconds PacePlayer::time_of(std::size_t event) const {
  const std::size_t steps = std::max<std::size_t>(events_, 2) - 1, parts = points_.size() - 1;
  const std::size_t at = std::min(event, steps) * parts;  // in steps-ths of a part
  const std::size_t part = at / steps, rest = at % steps;
  if (part == parts) return std::chrono::milliseconds(points_[parts]);
  const std::int64_t between = points_[part + 1] - points_[part];
  return std::chrono::milliseconds(points_[part] + between * static_cast<std::int64_t>(rest) /
                                                       static_cast<std::int64_t>(steps));
}

}  // namespace fixpoint
