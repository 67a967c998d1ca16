#include "gateway/settings.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace fixpoint {
namespace {

std::vector<WeightedUpstream> choices_of(const RouteConfig& route) {
  std::vector<WeightedUpstream> choices;
  if (!route.upstream.empty()) choices.push_back({route.upstream, 1});
  for (const auto& [name, text] : route.weights) {
    std::uint64_t weight = 0;  // checked when the file was loaded
    std::from_chars(text.data(), text.data() + text.size(), weight);
    choices.push_back({name, weight});
  }
  return choices;
}

// The choice that `place` falls on by weight, taken out of the vector. What is left of `place`
// decides among the others.
std::string take_choice(std::vector<WeightedUpstream>& choices, std::uint64_t& place) {
  std::uint64_t total = 0;
  for (const auto& choice : choices) total += choice.weight;
  std::uint64_t at = place % total;
  place /= total;
  auto chosen = choices.begin();
  for (; at >= chosen->weight; ++chosen) at -= chosen->weight;
  std::string name = std::move(chosen->name);
  choices.erase(chosen);
  return name;
}

PriceTable price_table(const Config& config) {
  auto prices = PriceTable::make(config.prices);
  if (!prices) throw std::runtime_error(prices.error().message);
  return std::move(*prices);
}

}  // namespace

Settings::Settings(Config configuration, Cores& cores, RequestMetrics& metrics,
                   const Settings* previous)
    : config(std::move(configuration)), prices(price_table(config)) {
  for (const auto& upstream : config.upstreams) {
    auto known = previous ? previous->find_upstream(upstream.name) : nullptr;
    if (!known || !known->is_current(upstream)) {
      known = std::make_shared<Upstream>(upstream, cores, metrics, known.get());
    }
    upstreams_.emplace(upstream.name, std::move(known));
  }
  for (const auto& route : config.routes) {
    Route made{&route, choices_of(route), nullptr};
    if (!made.choices.empty()) {
      made.balancer = std::make_unique<Balancer>(made.choices, route.fallbacks);
    }
    routes_.push_back(std::move(made));
  }
}

bool Settings::has_price(std::string_view model) const {
  return std::any_of(config.prices.begin(), config.prices.end(),
                     [&](const PriceConfig& price) { return glob_matches(price.model, model); });
}

const Route* Settings::find_route(std::string_view model) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return glob_matches(route.config->model, model);
  });
  return found == routes_.end() ? nullptr : &*found;
}

UpstreamPtr Settings::find_upstream(std::string_view name) const {
  const auto found = upstreams_.find(name);
  return found == upstreams_.end() ? nullptr : found->second;
}

std::vector<UpstreamPtr> Settings::order(const Route& route, const std::uint64_t* sticky,
                                         const CanTake& can_take) const {
  std::vector<UpstreamPtr> order;
  const auto add = [&](const std::string& name) {
    auto one = find_upstream(name);
    const bool known = std::find(order.begin(), order.end(), one) != order.end();
    if (!known && can_take(*one)) order.push_back(std::move(one));
  };
  if (route.choices.size() == 1) {  // the usual case, without a lock
    add(route.choices.front().name);
    for (const auto& name : route.config->fallbacks) add(name);
    return order;
  }
  if (!sticky) {
    const auto is_out = [&](const std::string& name) {
      const auto one = find_upstream(name);
      return !can_take(*one) || !one->breaker.would_allow();
    };
    for (const auto* name : route.balancer->order(is_out)) add(*name);
    if (!order.empty()) return order;
    // The one that the balancer names when all are out cannot take it.
    for (const auto& choice : route.choices) add(choice.name);
    for (const auto& name : route.config->fallbacks) add(name);
    return order;
  }
  auto left = route.choices;
  std::erase_if(left, [&](const auto& choice) { return !can_take(*find_upstream(choice.name)); });
  std::uint64_t place = *sticky;
  // An open one keeps its turn: no call is made, but the answer that it gave before is found.
  while (!left.empty()) {
    add(take_choice(left, place));
    if (order.back()->breaker.would_allow()) break;
  }
  for (const auto& name : route.config->fallbacks) add(name);
  return order;
}

}  // namespace fixpoint
