// Several API keys of one upstream: the next one takes over when one is rate limited.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/http/asio.hpp"

namespace fixpoint {

// Shared by all cores. Thread-safe. One key is in use until it is rate limited, so that an
// account's prompt cache stays warm. Keys appear in no message; name them by their index.
class KeyRing {
 public:
  using Now = std::function<Clock::time_point()>;

  struct Key {
    const std::string* text;  // valid as long as the ring
    std::size_t index;
    // Later than now: every key rests, and this is the one that rests shortest.
    Clock::time_point resting_until;
  };

  // Precondition: at least one key.
  explicit KeyRing(std::vector<std::string> keys, Now now = Clock::now);

  Key next();
  // The upstream answered 429 to this key: it rests at least until then, and calls that ask from
  // now on get the next key that does not rest.
  void rate_limited(std::size_t index, Clock::time_point until);
  std::size_t size() const { return keys_.size(); }
  std::size_t resting() const;  // keys that rest now, for metrics

 private:
  std::size_t first_awake(Clock::time_point now) const;

  const std::vector<std::string> keys_;
  const Now now_;
  mutable std::mutex mutex_;
  std::vector<Clock::time_point> until_;
  std::size_t current_ = 0;
};

}  // namespace fixpoint
