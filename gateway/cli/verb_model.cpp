// model pull | list | inspect.
#include <algorithm>
#include <filesystem>
#include <iomanip>

#include "gateway/cli/output.hpp"
#include "gateway/model_store.hpp"
#include "gateway/safe_text.hpp"
#include "local_engine/gguf.hpp"

namespace fixpoint::cli {
namespace {

int report_engine(const Session& session, const engine::Error& error) {
  session.context.err << "fixpoint: " << safe_text(error.message) << '\n';
  return kExitFailed;
}

// Scalars as themselves; an array as its element type and size (a vocabulary has 50,000 elements).
Json value_json(const engine::GgufValue& value) {
  if (const auto* array = value.array()) {
    return {{"element", engine::name(array->element())}, {"size", array->size()}};
  }
  return std::visit(
      [](const auto& scalar) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(scalar)>, engine::GgufArray>) {
          return nullptr;
        } else {
          return scalar;
        }
      },
      value.value);
}

Json header_json(const std::string& path, const engine::GgufHeader& header) {
  Json metadata = Json::array(), tensors = Json::array();
  for (const auto& [key, value] : header.metadata) {
    metadata.push_back(
        {{"key", key}, {"type", engine::name(value.type)}, {"value", value_json(value)}});
  }
  for (const engine::GgufTensor& tensor : header.tensors) {
    Json one{{"name", tensor.name}, {"type", tensor.type_name()}, {"dims", tensor.dims}};
    one["bytes"] = tensor.bytes ? Json(*tensor.bytes) : Json(nullptr);
    tensors.push_back(std::move(one));
  }
  return {{"file", path},
          {"version", header.version},
          {"alignment", header.alignment},
          {"metadata", std::move(metadata)},
          {"tensors", std::move(tensors)}};
}

// Long texts (a chat template has thousands of bytes) are cut; --json has them whole.
std::string value_text(const engine::GgufValue& value) {
  constexpr std::size_t kMaxBytes = 256;
  const std::string* text = value.string();
  if (text == nullptr) return safe_text(value.to_text());
  std::string out = safe_text(text->substr(0, kMaxBytes));
  if (text->size() > kMaxBytes) out += "... (" + std::to_string(text->size()) + " bytes)";
  return out;
}

std::string dims_text(const std::vector<std::uint64_t>& dims) {
  std::string text;
  for (const std::uint64_t dim : dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

void write_header(std::ostream& out, const std::string& path, const engine::GgufHeader& header) {
  std::uint64_t parameters = 0, bytes = 0;
  for (const engine::GgufTensor& tensor : header.tensors) {
    parameters += tensor.elements();
    bytes += tensor.bytes.value_or(0);
  }
  out << safe_text(path) << ": GGUF version " << header.version << ", " << header.tensors.size()
      << " tensors, " << parameters << " parameters, " << bytes
      << " bytes of weights\n\nmetadata\n";
  for (const auto& [key, value] : header.metadata) {
    out << "  " << safe_text(key) << " (" << engine::name(value.type) << "): " << value_text(value)
        << '\n';
  }
  out << "\ntensors\n";
  for (const engine::GgufTensor& tensor : header.tensors) {
    out << "  " << std::left << std::setw(40) << safe_text(tensor.name) << ' ' << std::setw(8)
        << tensor.type_name() << ' ' << std::setw(16) << dims_text(tensor.dims) << ' ' << std::right
        << std::setw(12) << (tensor.bytes ? std::to_string(*tensor.bytes) : "?") << " bytes\n";
  }
}

}  // namespace

int model_pull(const Session& session, const std::string& name, const std::string& from_file) {
  const KnownModel* model = find_known_model(name);
  if (model == nullptr) {
    std::string names;
    for (const KnownModel& known : known_models()) names.append(" ").append(known.name);
    return report(session, Error{ErrorCode::not_found,
                                 "no known model is called " + name + "; known are:" + names});
  }
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  PullOptions options;
  options.from_file = from_file;
  options.show_downloads = session.context.err_is_terminal && !session.json;
  options.progress = [&](std::string_view line) {
    if (!session.json) session.context.err << safe_text(line) << std::endl;
  };
  const ModelStore store(config->models_dir());
  auto pulled = store.pull(*model, options);
  if (!pulled) {
    return report_failure(session, pulled.error());  // a wrong file is not a wrong command line
  }
  if (session.json) {
    write_json(session, {{"name", model->name},
                         {"path", pulled->path},
                         {"bytes", model->bytes},
                         {"sha256", model->sha256},
                         {"licence", model->licence},
                         {"source", pulled->source}});
  } else if (pulled->source == "present") {
    session.context.out << safe_text(pulled->path)
                        << ": already there, size and SHA-256 as pinned\n";
  } else {
    session.context.out << safe_text(pulled->path) << ": from " << pulled->source << ", "
                        << model->bytes << " bytes, SHA-256 as pinned, licence " << model->licence
                        << '\n';
  }
  return kExitOk;
}

int model_list(const Session& session) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const ModelStore store(config->models_dir());
  const auto stored = store.list();
  if (!stored) return report(session, stored.error());

  Json list = Json::array();
  for (const StoredModel& model : *stored) {
    const KnownModel* known = find_known_model(model.name);
    list.push_back({{"name", model.name},
                    {"present", true},
                    {"known", known != nullptr},
                    {"bytes", model.bytes},
                    {"path", model.path}});
  }
  for (const KnownModel& known : known_models()) {
    const auto same = [&](const StoredModel& model) { return model.name == known.name; };
    if (std::any_of(stored->begin(), stored->end(), same)) continue;
    list.push_back({{"name", known.name},
                    {"present", false},
                    {"known", true},
                    {"bytes", known.bytes},
                    {"path", store.path_of(known)}});
  }
  const auto tiny = store.resolve(kTinyModel);
  std::error_code missing;
  list.push_back(
      {{"name", kTinyModel},
       {"present", tiny.has_value()},
       {"known", true},
       {"bytes", tiny ? std::filesystem::file_size(*tiny + "/model.safetensors", missing) : 0},
       {"path", tiny.value_or("")}});
  if (session.json) {
    write_json(session, list);
    return kExitOk;
  }
  for (const Json& model : list) {
    const auto name = model["name"].get<std::string>();
    const bool present = model["present"].get<bool>();
    const std::string not_here = name == kTinyModel && !tiny
                                     ? "not here; " + tiny.error().message
                                     : "not here; `fixpoint model pull " + name + "` fetches it";
    session.context.out << std::left << std::setw(24) << safe_text(name) << ' ' << std::right
                        << std::setw(14) << model["bytes"].get<std::uint64_t>() << " bytes  "
                        << (present ? safe_text(model["path"].get<std::string>()) : not_here)
                        << '\n';
  }
  return kExitOk;
}

int model_inspect(const Session& session, const std::string& file) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const auto path = ModelStore(config->models_dir()).resolve(file);
  if (!path) return report(session, path.error());
  if (std::error_code ignored; std::filesystem::is_directory(*path, ignored)) {
    return report(session, Error{ErrorCode::invalid,
                                 *path + " is a folder; `model inspect` reads GGUF files"});
  }
  const auto gguf = engine::GgufFile::open(*path);
  if (!gguf) return report_engine(session, gguf.error());
  if (session.json) {
    write_json(session, header_json(*path, gguf->header()));
  } else {
    write_header(session.context.out, *path, gguf->header());
  }
  return kExitOk;
}

}  // namespace fixpoint::cli
