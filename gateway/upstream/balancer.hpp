// Which upstream gets a request, and which ones after it when it fails.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace fixpoint {

struct WeightedUpstream {
  std::string name;
  std::uint64_t weight = 1;  // at least 1
};

// One per route, shared by all cores. Thread-safe.
class Balancer {
 public:
  using IsOpen = std::function<bool(const std::string& upstream)>;

  // `choices`: the route's one upstream, or its weights.
  Balancer(std::vector<WeightedUpstream> choices, std::vector<std::string> fallbacks);

  // The order of attempts: the chosen upstream, then the fallbacks, each once. The choice is smooth
  // weighted round robin (5:1 gives a a a b a a, not a a a a a b) among those whose breaker is
  // closed. Upstreams whose breaker is open are left out; when all are, the first one alone. Never
  // empty; the names live as long as the balancer.
  std::vector<const std::string*> order(const IsOpen& is_open);

 private:
  struct Choice {
    std::string name;
    std::int64_t weight;
    std::int64_t current;  // the sum over all choices is 0 between two calls
  };
  const std::string& choose(const IsOpen& is_open);

  std::mutex mutex_;
  std::vector<Choice> choices_;  // names and weights never change
  const std::vector<std::string> fallbacks_;
};

}  // namespace fixpoint
