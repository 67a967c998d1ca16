#include "cache/fingerprints.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace fixpoint {
namespace {

std::string name_of(std::string_view provider, std::string_view model) {
  std::string name;
  name.reserve(provider.size() + 1 + model.size());
  name += provider;
  name += '\0';
  name += model;
  return name;
}

}  // namespace

FingerprintTracker::FingerprintTracker(std::vector<SeenFingerprint> seen) {
  // As if they came in the order of their last sight: what has to be forgotten is the oldest.
  std::sort(seen.begin(), seen.end(), [](const SeenFingerprint& a, const SeenFingerprint& b) {
    return std::tie(a.last_seen_ms, a.first_seen_ms) < std::tie(b.last_seen_ms, b.first_seen_ms);
  });
  std::unordered_map<std::string_view, std::int64_t> epoch_begins;  // by Model::name
  for (const SeenFingerprint& one : seen) {
    if (one.fingerprint.empty()) continue;
    Model& model = model_of(one.provider, one.model);
    if (model.known.size() == kMaxPerModel) model.known.erase(model.known.begin());
    model.known.push_back({one.fingerprint, one.generations});
    const auto [begin, is_first] = epoch_begins.try_emplace(model.name, one.first_seen_ms);
    if (is_first || one.first_seen_ms >= begin->second) {
      begin->second = one.first_seen_ms;
      model.epoch = one.fingerprint;
    }
  }
}

FingerprintTracker::Model& FingerprintTracker::model_of(std::string_view provider,
                                                        std::string_view model) {
  std::string name = name_of(provider, model);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) {
    models_.splice(models_.end(), models_, found->second);
    return models_.back();
  }
  if (models_.size() == kMaxModels) {
    by_name_.erase(models_.front().name);
    models_.pop_front();
  }
  models_.push_back({std::move(name), "", {}});
  by_name_.emplace(models_.back().name, std::prev(models_.end()));
  return models_.back();
}

std::optional<FingerprintDrift> FingerprintTracker::observe(std::string_view provider,
                                                            std::string_view model,
                                                            std::string_view fingerprint) {
  if (fingerprint.empty()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  Model& one = model_of(provider, model);
  const auto known = std::find_if(one.known.begin(), one.known.end(), [&](const Known& other) {
    return other.fingerprint == fingerprint;
  });
  if (known != one.known.end()) {
    ++known->count;
    std::rotate(known, known + 1, one.known.end());
    return std::nullopt;
  }
  bool says_something = true;
  if (one.known.size() == kMaxPerModel) {
    says_something = one.known.front().count > 1;
    one.known.erase(one.known.begin());
  }
  one.known.push_back({std::string(fingerprint), 1});
  if (!says_something) return std::nullopt;
  std::string previous = std::exchange(one.epoch, std::string(fingerprint));
  if (previous.empty()) return std::nullopt;
  return FingerprintDrift{std::string(provider), std::string(model), std::move(previous),
                          one.epoch};
}

std::string FingerprintTracker::epoch(std::string_view provider, std::string_view model) const {
  const std::string name = name_of(provider, model);
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? "" : found->second->epoch;
}

std::size_t FingerprintTracker::models() const {
  const std::lock_guard lock(mutex_);
  return models_.size();
}

}  // namespace fixpoint
