// Any bytes as a configuration: errors or a Config, never a crash. What was accepted keeps its
// promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gateway/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fixpoint::ConfigOptions options;
  options.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") return "/home/fuzz";
    if (name == "A") return "value";
    return std::nullopt;
  };
  const auto config =
      fixpoint::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", options);
  if (!config) {
    if (config.error().empty()) std::abort();
    for (const fixpoint::ConfigError& error : config.error()) {
      if (error.text().find('\n') != std::string::npos) std::abort();
    }
    return 0;
  }
  if (config->data_dir.empty() || config->cache.path.empty()) std::abort();
  if (!fixpoint::parse_listen(config->server.listen)) std::abort();
  for (const fixpoint::RouteConfig& route : config->routes) {
    const int ways =
        int{!route.upstream.empty()} + int{!route.weights.empty()} + int{!route.local.empty()};
    if (ways != 1) std::abort();
    for (const fixpoint::NamedValue& weight : route.weights) {
      if (config->find_upstream(weight.name) == nullptr) std::abort();
    }
    for (const std::string& name : route.fallbacks) {
      if (config->find_upstream(name) == nullptr) std::abort();
    }
    if (!route.upstream.empty() && config->find_upstream(route.upstream) == nullptr) std::abort();
    if (!route.local.empty() && config->find_model(route.local) == nullptr) std::abort();
  }
  if (!fixpoint::reload_problems(*config, *config).empty()) std::abort();
  return 0;
}
