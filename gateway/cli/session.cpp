#include "gateway/cli/verbs.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {

std::string config_file_of(const Session& session) {
  if (!session.config_file.empty()) return session.config_file;
  return find_config_file(session.context.environment).value_or("");
}

ConfigOptions config_options_of(const Session& session) {
  ConfigOptions options;
  options.environment = session.context.environment;
  if (!session.data_dir.empty()) options.data_dir = session.data_dir;
  return options;
}

std::optional<Config> load_for_tool(const Session& session) {
  ConfigOptions options = config_options_of(session);
  options.need_secrets = false;
  ConfigResult config = load_config(config_file_of(session), options);
  if (config) return std::move(*config);
  for (const ConfigError& error : config.error()) {
    session.context.err << "fixpoint: " << error.text() << '\n';
  }
  return std::nullopt;
}

int report(const Session& session, const Error& error) {
  session.context.err << "fixpoint: " << safe_text(error.message) << '\n';
  switch (error.code) {
    case ErrorCode::invalid:
      return kExitUsage;
    case ErrorCode::not_found:
      return kExitNotFound;
    default:
      return kExitFailed;
  }
}

}  // namespace fixpoint::cli
