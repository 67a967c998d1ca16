// The gateway as a process.
#pragma once

#include <string>

#include "gateway/config.hpp"

namespace fixpoint {

// Serves until SIGINT or SIGTERM, then drains. `config_file` is what SIGHUP reads again; empty: the
// defaults. Returns the exit code (gateway/cli/cli.hpp).
int serve(const Config& config, const std::string& config_file);

}  // namespace fixpoint
