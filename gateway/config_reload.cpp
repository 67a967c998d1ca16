// Which changes of a configuration a running gateway can take over.
#include "gateway/config_keys.hpp"

namespace fixpoint {
namespace {

using config::Key;
using config::keys;

class Comparison {
 public:
  template <class Section>
  void section(Section running, Section fresh, const std::string& prefix) {
    for (const Key<Section>& key : keys<Section>()) {
      if (key.at_start && !config::same_value(key.slot(running), key.slot(fresh))) {
        report(prefix + std::string(key.info.name));
      }
    }
  }

  template <class Item>
  void list(const std::vector<Item>& running, const std::vector<Item>& fresh,
            const std::string& name) {
    if (running.size() != fresh.size()) return report(name);
    for (std::size_t i = 0; i < running.size(); ++i) {
      section(running[i], fresh[i], name + "[" + std::to_string(i) + "].");
    }
  }

  std::vector<std::string> take() { return std::move(problems_); }

 private:
  void report(const std::string& key) {
    problems_.push_back(key + ": differs from what runs, and is read at the start only");
  }

  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> reload_problems(const Config& running, const Config& fresh) {
  // Prices, upstreams and routes have no key that is read at the start only.
  Comparison comparison;
  comparison.section(running, fresh, "");
  comparison.section(running.server, fresh.server, "server.");
  comparison.section(running.cache, fresh.cache, "cache.");
  comparison.section(running.log, fresh.log, "log.");
  comparison.section(running.access_log, fresh.access_log, "access_log.");
  comparison.section(running.admin, fresh.admin, "admin.");
  comparison.section(running.telemetry, fresh.telemetry, "telemetry.");
  comparison.list(running.models, fresh.models, "models");
  return comparison.take();
}

std::vector<std::string> unloaded_models(const Config& running, const Config& fresh) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < fresh.routes.size(); ++i) {
    const auto check = [&](const char* key, const std::string& model) {
      if (model.empty() || running.find_model(model) != nullptr) return;
      problems.push_back("routes[" + std::to_string(i) + "]." + key + ": the model '" + model +
                         "' is not loaded: models are read at the start only");
    };
    check("local", fresh.routes[i].local);
    check("repro_model", fresh.routes[i].repro_model);
  }
  return problems;
}

}  // namespace fixpoint
