#include "gateway/model_store_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "gateway/safe_text.hpp"

extern "C" char** environ;  // POSIX leaves its declaration to the program

namespace fixpoint {
namespace {

std::string system_message(int code) {
  return std::generic_category().message(code);
}

std::string last_line(const std::string& file) {
  constexpr std::size_t kMax = 300;
  std::ifstream in(file);
  std::string line, last;
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return safe_text(last.substr(0, kMax));
}

// Owns the list of what the child does to its descriptors before it starts.
class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<void> run_program(const std::vector<std::string>& argv, const std::string& output_file) {
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (output_file.empty()) {
    posix_spawn_file_actions_adddup2(actions.get(), STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, output_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(actions.get(), STDOUT_FILENO, STDERR_FILENO);
  }
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  pid_t child = 0;
  if (const int code =
          posix_spawnp(&child, pointers[0], actions.get(), nullptr, pointers.data(), environ);
      code != 0) {
    return fail(code == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                argv[0] + " cannot be started: " + system_message(code));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(ErrorCode::io, argv[0] + ": " + system_message(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string message =
      argv[0] + (WIFEXITED(status) ? " ended with status " + std::to_string(WEXITSTATUS(status))
                                   : " was ended by signal " + std::to_string(WTERMSIG(status)));
  if (const std::string line = output_file.empty() ? "" : last_line(output_file); !line.empty()) {
    message += ": " + line;
  }
  return fail(ErrorCode::io, std::move(message));
}

}  // namespace fixpoint
