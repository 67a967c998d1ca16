#include <unistd.h>

#include <iostream>

#include "gateway/cli/cli.hpp"
#include "gateway/serve.hpp"

int main(int argc, char** argv) {
  const fixpoint::CliContext context{std::cout, std::cerr, fixpoint::process_environment(),
                                     fixpoint::serve, isatty(STDERR_FILENO) == 1};
  return fixpoint::run_cli(argc, argv, context);
}
