// The configuration: one YAML file, checked as a whole before anything starts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint {

// Which answers are stored. automatic ("auto"): those that ask for one answer (temperature 0, a
// seed, a sample index or a reproducibility tag).
enum class CachePolicy { automatic, all, off };
// What a request without its own tag gets. preferred: the local engine when one is configured and
// ready; required: the local engine or an error.
enum class ReproMode { off, preferred, required };
enum class LogLevel { off, error, warning, info, debug };

std::string_view to_string(CachePolicy policy);
std::string_view to_string(ReproMode mode);
std::string_view to_string(LogLevel level);

// The member initialisers below are the defaults of the keys; config_keys.cpp names each key, its
// limits and its meaning, and prints the default from here.

struct ServerConfig {
  std::string listen = "127.0.0.1:8080";
  bool allow_public = false;
  std::uint64_t threads = 0;  // 0: one per hardware thread
  std::uint64_t max_header_bytes = 16 * 1024;
  std::uint64_t max_body_bytes = 16 * 1024 * 1024;
  std::uint64_t max_connections = 16384;
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds write_timeout{60'000};
  std::chrono::milliseconds drain_timeout{10'000};
};

struct CacheConfig {
  bool enabled = true;
  std::string path;  // after loading never empty
  CachePolicy policy = CachePolicy::automatic;
  std::uint64_t max_body_bytes = 4 * 1024 * 1024;  // larger answers are not stored
};

struct TokenLogConfig {
  bool enabled = true;
  std::string path;  // after loading never empty
  std::uint64_t top_logprobs = 5;
};

struct AccessLogConfig {
  LogLevel level = LogLevel::info;
};

// A local engine.
struct ModelConfig {
  std::string name;
  std::string path;  // file, folder or name that the model store knows: see ModelStore::resolve()
  std::uint64_t threads = 0;
  std::uint64_t context = 0;
  std::uint64_t max_batch = 8;
  std::uint64_t kv_bytes = std::uint64_t{2} << 30;
  std::uint64_t max_queue = 256;
};

struct NamedValue {
  std::string name, value;
};

// A hosted, OpenAI-compatible model server.
struct UpstreamConfig {
  std::string name;
  std::string base_url;
  std::string api_key;              // secret; empty: the client's own Authorization passes through
  std::vector<NamedValue> headers;  // added to every request; values are secret
  std::string ca_file;              // empty: the system's
  bool verify_tls = true;
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds first_byte_timeout{300'000};
  std::chrono::milliseconds between_bytes_timeout{120'000};
  std::chrono::milliseconds idle_ttl{30'000};
  std::uint64_t max_connections = 512;      // per core
  std::uint64_t max_idle_connections = 64;  // per core
  std::uint64_t max_response_bytes = 64 * 1024 * 1024;
};

struct RouteConfig {
  std::string model;           // glob over the requested model; '*' stands for any text
  std::string upstream;        // exactly one of upstream and local is set
  std::string local;           // a name in models
  std::string upstream_model;  // empty: the requested name is sent on
  std::string repro_model;     // the local model for tagged requests; empty: none
  ReproMode repro = ReproMode::off;
  std::optional<CachePolicy> cache;  // unset: cache.policy
};

struct Config {
  ServerConfig server;
  std::string data_dir;  // after loading never empty
  CacheConfig cache;
  TokenLogConfig log;
  AccessLogConfig access_log;
  std::vector<ModelConfig> models;
  std::vector<UpstreamConfig> upstreams;
  std::vector<RouteConfig> routes;  // the first match wins
  bool tiny_by_default = false;     // nothing was configured to answer: fixpoint-tiny was added

  std::string models_dir() const { return data_dir + "/models"; }
  const ModelConfig* find_model(std::string_view name) const;
  const UpstreamConfig* find_upstream(std::string_view name) const;
  // The first route whose glob matches, or nullptr.
  const RouteConfig* find_route(std::string_view requested_model) const;
  // Every value that must never be shown: API keys and header values.
  std::vector<std::string> secrets() const;
};

// One finding, with its place in the file. Never contains the value of a secret key.
struct ConfigError {
  std::string file;
  int line = 0, column = 0;  // from 1; 0: no place (a check over the whole file)
  std::string message;       // names the key and the limit; one line, safe for a terminal
  std::string text() const;  // "file:line:column: message"
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

struct ConfigOptions {
  Environment environment = process_environment();
  // False for tools that talk to no upstream: a variable that only a secret needs may be missing.
  bool need_secrets = true;
  // The command line's, checked as the file's would be; they replace the file's values.
  std::optional<std::string> data_dir, listen;
};

using ConfigResult = tl::expected<Config, std::vector<ConfigError>>;

// Parses, checks and completes a configuration: data_dir, cache.path, log.path; fixpoint-tiny and a
// route to it where there is no model, upstream or route. On failure every error found is
// returned, in the order of the file. `file` is for messages. Thread-safe.
ConfigResult parse_config(std::string_view yaml, const std::string& file,
                          const ConfigOptions& options = {});
// Reads the file first. An unreadable file is one ConfigError. An empty name is the empty file: all
// defaults.
ConfigResult load_config(const std::string& file, const ConfigOptions& options = {});

// ./fixpoint.yaml, then $XDG_CONFIG_HOME/fixpoint/config.yaml (~/.config without the variable).
std::optional<std::string> find_config_file(const Environment& environment = process_environment());
// $XDG_DATA_HOME/fixpoint, or ~/.local/share/fixpoint. Empty when neither variable is set.
std::string default_data_dir(const Environment& environment = process_environment());

struct ListenAddress {
  std::string address;  // an IP literal without brackets
  std::uint16_t port = 0;
  bool loopback = false;
};
// "127.0.0.1:8080", "[::1]:8080", "localhost:8080". Errors: invalid.
Result<ListenAddress> parse_listen(std::string_view text);

// '*' stands for any text, also none; every other character for itself.
bool glob_matches(std::string_view glob, std::string_view text);

// The key table as GitHub markdown, for README.md.
std::string config_keys_markdown();

}  // namespace fixpoint
