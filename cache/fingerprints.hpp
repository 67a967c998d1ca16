// Hosted fingerprints: which backend answered, as the provider names it (system_fingerprint), and
// when that name changed.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fixpoint {

// A row of the token log's table: one fingerprint of one model. A model is what was asked for:
// answers may name another one ("gpt-4o-2024-08-06").
struct SeenFingerprint {
  std::string provider, model, fingerprint;
  std::int64_t first_seen_ms = 0, last_seen_ms = 0;
  std::uint64_t generations = 0;
};

// A fingerprint that this model never had before.
struct FingerprintDrift {
  std::string provider, model;
  std::string previous;  // the newest one before it
  std::string current;
};

// Tells a new backend from one that was seen before. Thread-safe: one mutex, held for two hash
// look-ups.
//
// While a provider rolls out a change the fingerprints of two backends alternate. Only the first
// sight of a fingerprint is a drift, and it alone moves the epoch, so neither flaps; nor does the
// epoch go back when the provider does. A model's very first fingerprint is no drift. A provider
// that names every answer anew says nothing about its backend: once kMaxPerModel fingerprints were
// seen for a model and the one to be forgotten came only once, new ones are neither reported nor a
// new epoch.
class FingerprintTracker {
 public:
  static constexpr std::size_t kMaxModels = 10'000;  // beyond: the least recently seen is forgotten
  static constexpr std::size_t kMaxPerModel = 16;    // likewise

  FingerprintTracker() = default;
  // Starts with what TokenLog::fingerprints() has.
  explicit FingerprintTracker(std::vector<SeenFingerprint> seen);
  FingerprintTracker(const FingerprintTracker&) = delete;
  FingerprintTracker& operator=(const FingerprintTracker&) = delete;

  // For each answer of an upstream. An empty fingerprint (the provider has none) is no sight of
  // anything.
  std::optional<FingerprintDrift> observe(std::string_view provider, std::string_view model,
                                          std::string_view fingerprint);
  // The fingerprint that came last for the first time; empty when none was seen.
  std::string epoch(std::string_view provider, std::string_view model) const;
  std::size_t models() const;

 private:
  struct Known {
    std::string fingerprint;
    std::uint64_t count = 0;
  };
  struct Model {
    std::string name;  // provider, NUL, model
    std::string epoch;
    std::vector<Known> known;  // least recently seen first; at most kMaxPerModel
  };
  Model& model_of(std::string_view provider, std::string_view model);

  mutable std::mutex mutex_;
  std::list<Model> models_;  // least recently seen first
  std::unordered_map<std::string_view, std::list<Model>::iterator>
      by_name_;  // views of Model::name
};

}  // namespace fixpoint
