// serve and check-config.
#include <vector>

#include "gateway/cli/output.hpp"
#include "gateway/model_store.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint::cli {
namespace {

// What is no error of the file but will hinder serving from it.
std::vector<std::string> notes_on(const Config& config) {
  std::vector<std::string> notes;
  const ModelStore store(config.models_dir());
  if (config.tiny_by_default) {
    notes.push_back("no models, upstreams or routes: " + std::string(kTinyModel) +
                    " answers requests for " + std::string(kTinyModel));
  }
  for (std::size_t i = 0; i < config.models.size(); ++i) {
    if (auto path = store.resolve(config.models[i].path); !path) {
      notes.push_back("models[" + std::to_string(i) + "].path: " + path.error().message);
    }
  }
  return notes;
}

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

int show_errors(const Session& session, const std::vector<ConfigError>& errors) {
  if (session.json) {
    Json list = Json::array();
    for (const ConfigError& error : errors) {
      list.push_back({{"file", error.file},
                      {"line", error.line},
                      {"column", error.column},
                      {"message", error.message}});
    }
    write_json(session, {{"ok", false}, {"errors", list}});
  } else {
    for (const ConfigError& error : errors) {
      session.context.err << error.text() << '\n';
    }
    session.context.err << counted(errors.size(), "error") << '\n';
  }
  return kExitUsage;
}

}  // namespace

int serve(const Session& session, const ServeLine& line) {
  ServeArguments arguments;
  arguments.file = config_file_of(session);
  arguments.options = config_options_of(session);
  arguments.options.listen = line.listen;
  arguments.options.need_secrets = !line.replay_dir;
  arguments.record_dir = line.record_dir;
  arguments.replay_dir = line.replay_dir;
  ConfigResult config = load_config(arguments.file, arguments.options);
  if (!config) {
    for (const ConfigError& error : config.error()) {
      session.context.err << error.text() << '\n';
    }
    return kExitUsage;
  }
  arguments.config = std::move(*config);
  return session.context.serve(arguments);
}

int check_config(const Session& session, bool print_keys) {
  if (print_keys) {
    session.context.out << config_keys_markdown();
    return kExitOk;
  }
  const std::string file = config_file_of(session);
  ConfigOptions options = config_options_of(session);
  options.check_files = true;
  const ConfigResult config = load_config(file, options);
  if (!config) return show_errors(session, config.error());
  const auto notes = notes_on(*config);
  if (session.json) {
    const Json result{{"ok", true},
                      {"file", file},
                      {"data_dir", config->data_dir},
                      {"models", config->models.size()},
                      {"upstreams", config->upstreams.size()},
                      {"routes", config->routes.size()},
                      {"notes", notes}};
    write_json(session, result);
    return kExitOk;
  }
  for (const std::string& note : notes) {
    session.context.err << "note: " << safe_text(note) << '\n';
  }
  session.context.out << (file.empty() ? "no configuration file, defaults" : safe_text(file))
                      << ": ok, " << counted(config->models.size(), "model") << ", "
                      << counted(config->upstreams.size(), "upstream") << ", "
                      << counted(config->routes.size(), "route") << '\n';
  return kExitOk;
}

}  // namespace fixpoint::cli
