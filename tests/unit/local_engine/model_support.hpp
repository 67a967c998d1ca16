// What several tests of the engine share: models on disk and forward passes by hand.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "local_engine/gguf.hpp"
#include "local_engine/llama.hpp"
#include "local_engine/model_files.hpp"
#include "tests/support/tiny_gguf.hpp"

namespace fixpoint::test {

// A directory that goes with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fixpoint-engine-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A GGUF file or a folder, which is no longer needed when this returns.
inline std::unique_ptr<engine::Llama> load_llama(const std::string& path, int threads,
                                                 std::size_t max_rows) {
  auto files = engine::load_model_files(path);
  if (!files) throw std::runtime_error(files.error().message);
  return std::make_unique<engine::Llama>(files->config, std::move(files->weights), threads,
                                         max_rows, max_rows);
}

inline std::unique_ptr<engine::Llama> tiny_llama(const TinyGgufOptions& options, int threads,
                                                 std::size_t max_rows) {
  const TemporaryDirectory directory;
  return load_llama(write_tiny_gguf(directory / "tiny.gguf", options), threads, max_rows);
}

// The default model, if this machine has it: $FIXPOINT_TEST_MODEL or where `fixpoint model pull`
// puts it.
inline std::string smollm2_path() {
  if (const char* given = std::getenv("FIXPOINT_TEST_MODEL")) return given;
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path path =
      data && *data ? data : std::string(home ? home : "") + "/.local/share";
  path /= "fixpoint/models/smollm2-135m.gguf";
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace fixpoint::test
