#include "local_engine/model_files.hpp"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "local_engine/gguf.hpp"
#include "local_engine/hf_config.hpp"
#include "local_engine/hf_json.hpp"
#include "local_engine/hf_tokenizer.hpp"
#include "local_engine/mapped_file.hpp"
#include "local_engine/safetensors.hpp"
#include "local_engine/sha256.hpp"

namespace fixpoint::engine {
namespace {

namespace fs = std::filesystem;

// Several times those of published models.
constexpr std::size_t kMaxTokenizerBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxSmallFileBytes = std::size_t{4} << 20;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<ModelFiles> load_gguf(const std::string& path) {
  auto file = GgufFile::open(path);
  if (!file) return tl::make_unexpected(file.error());
  auto config = read_model_config(file->header());
  if (!config) return tl::make_unexpected(config.error());
  auto text = read_model_text(file->header());
  if (!text) return tl::make_unexpected(text.error());
  auto weights = load_weights(*file, *config);
  if (!weights) return tl::make_unexpected(weights.error());
  Sha256 digest;
  digest.update(file->bytes());
  return ModelFiles{*std::move(config), *std::move(text), *std::move(weights), digest.finish()};
}

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

// A file of the folder as JSON; null if it is not there.
Result<nlohmann::json> read_optional(const fs::path& folder, const char* name) {
  if (!is_there(folder / name)) return nullptr;
  auto file = MappedFile::open((folder / name).string());
  if (!file) return tl::make_unexpected(file.error());
  return parse_hf_json(name, text_of(*file), kMaxSmallFileBytes);
}

Result<ModelText> read_text(const fs::path& folder, const nlohmann::json& config,
                            std::size_t vocabulary) {
  HfTextFiles files;
  files.config = config;
  auto mapped = MappedFile::open((folder / "tokenizer.json").string());
  if (!mapped) return tl::make_unexpected(mapped.error());
  auto tokenizer = parse_hf_json("tokenizer.json", text_of(*mapped), kMaxTokenizerBytes);
  if (!tokenizer) return tl::make_unexpected(tokenizer.error());
  files.tokenizer = *std::move(tokenizer);
  for (auto [name, value] : {std::pair("tokenizer_config.json", &files.tokenizer_config),
                             std::pair("generation_config.json", &files.generation_config)}) {
    auto parsed = read_optional(folder, name);
    if (!parsed) return tl::make_unexpected(parsed.error());
    *value = *std::move(parsed);
  }
  if (is_there(folder / "chat_template.jinja")) {
    auto chat = MappedFile::open((folder / "chat_template.jinja").string());
    if (!chat) return tl::make_unexpected(chat.error());
    if (chat->bytes().size() > kMaxSmallFileBytes) {
      return fail(ErrorCode::bad_model_file, "chat_template.jinja is longer than " +
                                                 std::to_string(kMaxSmallFileBytes) + " bytes");
    }
    files.chat_template = text_of(*chat);
  }
  return read_hf_text(files, vocabulary);
}

Result<ModelFiles> load_folder(const fs::path& folder) {
  auto config_file = MappedFile::open((folder / "config.json").string());
  if (!config_file) return tl::make_unexpected(config_file.error());
  auto config_json = parse_hf_json("config.json", text_of(*config_file), kMaxSmallFileBytes);
  if (!config_json) return tl::make_unexpected(config_json.error());
  auto config = read_hf_config(*config_json);
  if (!config) return tl::make_unexpected(config.error());
  auto text = read_text(folder, *config_json, config->model.vocabulary);
  if (!text) return tl::make_unexpected(text.error());

  if (!is_there(folder / "model.safetensors") &&
      is_there(folder / "model.safetensors.index.json")) {
    return fail(ErrorCode::unsupported, "model folder \"" + folder.string() +
                                            "\" has its weights in several files; one "
                                            "model.safetensors is implemented");
  }
  auto file = SafetensorsFile::open((folder / "model.safetensors").string());
  if (!file) return tl::make_unexpected(file.error());
  auto weights = load_weights(*file, config->model, config->tied);
  if (!weights) return tl::make_unexpected(weights.error());
  Sha256 digest;
  for (const auto bytes : {config_file->bytes(), file->bytes()}) {
    digest.update_part({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return ModelFiles{config->model, *std::move(text), *std::move(weights), digest.finish()};
}

}  // namespace

Result<ModelFiles> load_model_files(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return load_folder(path);
  return load_gguf(path);
}

}  // namespace fixpoint::engine
