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
enum class LogLevel { off, error, warning, info };
enum class LogFormat { text, json };
enum class UpstreamKind { openai, anthropic };  // which API the upstream speaks
// inject: asked for where the provider has them, and taken out again; client: when the client
// asked.
enum class LogprobCapture { off, client, inject };
enum class TextCapture { off, full };      // whether the token log keeps what tokens say
enum class ReplayPace { full, recorded };  // of streams from the cache

std::string_view to_string(CachePolicy policy);
std::string_view to_string(ReproMode mode);
std::string_view to_string(LogLevel level);
std::string_view to_string(LogFormat format);
std::string_view to_string(UpstreamKind kind);
std::string_view to_string(LogprobCapture capture);
std::string_view to_string(TextCapture capture);
std::string_view to_string(ReplayPace pace);

// The member initialisers below are the defaults of the keys; config_keys.cpp names each key, its
// limits and its meaning, and prints the default from here.

struct NamedValue {
  std::string name, value;
  bool operator==(const NamedValue&) const = default;
};

struct ServerConfig {
  std::string listen = "127.0.0.1:8080";  // without gateway keys: its port on loopback only
  std::string tls_cert_file;              // PEM chain; with tls_key_file: HTTPS only
  std::string tls_key_file;
  std::uint64_t threads = 0;  // 0: one per hardware thread
  std::uint64_t max_header_bytes = 16 * 1024;
  std::uint64_t max_body_bytes = 16 * 1024 * 1024;
  std::uint64_t max_connections = 16384;
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds write_timeout{60'000};
  std::chrono::milliseconds drain_timeout{10'000};
  std::chrono::milliseconds heartbeat{15'000};  // silence in a stream before a comment; 0: never
};

struct CacheConfig {
  bool enabled = true;
  std::string path;  // after loading never empty
  CachePolicy policy = CachePolicy::automatic;
  std::uint64_t max_body_bytes = 4 * 1024 * 1024;    // larger answers are not stored
  bool store_length = false;                         // also answers that ended at their token limit
  std::chrono::milliseconds ttl{0};                  // 0: for ever
  std::uint64_t max_bytes = std::uint64_t{8} << 30;  // of the store; beyond: least recently used go
  std::uint64_t memory_bytes = 16 * 1024 * 1024;     // of the tier in memory; 0: none
  std::uint64_t compress_above = 4096;               // bytes of a body; longer ones go through zstd
  ReplayPace replay = ReplayPace::full;
  std::string redis_url;  // secret; redis://[user:password@]host[:port][/db], rediss:// for TLS
  bool redis_cluster = false;
  std::string redis_ca_file;
  std::string redis_prefix = "fixpoint:";
  std::chrono::milliseconds redis_timeout{100};  // of a look-up; beyond: a miss, marked
};

struct TokenLogConfig {
  bool enabled = true;
  std::string path;  // after loading never empty
  std::uint64_t top_logprobs = 5;
  LogprobCapture logprobs = LogprobCapture::client;
  TextCapture text = TextCapture::full;
  std::vector<std::string> redact;       // PCRE2 patterns; what they match is not logged
  std::chrono::milliseconds max_age{0};  // older generations are removed; 0: never
  std::uint64_t max_bytes = std::uint64_t{8} << 30;  // of the file; the oldest generations go first
  bool fingerprint_epoch = false;  // a changed hosted fingerprint starts a new cache epoch
};

struct AccessLogConfig {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
};

struct AdminConfig {
  std::string token;  // secret; empty: admin paths take only the token in gateway.json
};

struct TelemetryConfig {
  std::string otlp_endpoint;  // "http://collector:4318"; empty: no export
  std::string service_name = "fixpoint";
  std::vector<NamedValue> headers;  // of the export requests; values are secret
  std::chrono::milliseconds interval{5'000};
};

// US dollars per million tokens of the models that the glob matches; the first match counts.
struct PriceConfig {
  std::string model;
  double input = 0, output = 0;
  double cached_input = 0;  // of tokens that the provider's own cache had; not given: as input
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

// A hosted model server.
struct UpstreamConfig {
  std::string name;
  UpstreamKind kind = UpstreamKind::openai;
  std::string base_url;
  std::string api_key;  // secret; empty (and no api_keys): the client's own key passes through
  std::vector<std::string> api_keys;  // secret; several keys in turn, the next one after a 429
  // Glob over the requested model -> name at this upstream; the first match counts.
  std::vector<NamedValue> model_names;
  std::vector<NamedValue> headers;  // added to every request; values are secret
  std::string ca_file;              // empty: the system's
  bool verify_tls = true;
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds first_byte_timeout{300'000};
  std::chrono::milliseconds between_bytes_timeout{120'000};
  std::chrono::milliseconds total_timeout{0};  // from the request to the answer's end; 0: none
  std::chrono::milliseconds idle_ttl{30'000};
  std::uint64_t max_connections = 512;      // per core
  std::uint64_t max_idle_connections = 64;  // per core
  std::uint64_t max_response_bytes = 64 * 1024 * 1024;
  std::string proxy;  // secret; "http://[user:password@]host:port": CONNECT for https, else
                      // absolute form
  std::uint64_t max_concurrency = 0;  // calls at a time, over all threads; 0: no limit
  std::uint64_t max_queue = 256;      // calls that wait for one of those; beyond: 429
  std::chrono::milliseconds queue_timeout{10'000};
  std::uint64_t retries = 2;           // further attempts after the first
  std::uint64_t breaker_failures = 8;  // in a row; then no calls for breaker_cooldown; 0: never
  std::chrono::milliseconds breaker_cooldown{10'000};
  bool ask_for_usage = true;  // adds stream_options.include_usage to streams
  bool operator==(const UpstreamConfig&) const = default;
};

struct RouteConfig {
  std::string model;                   // glob over the requested model; '*' stands for any text
  std::string upstream;                // exactly one of upstream, weights and local is set
  std::vector<NamedValue> weights;     // upstream -> share of the requests, a whole number
  std::vector<std::string> fallbacks;  // upstreams, in this order, when the chosen one fails
  std::string local;                   // a name in models
  std::string repro_model;             // the local model for tagged requests; empty: none
  ReproMode repro = ReproMode::off;
  std::optional<CachePolicy> cache;  // unset: cache.policy
};

struct Config {
  ServerConfig server;
  std::string data_dir;  // after loading never empty
  CacheConfig cache;
  TokenLogConfig log;
  AccessLogConfig access_log;
  AdminConfig admin;
  TelemetryConfig telemetry;
  std::vector<PriceConfig> prices;
  std::vector<ModelConfig> models;
  std::vector<UpstreamConfig> upstreams;
  std::vector<RouteConfig> routes;  // the first match wins
  bool tiny_by_default = false;     // nothing was configured to answer: fixpoint-tiny was added

  std::string models_dir() const { return data_dir + "/models"; }
  const ModelConfig* find_model(std::string_view name) const;
  const UpstreamConfig* find_upstream(std::string_view name) const;
  // Every value that must never be shown: keys, tokens, header values, URLs that hold a password.
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
  // Also reads the files that the configuration names as serve would: certificates and their key,
  // authorities. What is wrong with them is an error.
  bool check_files = false;
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

// Why a running gateway cannot take over `fresh`: a message for each key that differs and is read
// at the start only ("server.listen: differs, ..."). Empty: it can. Never shows a value.
// Thread-safe.
std::vector<std::string> reload_problems(const Config& running, const Config& fresh);

// Why routes of `fresh` could not be served by a gateway that started with `running`: a message for
// each that names a local model which is not loaded ("routes[1].local: ..."). Thread-safe.
std::vector<std::string> unloaded_models(const Config& running, const Config& fresh);

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
