#include "gateway/cli/cli.hpp"

#include <CLI/CLI.hpp>
#include <exception>

#include "cache/token_log.hpp"
#include "gateway/cli/verbs.hpp"
#include "gateway/version.hpp"

namespace fixpoint {
namespace {

using cli::Session;

constexpr std::string_view kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 not found.";

// Everything that options write to, and the verb that was chosen.
struct Command {
  explicit Command(const CliContext& context) : session{context, "", "", false} {}

  Session session;
  std::optional<std::string> listen;
  bool print_keys = false;
  std::string name, from_file, file, key, id;
  cli::PurgeArguments purge;
  cli::MarginArguments margins;
  std::size_t limit = 20;
  std::function<int()> run;
};

CLI::App* add_verb(CLI::App& parent, const std::string& name, const std::string& description,
                   const std::string& example) {
  CLI::App* verb = parent.add_subcommand(name, description);
  verb->footer("Example: " + example);
  return verb;
}

CLI::App* add_group(CLI::App& parent, const std::string& name, const std::string& description,
                    const std::string& example) {
  CLI::App* group = add_verb(parent, name, description, example);
  group->require_subcommand(1);
  return group;
}

// Rows of one listing; the token log refuses more.
void add_limit(CLI::App* verb, std::size_t& limit) {
  verb->add_option("-n,--limit", limit, "How many")
      ->check(CLI::Range(std::size_t{1}, TokenLog::kMaxRows))
      ->capture_default_str();
}

void add_server_verbs(CLI::App& app, Command& command) {
  auto* serve = add_verb(app, "serve", "Serve until SIGINT or SIGTERM",
                         "fixpoint serve --config fixpoint.yaml --listen 127.0.0.1:8080");
  serve->add_option("--listen", command.listen, "Address and port instead of server.listen");
  serve->callback(
      [&] { command.run = [&] { return cli::serve(command.session, command.listen); }; });

  auto* check = add_verb(app, "check-config", "Check a configuration file and report every error",
                         "fixpoint check-config --config fixpoint.yaml");
  check->add_flag("--print-keys", command.print_keys, "Print the table of all keys as markdown");
  check->callback([&] {
    command.run = [&] { return cli::check_config(command.session, command.print_keys); };
  });
}

void add_model_verbs(CLI::App& app, Command& command) {
  auto* model = add_group(app, "model", "Model files", "fixpoint model list");
  auto* pull = add_verb(*model, "pull", "Fetch a known model and check its SHA-256",
                        "fixpoint model pull smollm2-135m");
  pull->add_option("name", command.name, "A known model's name")->required();
  pull->add_option("--from", command.from_file, "Take this file instead of fetching one");
  pull->callback([&] {
    command.run = [&] { return cli::model_pull(command.session, command.name, command.from_file); };
  });

  auto* list = add_verb(*model, "list", "Known models and the files that are here",
                        "fixpoint model list --json");
  list->callback([&] { command.run = [&] { return cli::model_list(command.session); }; });

  auto* inspect = add_verb(*model, "inspect", "Show metadata and tensors of any GGUF file",
                           "fixpoint model inspect smollm2-135m");
  inspect->add_option("file", command.file, "A file, or a known model's name")->required();
  inspect->callback(
      [&] { command.run = [&] { return cli::model_inspect(command.session, command.file); }; });
}

void add_cache_verbs(CLI::App& app, Command& command) {
  auto* cache = add_group(app, "cache", "The answer cache", "fixpoint cache stats");
  auto* stats = add_verb(*cache, "stats", "Count entries and bytes", "fixpoint cache stats --json");
  stats->callback([&] { command.run = [&] { return cli::cache_stats(command.session); }; });

  auto* get = add_verb(*cache, "get", "Print one stored answer",
                       "fixpoint cache get prompt:3f7a... (an answer's x-fixpoint-key)");
  get->add_option("key", command.key, "prompt:<64 hex digits> or body:<64 hex digits>")->required();
  get->callback(
      [&] { command.run = [&] { return cli::cache_get(command.session, command.key); }; });

  auto* purge = add_verb(*cache, "purge",
                         "Remove entries: all given conditions must hold. Only while no gateway "
                         "serves from this cache",
                         "fixpoint cache purge --model gpt-4o --older-than 30d");
  purge->add_option("--key", command.purge.key, "The entry of this key");
  purge->add_option("--model", command.purge.model, "Answers of this model");
  purge->add_option("--older-than", command.purge.older_than, "Made before: 90s, 15m, 1h, 30d, 2w");
  purge->add_flag("--all", command.purge.all, "Everything");
  purge->callback(
      [&] { command.run = [&] { return cli::cache_purge(command.session, command.purge); }; });
}

void add_log_verbs(CLI::App& app, Command& command) {
  auto* log = add_group(app, "log", "The token log", "fixpoint log tail -n 5");
  auto* tail = add_verb(*log, "tail", "The newest generations", "fixpoint log tail -n 5");
  add_limit(tail, command.limit);
  tail->callback(
      [&] { command.run = [&] { return cli::log_tail(command.session, command.limit); }; });

  auto* show = add_verb(*log, "show", "One generation, token by token",
                        "fixpoint log show gen-0123456789abcdef01234567");
  show->add_option("id", command.id, "A generation's id, or a cache key (its newest generation)")
      ->required();
  show->callback([&] { command.run = [&] { return cli::log_show(command.session, command.id); }; });

  auto* margins = add_verb(*log, "margins",
                           "The thinnest margins between the two likeliest tokens, thinnest first",
                           "fixpoint log margins --since 1h -n 10");
  margins->add_option("id", command.margins.generation, "Only this generation");
  margins->add_option("--since", command.margins.since, "From: 1h ago, or 2026-11-29T21:00:00Z");
  margins->add_option("--until", command.margins.until, "Up to, likewise");
  add_limit(margins, command.margins.limit);
  margins->callback(
      [&] { command.run = [&] { return cli::log_margins(command.session, command.margins); }; });
}

int parse_and_run(int argc, const char* const* argv, const CliContext& context) {
  CLI::App app{
      "Fixpoint: a gateway between LLM code and models, with keyed answers, a reproducible "
      "local engine and a token log.",
      "fixpoint"};
  app.set_version_flag("--version", "fixpoint " + std::string(kVersion));
  app.footer(std::string(kExitCodes));
  app.require_subcommand(1);
  app.fallthrough();  // the shared options may stand behind the verb

  Command command(context);
  app.add_option("--config", command.session.config_file,
                 "Configuration; else ./fixpoint.yaml, else $XDG_CONFIG_HOME/fixpoint/config.yaml, "
                 "else defaults");
  app.add_option("--data-dir", command.session.data_dir, "Folder of data instead of data_dir");
  app.add_flag("--json", command.session.json, "Print results as JSON");
  add_server_verbs(app, command);
  add_model_verbs(app, command);
  add_cache_verbs(app, command);
  add_log_verbs(app, command);

  if (argc < 2) {
    context.err << app.help();
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and the version end the parse too, with code 0.
    return app.exit(error, context.out, context.err) == 0 ? kExitOk : kExitUsage;
  }
  const int code = command.run();
  context.out.flush();
  if (!context.out) {
    context.err << "fixpoint: the output cannot be written\n";
    return kExitFailed;
  }
  return code;
}

}  // namespace

int run_cli(int argc, const char* const* argv, const CliContext& context) {
  try {
    return parse_and_run(argc, argv, context);
  } catch (const std::exception& error) {
    context.err << "fixpoint: " << error.what() << '\n';
    return kExitFailed;
  }
}

}  // namespace fixpoint
