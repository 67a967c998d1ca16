// The verbs behind the command line. Internal to gateway/cli.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"
#include "gateway/cli/cli.hpp"
#include "gateway/config.hpp"

namespace fixpoint::cli {

// What every verb gets: where to write, and the options that all verbs share.
struct Session {
  const CliContext& context;
  std::string config_file;  // --config; empty: looked for
  std::string data_dir;     // --data-dir; empty: the configuration's
  bool json = false;        // --json
};

// The file that --config names or that is found; empty when there is none.
std::string config_file_of(const Session& session);
ConfigOptions config_options_of(const Session& session);
// The configuration for a tool that talks to no upstream. Nothing after its errors were written to
// context.err: then the exit code is kExitUsage.
std::optional<Config> load_for_tool(const Session& session);

// Writes "fixpoint: <message>" to context.err and returns the exit code for the error.
int report(const Session& session, const Error& error);

struct ServeLine {
  std::optional<std::string> listen, record_dir, replay_dir;
};
int serve(const Session& session, const ServeLine& line);
int check_config(const Session& session, bool print_keys);

int model_pull(const Session& session, const std::string& name, const std::string& from_file);
int model_list(const Session& session);
int model_inspect(const Session& session, const std::string& file);

struct PurgeArguments {  // and of an export, which has no `key` and `all`
  std::optional<std::string> key, model, tenant, older_than;
  bool all = false;
};
int cache_stats(const Session& session);
int cache_get(const Session& session, const std::string& key);
int cache_purge(const Session& session, const PurgeArguments& arguments);
int cache_export(const Session& session, const PurgeArguments& arguments);
int cache_import(const Session& session, const std::string& file);

struct NewKeyArguments {
  std::string name;
  std::optional<std::string> cache_namespace;
  std::vector<std::string> models;
  std::optional<std::uint64_t> requests_per_minute, tokens_per_minute, monthly_tokens;
  std::optional<double> monthly_usd;
};
int keys_create(const Session& session, const NewKeyArguments& arguments);
int keys_list(const Session& session);
int keys_revoke(const Session& session, const std::string& id);
int keys_usage(const Session& session, const std::string& id);  // empty: all keys, this month

struct MarginArguments {
  std::optional<std::string> generation, since, until;
  std::size_t limit = 20;
  std::vector<std::string> by;              // "model", "route"; empty: the listing, no report
  std::optional<std::string> model, route;  // of the report
  std::size_t examples = 3;                 // of the report, for each row
};
struct ExportArguments {
  std::string format = "jsonl";  // or "csv"
  std::optional<std::string> since, until, model, route;
  bool tokens = false;
};
int log_tail(const Session& session, std::size_t limit);
int log_show(const Session& session, const std::string& id);
int log_margins(const Session& session, const MarginArguments& arguments);
int log_margin_report(const Session& session, const MarginArguments& arguments);
int log_export(const Session& session, const ExportArguments& arguments);
int log_fingerprints(const Session& session);

}  // namespace fixpoint::cli
