// The gateway as a process.
#pragma once

#include <string>

#include "gateway/config.hpp"

namespace fixpoint {

// Serves until SIGINT, SIGTERM or SIGHUP, then drains. `config_file` is where the configuration
// came from; empty: the defaults. Returns the exit code (gateway/cli/cli.hpp).
int serve(const Config& config, const std::string& config_file);

}  // namespace fixpoint
