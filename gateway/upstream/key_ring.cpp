#include "gateway/upstream/key_ring.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fixpoint {

KeyRing::KeyRing(std::vector<std::string> keys, Now now)
    : keys_(std::move(keys)), now_(std::move(now)), until_(keys_.size()) {
  if (keys_.empty()) throw std::logic_error("a key ring without keys");
}

// From the current key on, in the ring's order; keys_.size(): all rest.
std::size_t KeyRing::first_awake(Clock::time_point now) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const std::size_t index = (current_ + i) % keys_.size();
    if (until_[index] <= now) return index;
  }
  return keys_.size();
}

KeyRing::Key KeyRing::next() {
  const Clock::time_point now = now_();
  const std::lock_guard lock(mutex_);
  std::size_t index = first_awake(now);
  if (index < keys_.size()) {
    current_ = index;
  } else {
    const auto soonest = std::min_element(until_.begin(), until_.end());
    index = static_cast<std::size_t>(soonest - until_.begin());
  }
  return Key{&keys_[index], index, until_[index]};
}

void KeyRing::rate_limited(std::size_t index, Clock::time_point until) {
  const std::lock_guard lock(mutex_);
  until_.at(index) = std::max(until_.at(index), until);
}

std::size_t KeyRing::resting() const {
  const Clock::time_point now = now_();
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(until_.begin(), until_.end(), [now](auto until) { return until > now; }));
}

}  // namespace fixpoint
