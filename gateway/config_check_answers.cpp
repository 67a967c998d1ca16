// Checks between the keys about who answers what: models, upstreams, routes, prices.
#include <algorithm>
#include <charconv>
#include <set>

#include "gateway/config_keys.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint::config {
namespace {

constexpr std::uint32_t kMaxWeight = 1'000'000;

std::string in_quotes(std::string_view text) {
  return '"' + std::string(text) + '"';
}

std::string item_path(std::string_view list, std::size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

template <class Item>
void check_unique_names(const std::vector<Item>& items, std::string_view list,
                        const Report& report) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].name.empty() && !seen.insert(items[i].name).second) {
      report(item_path(list, i) + ".name", in_quotes(items[i].name) + " is already used in " +
                                               std::string(list) + ": names must be unique");
    }
  }
}

// In a list of which the first match counts: what an earlier pattern takes, a later one never gets.
template <class Item, class PatternOf>
void check_reachable(const std::vector<Item>& items, std::size_t i, PatternOf pattern_of,
                     const std::string& place, std::string_view list, const Report& report) {
  const std::string& pattern = pattern_of(items[i]);
  for (std::size_t earlier = 0; earlier < i && !pattern.empty(); ++earlier) {
    const std::string& glob = pattern_of(items[earlier]);
    if (glob == "*" || glob == pattern) {
      report(place, "can never match: " + item_path(list, earlier) + " (" + in_quotes(glob) +
                        ") takes every such request before it");
      return;
    }
  }
}

void check_api_keys(const UpstreamConfig& upstream, const std::string& path, const Report& report) {
  if (!upstream.api_key.empty() && !upstream.api_keys.empty()) {
    report(path + ".api_keys", "cannot be set together with api_key");
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < upstream.api_keys.size(); ++i) {
    const std::string& key = upstream.api_keys[i];
    if (!key.empty() && !seen.insert(key).second) {
      report(item_path(path + ".api_keys", i), "is the same key as an earlier one");
    }
  }
  const bool has_key = !upstream.api_key.empty() || !upstream.api_keys.empty();
  const std::string_view field =
      upstream.kind == UpstreamKind::anthropic ? "x-api-key" : "authorization";
  for (const NamedValue& header : upstream.headers) {
    if (has_key && equal_ignoring_case(header.name, field)) {
      report(path + ".headers." + header.name, "cannot be set together with api_key or api_keys");
    }
  }
}

void check_upstream(const UpstreamConfig& upstream, const std::string& path, const Report& report) {
  if (!upstream.base_url.empty() && !parse_url(upstream.base_url)) {
    report(path + ".base_url", "must be an http or https URL without user, query or fragment");
  }
  if (!upstream.proxy.empty() && !parse_proxy(upstream.proxy)) {
    report(path + ".proxy", "must be http://[user:password@]host[:port]");
  }
  check_api_keys(upstream, path, report);
  check_header_names(upstream.headers, path + ".headers", report);
  const auto& names = upstream.model_names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].name.empty()) report(path + ".model_names.", "the requested model is empty");
    const auto pattern_of = [](const NamedValue& entry) -> const std::string& {
      return entry.name;
    };
    check_reachable(names, i, pattern_of, path + ".model_names." + names[i].name,
                    path + ".model_names", report);
  }
}

class RouteCheck {
 public:
  RouteCheck(const Config& config, std::size_t i, const Report& report)
      : config_(config), route_(config.routes[i]), path_(item_path("routes", i)), report_(report) {}

  void run() {
    const int ways =
        int{!route_.upstream.empty()} + int{!route_.weights.empty()} + int{!route_.local.empty()};
    if (ways != 1) report_(path_, "exactly one of upstream, weights and local must be set");
    check_model(route_.local, "local");
    check_model(route_.repro_model, "repro_model");
    check_upstreams();
    if (route_.repro != ReproMode::off && route_.local.empty() && route_.repro_model.empty()) {
      report_(path_ + ".repro", in_quotes(to_string(route_.repro)) +
                                    " needs a local model: set repro_model to a name in models");
    }
  }

 private:
  void check_model(const std::string& name, std::string_view key) {
    if (!name.empty() && config_.find_model(name) == nullptr) {
      report_(path_ + "." + std::string(key), in_quotes(name) + " is no name in models");
    }
  }

  bool is_upstream(const std::string& name, const std::string& place) {
    if (config_.find_upstream(name) != nullptr) return true;
    report_(place, in_quotes(name) + " is no name in upstreams");
    return false;
  }

  void check_upstreams() {
    if (!route_.upstream.empty()) is_upstream(route_.upstream, path_ + ".upstream");
    for (const NamedValue& weight : route_.weights) {
      const std::string place = path_ + ".weights." + weight.name;
      std::uint32_t share = 0;
      const char* const end = weight.value.data() + weight.value.size();
      const auto parsed = std::from_chars(weight.value.data(), end, share);
      if (parsed.ec != std::errc() || parsed.ptr != end || share == 0 || share > kMaxWeight) {
        report_(place, "must be a whole number in 1 .. " + std::to_string(kMaxWeight));
      } else {
        is_upstream(weight.name, place);
      }
    }
    if (!route_.fallbacks.empty() && route_.upstream.empty() && route_.weights.empty()) {
      report_(path_ + ".fallbacks", "has no effect without upstream or weights");
      return;
    }
    std::set<std::string_view> seen{route_.upstream};
    for (std::size_t i = 0; i < route_.fallbacks.size(); ++i) {
      const std::string& name = route_.fallbacks[i];
      const std::string place = item_path(path_ + ".fallbacks", i);
      if (name.empty() || !is_upstream(name, place)) continue;
      if (!seen.insert(name).second) {
        report_(place, in_quotes(name) +
                           " is asked already, by this route's upstream or an earlier fallback");
      }
    }
  }

  const Config& config_;
  const RouteConfig& route_;
  const std::string path_;
  const Report& report_;
};

}  // namespace

void check_answers(const Config& config, const Report& report) {
  check_unique_names(config.models, "models", report);
  check_unique_names(config.upstreams, "upstreams", report);
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    check_upstream(config.upstreams[i], item_path("upstreams", i), report);
  }
  const auto model_of = [](const auto& item) -> const std::string& { return item.model; };
  for (std::size_t i = 0; i < config.routes.size(); ++i) {
    RouteCheck(config, i, report).run();
    check_reachable(config.routes, i, model_of, item_path("routes", i), "routes", report);
  }
  for (std::size_t i = 0; i < config.prices.size(); ++i) {
    check_reachable(config.prices, i, model_of, item_path("prices", i), "prices", report);
  }
}

}  // namespace fixpoint::config
