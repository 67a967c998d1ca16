// The gateway as a process.
#pragma once

#include "gateway/cli/cli.hpp"

namespace fixpoint {

// Serves until SIGINT or SIGTERM, then drains. SIGHUP loads the configuration again; what cannot
// change while it runs is named in the log and stays. Returns the exit code.
int serve(const ServeArguments& arguments);

}  // namespace fixpoint
