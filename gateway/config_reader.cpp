// From YAML to a Config, by the table of keys.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "gateway/config_keys.hpp"
#include "gateway/model_store.hpp"
#include "gateway/safe_text.hpp"

namespace fixpoint {
namespace {

using config::Key;
using config::KeyInfo;
using config::keys;
using config::KeyType;
using config::kMaxFileBytes;
using config::kMaxListItems;
using config::Slot;

// A piece of the file for a message, cut if it is long.
std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 60;
  std::string out = "\"";
  out += text.substr(0, kMax);
  if (text.size() > kMax) out += "...";
  return out + '"';
}

// Remembers where the latest document began.
class DocumentStart : public YAML::EventHandler {
 public:
  YAML::Mark mark = YAML::Mark::null_mark();
  void OnDocumentStart(const YAML::Mark& start) override { mark = start; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// YAML::LoadAll() would tell too, but in yaml-cpp 0.7 it never ends on text such as ",a:b": the
// parser makes empty documents out of a stray comma without passing it, until memory is full.
std::optional<YAML::Mark> second_document(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return std::nullopt;
  return start.mark;
}

class Reader {
 public:
  Reader(const std::string& file, const ConfigOptions& options) : file_(file), options_(options) {}

  ConfigResult read(std::string_view yaml) {
    Config config;
    if (yaml.size() > kMaxFileBytes) {
      error(YAML::Mark::null_mark(),
            "the file is longer than the limit of " + std::to_string(kMaxFileBytes) + " bytes");
    } else {
      read_documents(yaml, config);
    }
    if (!syntax_failed_) complete(config);
    if (errors_.empty()) return config;
    std::stable_sort(errors_.begin(), errors_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.line == 0, std::pair(a.line, a.column)) <
             std::pair(b.line == 0, std::pair(b.line, b.column));
    });
    return tl::make_unexpected(std::move(errors_));
  }

 private:
  // Names and values of the file may stand in the message: it is made one safe line here.
  void error(const YAML::Mark& mark, std::string_view message) {
    const bool known = !mark.is_null();
    errors_.push_back(
        {file_, known ? mark.line + 1 : 0, known ? mark.column + 1 : 0, safe_text(message)});
  }

  void read_documents(std::string_view yaml, Config& config) {
    YAML::Node document;
    try {
      const std::string text(yaml);
      if (const auto place = second_document(text)) {
        error(*place, "a second YAML document or stray text begins here: the file must hold one");
      }
      document = YAML::Load(text);
    } catch (const YAML::Exception& failure) {
      syntax_failed_ = true;
      error(failure.mark, "not valid YAML: " + failure.msg);
      return;
    }
    if (!document.IsNull()) root(document, config);
  }

  void root(const YAML::Node& node, Config& config) {
    mapping(node, "", config,
            "server, cache, log, access_log, admin, telemetry, prices, models, upstreams, routes",
            [&](const std::string& name, const YAML::Node& value) {
              if (name == "server") return section(value, name, config.server);
              if (name == "cache") return section(value, name, config.cache);
              if (name == "log") return section(value, name, config.log);
              if (name == "access_log") return section(value, name, config.access_log);
              if (name == "admin") return section(value, name, config.admin);
              if (name == "telemetry") return section(value, name, config.telemetry);
              if (name == "prices") return list(value, name, config.prices);
              if (name == "models") return list(value, name, config.models);
              if (name == "upstreams") return list(value, name, config.upstreams);
              if (name == "routes") return list(value, name, config.routes);
              return false;
            });
  }

  // The three return true: the name is known, whatever is wrong with the value.
  template <class Section>
  bool section(const YAML::Node& node, const std::string& path, Section& out) {
    places_.insert_or_assign(path, node.Mark());
    if (node.IsNull()) return true;  // "server:" with all its keys commented out
    mapping(node, path, out, "", [](const std::string&, const YAML::Node&) { return false; });
    return true;
  }

  template <class Item>
  bool list(const YAML::Node& node, const std::string& path, std::vector<Item>& out) {
    if (node.IsNull()) return true;
    if (!node.IsSequence()) {
      error(node.Mark(), path + ": must be a list");
      return true;
    }
    if (node.size() > kMaxListItems) {
      error(node.Mark(),
            path + ": has more than the limit of " + std::to_string(kMaxListItems) + " items");
      return true;
    }
    for (const YAML::Node& child : node) {
      const std::string item = path + "[" + std::to_string(out.size()) + "]";
      section(child, item, out.emplace_back());
      if (!child.IsMap() && !child.IsNull()) continue;  // said already
      for (const Key<Item>& key : keys<Item>()) {
        const std::string key_path = item + "." + std::string(key.info.name);
        if (key.info.required && !places_.contains(key_path)) {
          error(child.Mark(), key_path + ": is required");
        }
      }
    }
    return true;
  }

  // Reads the keys of `out`; hands names that are none of them to `other`.
  template <class Section, class Other>
  void mapping(const YAML::Node& node, const std::string& path, Section& out,
               std::string_view other_names, Other&& other) {
    if (!node.IsMap()) {
      error(node.Mark(), (path.empty() ? "the file" : path) + ": must be a mapping of keys");
      return;
    }
    std::set<std::string> seen;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        error(member.first.Mark(), (path.empty() ? "" : path + ": ") + "a key must be plain text");
        continue;
      }
      const std::string& name = member.first.Scalar();
      const std::string key_path = path.empty() ? name : path + "." + name;
      if (!seen.insert(name).second) {
        error(member.first.Mark(), shown(key_path) + " is given twice");
        continue;
      }
      const auto known = keys<Section>();
      const auto key = std::find_if(known.begin(), known.end(),
                                    [&](const Key<Section>& k) { return k.info.name == name; });
      if (key != known.end()) {
        places_.insert_or_assign(key_path, member.second.Mark());
        value(member.second, key_path, key->info, key->slot(out));
      } else if (!other(name, member.second)) {
        std::string names;
        for (const Key<Section>& k : known) names += ", " + std::string(k.info.name);
        if (!other_names.empty()) names += ", " + std::string(other_names);
        error(member.first.Mark(),
              "unknown key " + shown(key_path) + "; known are: " + names.substr(2));
      }
    }
  }

  void value(const YAML::Node& node, const std::string& path, const KeyInfo& info,
             const Slot& slot) {
    if (auto* items = std::get_if<std::vector<std::string>*>(&slot)) {
      read_texts(node, path, info, **items);
      return;
    }
    if (auto* members = std::get_if<std::vector<NamedValue>*>(&slot)) {
      read_members(node, path, info, **members);
      return;
    }
    if (!node.IsScalar()) {
      const std::string_view problem = node.IsNull() ? "has no value" : "must be a single value";
      error(node.Mark(), path + ": " + std::string(problem));
      return;
    }
    const auto text = substitute(node, path, config::is_secret(info.type));
    if (!text) return;
    if (auto set = set_slot(info, slot, *text); !set) {
      const std::string got =
          config::is_secret(info.type) ? "" : " (got " + shown(node.Scalar()) + ")";
      error(node.Mark(), path + ": " + set.error().message + got);
    }
  }

  // The value of a list's item or a mapping's member: of the key's type in singular.
  std::optional<std::string> read_text(const YAML::Node& node, const std::string& path,
                                       const KeyInfo& info) {
    if (!node.IsScalar()) {
      error(node.Mark(), path + ": must be a single value");
      return std::nullopt;
    }
    const bool secret = config::is_secret(info.type);
    const auto text = substitute(node, path, secret);
    if (!text) return std::nullopt;
    const bool spaces = info.type != KeyType::names && info.type != KeyType::secrets;
    const KeyInfo one{"", spaces ? KeyType::text : KeyType::name, "", info.min, info.max};
    std::string checked;
    if (auto set = config::set_slot(one, &checked, *text); !set) {
      error(node.Mark(), path + ": " + set.error().message +
                             (secret ? "" : " (got " + shown(node.Scalar()) + ")"));
    }
    return checked;
  }

  void read_texts(const YAML::Node& node, const std::string& path, const KeyInfo& info,
                  std::vector<std::string>& out) {
    if (node.IsNull()) return;
    if (!node.IsSequence() || node.size() > kMaxListItems) {
      error(node.Mark(),
            path + ": must be a list of at most " + std::to_string(kMaxListItems) + " items");
      return;
    }
    for (const YAML::Node& child : node) {
      const std::string item = path + "[" + std::to_string(out.size()) + "]";
      places_.insert_or_assign(item, child.Mark());
      out.push_back(read_text(child, item, info).value_or(""));
    }
  }

  void read_members(const YAML::Node& node, const std::string& path, const KeyInfo& info,
                    std::vector<NamedValue>& out) {
    if (node.IsNull()) return;
    if (!node.IsMap() || node.size() > kMaxListItems) {
      error(node.Mark(), path + ": must be a mapping of at most " + std::to_string(kMaxListItems) +
                             " names to values");
      return;
    }
    std::set<std::string> seen;
    for (const auto& member : node) {
      if (!member.first.IsScalar()) {
        error(member.first.Mark(), path + ": a name must be plain text");
        continue;
      }
      const std::string& name = member.first.Scalar();
      const std::string key_path = path + "." + name;
      if (!seen.insert(name).second) {
        error(member.first.Mark(), shown(key_path) + " is given twice");
        continue;
      }
      places_.insert_or_assign(key_path, member.first.Mark());
      if (auto text = read_text(member.second, key_path, info)) {
        out.push_back({name, std::move(*text)});
      }
    }
  }

  // Replaces each ${NAME} by the variable's value; "$${" stands for "${". Nothing after an error.
  std::optional<std::string> substitute(const YAML::Node& node, const std::string& path,
                                        bool secret) {
    const std::string_view text = node.Scalar();
    std::string out;
    bool good = true;
    for (std::size_t i = 0; i < text.size();) {
      if (text.substr(i).starts_with("$${")) {
        out += "${";
        i += 3;
      } else if (text.substr(i).starts_with("${")) {
        const std::size_t end = text.find('}', i);
        const std::string name(
            text.substr(i + 2, end == std::string_view::npos ? end : end - i - 2));
        if (end == std::string_view::npos || !is_variable_name(name)) {
          error(node.Mark(), path +
                                 ": \"${\" must begin a variable, as in ${NAME}; write \"$${\" "
                                 "for the text itself");
          return std::nullopt;
        }
        if (const auto found = options_.environment(name)) {
          out += *found;
        } else if (options_.need_secrets || !secret) {
          error(node.Mark(), path + ": the environment variable " + name + " is not set");
          good = false;
        }
        i = end + 1;
      } else {
        out += text[i++];
      }
    }
    if (!good) return std::nullopt;
    return out;
  }

  static bool is_variable_name(std::string_view name) {
    const auto letter = [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    };
    return !name.empty() && name.size() <= 128 && letter(name[0]) &&
           std::all_of(name.begin(), name.end(),
                       [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
  }

  void complete(Config& config) {
    override_key(options_.data_dir, "data_dir", "--data-dir", config);
    override_key(options_.listen, "server.listen", "--listen", config.server);
    if (config.data_dir.empty()) config.data_dir = default_data_dir(options_.environment);
    if (config.data_dir.empty()) {
      error(YAML::Mark::null_mark(),
            "data_dir: must be set, because neither XDG_DATA_HOME nor HOME is");
    }
    while (config.data_dir.size() > 1 && config.data_dir.ends_with('/')) config.data_dir.pop_back();
    if (config.cache.path.empty()) config.cache.path = config.data_dir + "/cache.db";
    if (config.log.path.empty()) config.log.path = config.data_dir + "/log.db";
    for (std::size_t i = 0; i < config.prices.size(); ++i) {
      if (!places_.contains("prices[" + std::to_string(i) + "].cached_input")) {
        config.prices[i].cached_input = config.prices[i].input;
      }
    }
    if (config.models.empty() && config.upstreams.empty() && config.routes.empty()) {
      add_tiny_model(config);
    }
    const config::Report report = [&](const std::string& path, std::string message) {
      const auto option = overridden_.find(path);
      error(place_of(path), (option == overridden_.end() ? path : option->second) + ": " + message);
    };
    config::cross_check(config, report);
    if (options_.check_files) config::check_files(config, report);
  }

  // Nothing configured to answer: the model that is always there does.
  static void add_tiny_model(Config& config) {
    ModelConfig& model = config.models.emplace_back();
    model.name = model.path = kTinyModel;
    RouteConfig& route = config.routes.emplace_back();
    route.model = route.local = kTinyModel;
    config.tiny_by_default = true;
  }

  // The place of a key, or of the item that lacks it.
  YAML::Mark place_of(const std::string& path) const {
    if (overridden_.contains(path)) return YAML::Mark::null_mark();
    auto place = places_.find(path);
    if (place == places_.end()) place = places_.find(path.substr(0, path.find('.')));
    return place == places_.end() ? YAML::Mark::null_mark() : place->second;
  }

  template <class Section>
  void override_key(const std::optional<std::string>& text, const std::string& path,
                    const std::string& option, Section& section) {
    if (!text) return;
    const std::string name = path.substr(path.rfind('.') + 1);
    for (const Key<Section>& key : keys<Section>()) {
      if (key.info.name != name) continue;
      overridden_[path] = option;
      if (auto set = set_slot(key.info, key.slot(section), *text); !set) {
        error(YAML::Mark::null_mark(), option + ": " + set.error().message);
      }
    }
  }

  const std::string file_;
  const ConfigOptions& options_;
  std::vector<ConfigError> errors_;
  std::map<std::string, YAML::Mark> places_;       // of values, by key path
  std::map<std::string, std::string> overridden_;  // key path -> option of the command line
  bool syntax_failed_ = false;
};

}  // namespace

ConfigResult parse_config(std::string_view yaml, const std::string& file,
                          const ConfigOptions& options) {
  return Reader(file, options).read(yaml);
}

}  // namespace fixpoint
