#include "gateway/upstream/balancer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fixpoint {

Balancer::Balancer(std::vector<WeightedUpstream> choices, std::vector<std::string> fallbacks)
    : fallbacks_(std::move(fallbacks)) {
  for (WeightedUpstream& choice : choices) {
    choices_.push_back(Choice{std::move(choice.name), static_cast<std::int64_t>(choice.weight), 0});
  }
  if (choices_.empty()) throw std::logic_error("a balancer without a choice");
}

// Smooth weighted round robin: each takes its weight, the richest is chosen and pays the sum.
const std::string& Balancer::choose(const IsOpen& is_open) {
  if (choices_.size() == 1) return choices_.front().name;
  std::vector<Choice*> able;
  able.reserve(choices_.size());
  for (Choice& choice : choices_) {
    if (!is_open(choice.name)) able.push_back(&choice);
  }
  if (able.empty()) {
    for (Choice& choice : choices_) able.push_back(&choice);
  }
  const std::lock_guard lock(mutex_);
  std::int64_t sum = 0;
  Choice* best = nullptr;
  for (Choice* choice : able) {
    choice->current += choice->weight;
    sum += choice->weight;
    if (best == nullptr || choice->current > best->current) best = choice;
  }
  best->current -= sum;
  return best->name;
}

std::vector<const std::string*> Balancer::order(const IsOpen& is_open) {
  std::vector<const std::string*> names;
  names.reserve(1 + fallbacks_.size());
  const std::string& chosen = choose(is_open);
  const auto add = [&](const std::string& name) {
    const bool known = std::any_of(names.begin(), names.end(),
                                   [&](const std::string* other) { return *other == name; });
    if (!known && !is_open(name)) names.push_back(&name);
  };
  add(chosen);
  for (const std::string& name : fallbacks_) add(name);
  if (names.empty()) names.push_back(&chosen);
  return names;
}

}  // namespace fixpoint
