// What a reload replaces: the configuration with everything that is made from it. A request holds
// on to the settings that it began with.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/tenants/price_table.hpp"
#include "gateway/upstream/balancer.hpp"
#include "gateway/upstream/upstream.hpp"

namespace fixpoint {

struct Route {
  const RouteConfig* config;
  std::vector<WeightedUpstream> choices;  // empty: a local model answers
  std::unique_ptr<Balancer> balancer;     // null with choices empty
};

// Immutable but for what its upstreams and balancers count. Thread-safe.
class Settings {
 public:
  // Upstreams whose configuration and CA file did not change are taken from `previous` (null:
  // none), with their connections and breakers. The others of the same name keep its queue, whose
  // limits stay until Upstream::enforce_limits(). Throws std::runtime_error for a CA file or a
  // price.
  Settings(Config configuration, Cores& cores, RequestMetrics& metrics, const Settings* previous);

  const Config config;
  const PriceTable prices;

  bool has_price(std::string_view model) const;
  // The first route whose glob matches, or null.
  const Route* find_route(std::string_view model) const;
  // Null: no such upstream.
  UpstreamPtr find_upstream(std::string_view name) const;
  using CanTake = std::function<bool(const Upstream&)>;
  // Those upstreams that can take the request, in the order to try them; empty: none can. Requests
  // that ask for one particular answer (`sticky`: a digest of theirs) always begin at the same
  // upstream, so that its answer has one place in the cache, and while its breaker is open go on to
  // another of the weights, the same one for the same request. The others are spread by weight.
  std::vector<UpstreamPtr> order(const Route& route, const std::uint64_t* sticky,
                                 const CanTake& can_take) const;

 private:
  std::map<std::string, UpstreamPtr, std::less<>> upstreams_;
  std::vector<Route> routes_;
};
using SettingsPtr = std::shared_ptr<const Settings>;

}  // namespace fixpoint
