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
  cli::ServeLine serve;
  bool print_keys = false;
  std::string name, from_file, file, key, id;
  cli::PurgeArguments purge;
  cli::NewKeyArguments new_key;
  cli::MarginArguments margins;
  cli::ExportArguments log_export;
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

void add_range(CLI::App* verb, std::optional<std::string>& since,
               std::optional<std::string>& until) {
  verb->add_option("--since", since, "From: 1h ago, or 2026-11-29T21:00:00Z");
  verb->add_option("--until", until, "Up to, likewise");
}

void add_server_verbs(CLI::App& app, Command& command) {
  auto* serve = add_verb(app, "serve", "Serve until SIGINT or SIGTERM",
                         "fixpoint serve --config fixpoint.yaml --listen 127.0.0.1:8080");
  serve->add_option("--listen", command.serve.listen, "Address and port instead of server.listen");
  auto* record = serve->add_option("--record", command.serve.record_dir,
                                   "Answer from the recordings in this folder, and add what they "
                                   "lack: readable files to keep beside a test suite");
  serve
      ->add_option("--replay", command.serve.replay_dir,
                   "Answer from the recordings in this folder alone: what they lack is an error, "
                   "and no API key is needed; routes with a local model need its file, which "
                   "makes the tokens that their recordings are found by")
      ->excludes(record);
  serve->callback(
      [&] { command.run = [&] { return cli::serve(command.session, command.serve); }; });

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

void add_entry_filter(CLI::App* verb, cli::PurgeArguments& arguments) {
  verb->add_option("--model", arguments.model, "Answers of this model");
  verb->add_option("--tenant", arguments.tenant, "Answers in this cache namespace");
  verb->add_option("--older-than", arguments.older_than, "Made before: 90s, 15m, 1h, 30d, 2w");
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
                         "Remove entries: all given conditions must hold. A gateway that holds the "
                         "cache does the work",
                         "fixpoint cache purge --model gpt-4o-2024-08-06 --older-than 30d");
  purge->add_option("--key", command.purge.key, "The entry of this key");
  add_entry_filter(purge, command.purge);
  purge->add_flag("--all", command.purge.all, "Everything");
  purge->callback(
      [&] { command.run = [&] { return cli::cache_purge(command.session, command.purge); }; });

  auto* dump = add_verb(*cache, "export",
                        "Print entries as JSON, one a line: all given conditions must hold",
                        "fixpoint cache export --model gpt-4o > answers.jsonl");
  add_entry_filter(dump, command.purge);
  dump->callback(
      [&] { command.run = [&] { return cli::cache_export(command.session, command.purge); }; });

  auto* load = add_verb(*cache, "import",
                        "Add the entries of an export; those of the same key are replaced. A "
                        "gateway that holds the cache must be stopped first",
                        "fixpoint cache import answers.jsonl");
  load->add_option("file", command.file, "What export printed")->required();
  load->callback(
      [&] { command.run = [&] { return cli::cache_import(command.session, command.file); }; });
}

void add_key_verbs(CLI::App& app, Command& command) {
  auto* keys =
      add_group(app, "keys", "Gateway keys: from the first one on, every request needs a key",
                "fixpoint keys list");
  auto* create = add_verb(*keys, "create", "Make a key and print its secret, this once",
                          "fixpoint keys create --name ci --models 'gpt-*' --monthly-usd 50");
  create->add_option("--name", command.new_key.name, "For people")->required();
  create->add_option("--namespace", command.new_key.cache_namespace,
                     "Keys with the same one share cached answers; else the key shares with none");
  create
      ->add_option("--models", command.new_key.models,
                   "Patterns: 'gpt-*,claude-*'; else every model")
      ->delimiter(',');
  create->add_option("--rpm", command.new_key.requests_per_minute, "Requests per minute");
  create->add_option("--tpm", command.new_key.tokens_per_minute, "Tokens per minute");
  create->add_option("--monthly-tokens", command.new_key.monthly_tokens, "Tokens per month (UTC)");
  create->add_option("--monthly-usd", command.new_key.monthly_usd,
                     "US dollars per month, by the prices of the configuration");
  create->callback(
      [&] { command.run = [&] { return cli::keys_create(command.session, command.new_key); }; });

  auto* list = add_verb(*keys, "list", "All keys, revoked ones too", "fixpoint keys list --json");
  list->callback([&] { command.run = [&] { return cli::keys_list(command.session); }; });

  auto* revoke = add_verb(*keys, "revoke", "Refuse a key from now on",
                          "fixpoint keys revoke key_0123456789ab");
  revoke->add_option("id", command.id, "A key's id")->required();
  revoke->callback(
      [&] { command.run = [&] { return cli::keys_revoke(command.session, command.id); }; });

  auto* usage =
      add_verb(*keys, "usage", "What keys have used this month, or one key in every month",
               "fixpoint keys usage key_0123456789ab");
  usage->add_option("id", command.id, "A key's id");
  usage->callback(
      [&] { command.run = [&] { return cli::keys_usage(command.session, command.id); }; });
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
                           "The thinnest margins between the two likeliest tokens, thinnest first; "
                           "or, with --by, how many tokens have thin ones",
                           "fixpoint log margins --since 1h -n 10\n"
                           "         fixpoint log margins --by model,route");
  margins->add_option("id", command.margins.generation, "Only this generation");
  add_range(margins, command.margins.since, command.margins.until);
  add_limit(margins, command.margins.limit);
  margins->add_option("--by", command.margins.by, "Report by model, route or both: model,route")
      ->delimiter(',')
      ->check(CLI::IsMember({"model", "route"}));
  margins->add_option("--model", command.margins.model, "With --by: only this model");
  margins->add_option("--route", command.margins.route, "With --by: only this route");
  margins
      ->add_option("--examples", command.margins.examples,
                   "With --by: how many of the thinnest tokens of each row are shown")
      ->check(CLI::Range(std::size_t{0}, TokenLog::kMaxExamples))
      ->capture_default_str();
  margins->callback(
      [&] { command.run = [&] { return cli::log_margins(command.session, command.margins); }; });

  auto* fingerprints = add_verb(*log, "fingerprints",
                                "Which backends answered for each model, and when they changed",
                                "fixpoint log fingerprints --json");
  fingerprints->callback(
      [&] { command.run = [&] { return cli::log_fingerprints(command.session); }; });

  auto* all = add_verb(*log, "export",
                       "All generations, oldest first. In CSV, text that a spreadsheet would take "
                       "for a formula begins with an apostrophe; JSON lines are unchanged",
                       "fixpoint log export --format csv --tokens --since 7d > tokens.csv");
  all->add_option("--format", command.log_export.format, "jsonl or csv (RFC 4180)")
      ->check(CLI::IsMember({"jsonl", "csv"}))
      ->capture_default_str();
  add_range(all, command.log_export.since, command.log_export.until);
  all->add_option("--model", command.log_export.model, "Only generations of this model");
  all->add_option("--route", command.log_export.route, "Only generations of this route");
  all->add_flag("--tokens", command.log_export.tokens,
                "Tokens too: in each line, or in CSV one row per token");
  all->callback(
      [&] { command.run = [&] { return cli::log_export(command.session, command.log_export); }; });
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
  add_key_verbs(app, command);
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
