// The command line: `fixpoint serve | check-config | model | cache | keys | log`.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "gateway/config.hpp"

namespace fixpoint {

// Exit codes of every verb.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;    // the work could not be done
constexpr int kExitUsage = 2;     // wrong command line or configuration
constexpr int kExitNotFound = 3;  // no such key, generation, model or file

// What `fixpoint serve` was asked for.
struct ServeArguments {
  Config config;
  std::string file;       // where it came from; empty: there is none, only defaults
  ConfigOptions options;  // to load the file again with the same command line (SIGHUP)
  // Folders of recorded answers; at most one is set.
  std::optional<std::string> record_dir, replay_dir;
};

// What a run of the command line may touch; tests give their own.
struct CliContext {
  std::ostream& out;  // results
  std::ostream& err;  // messages and progress
  Environment environment = process_environment();
  std::function<int(const ServeArguments&)> serve;  // returns the exit code
  bool err_is_terminal = false;
};

// Runs one command line; never throws. Returns the exit code.
int run_cli(int argc, const char* const* argv, const CliContext& context);

}  // namespace fixpoint
