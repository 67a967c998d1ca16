// The command line: `fixpoint serve | check-config | model | cache | log`.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "gateway/config.hpp"

namespace fixpoint {

// Exit codes of every verb.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;    // the work could not be done
constexpr int kExitUsage = 2;     // wrong command line or configuration
constexpr int kExitNotFound = 3;  // no such key, generation, model or file

// What a run of the command line may touch; tests give their own.
struct CliContext {
  std::ostream& out;  // results
  std::ostream& err;  // messages and progress
  Environment environment = process_environment();
  // `fixpoint serve`; gets the configuration and the file it came from (empty: defaults).
  std::function<int(const Config&, const std::string&)> serve;
  bool err_is_terminal = false;
};

// Runs one command line; never throws. Returns the exit code.
int run_cli(int argc, const char* const* argv, const CliContext& context);

}  // namespace fixpoint
