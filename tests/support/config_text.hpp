// Configurations from text, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gateway/config.hpp"

namespace fixpoint::test {

inline Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

inline ConfigOptions with(std::map<std::string, std::string> variables) {
  variables.try_emplace("HOME", "/home/u");
  ConfigOptions options;
  options.environment = environment(std::move(variables));
  return options;
}

inline ConfigResult parse(const std::string& yaml, const ConfigOptions& options = with({})) {
  return parse_config(yaml, "f.yaml", options);
}

inline std::vector<std::string> errors_of(const std::string& yaml,
                                          const ConfigOptions& options = with({})) {
  std::vector<std::string> texts;
  const ConfigResult result = parse(yaml, options);
  if (!result) {
    for (const ConfigError& error : result.error()) texts.push_back(error.text());
  }
  return texts;
}

}  // namespace fixpoint::test
