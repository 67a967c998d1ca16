// Runs one program, without a shell. Internal to the model store.
#pragma once

#include <string>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint {

// argv[0] is looked up in PATH. The program reads nothing; its output goes to our stderr when
// output_file is empty, else to that file. Waits for its end. Errors: not_found (no such program),
// io (it failed; the message carries the last line of its output).
Result<void> run_program(const std::vector<std::string>& argv, const std::string& output_file);

}  // namespace fixpoint
