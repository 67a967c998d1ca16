#include "gateway/config_keys.hpp"

#include <array>
#include <chrono>
#include <limits>

namespace fixpoint::config {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr std::uint64_t kSecond = 1000, kHour = 3600 * kSecond, kDay = 24 * kHour;
constexpr std::uint64_t kTextMax = 4096;  // bytes; paths (PATH_MAX), URLs and keys are shorter
constexpr std::uint64_t kNameMax = 128;   // bytes

constexpr std::array kRootKeys{
    Key<Config>{{"data_dir", KeyType::text, "Folder of `cache.db`, `log.db` and `models/`.", 0,
                 kTextMax, false, "`$XDG_DATA_HOME/fixpoint`, else `~/.local/share/fixpoint`"},
                &Config::data_dir},
};

constexpr std::array kServerKeys{
    Key<ServerConfig>{{"listen", KeyType::name,
                       "Address and port to serve on, as `127.0.0.1:8080`, `[::1]:8080` or "
                       "`localhost:8080`; port 0 lets the system pick one.",
                       1, kNameMax},
                      &ServerConfig::listen},
    Key<ServerConfig>{{"allow_public", KeyType::boolean,
                       "Allow an address that other machines reach. There is no authentication: "
                       "whoever reaches the port spends your API keys."},
                      &ServerConfig::allow_public},
    Key<ServerConfig>{{"threads", KeyType::integer,
                       "Threads that serve connections; 0: one per hardware thread.", 0, 256},
                      &ServerConfig::threads},
    Key<ServerConfig>{
        {"max_header_bytes", KeyType::size, "Longest request head; beyond: 431.", kKiB, kMiB},
        &ServerConfig::max_header_bytes},
    Key<ServerConfig>{
        {"max_body_bytes", KeyType::size, "Longest request body; beyond: 413.", kKiB, kGiB},
        &ServerConfig::max_body_bytes},
    Key<ServerConfig>{{"max_connections", KeyType::integer,
                       "Open client connections; beyond, new ones wait.", 1, 1'000'000},
                      &ServerConfig::max_connections},
    Key<ServerConfig>{
        {"header_timeout", KeyType::duration, "Time for a request's head to arrive.", 1, kHour},
        &ServerConfig::header_timeout},
    Key<ServerConfig>{{"body_timeout", KeyType::duration,
                       "Time between two pieces of a request's body.", 1, kHour},
                      &ServerConfig::body_timeout},
    Key<ServerConfig>{{"idle_timeout", KeyType::duration,
                       "Time that a connection may wait for its next request.", 1, kDay},
                      &ServerConfig::idle_timeout},
    Key<ServerConfig>{{"write_timeout", KeyType::duration,
                       "A client that takes nothing for so long is cut.", 1, kHour},
                      &ServerConfig::write_timeout},
    Key<ServerConfig>{{"drain_timeout", KeyType::duration,
                       "Time for requests in flight to end when the server stops.", 0, kHour},
                      &ServerConfig::drain_timeout},
};

constexpr std::array kCacheKeys{
    Key<CacheConfig>{{"enabled", KeyType::boolean, "Keep answers at all."}, &CacheConfig::enabled},
    Key<CacheConfig>{{"path", KeyType::text, "File of the cache.", 0, kTextMax, false,
                      "`cache.db` in `data_dir`"},
                     &CacheConfig::path},
    Key<CacheConfig>{{"policy", KeyType::choice,
                      "Which answers are stored when the route does not say; `auto`: those with "
                      "temperature 0, a seed, a sample index or a reproducibility tag."},
                     &CacheConfig::policy},
    Key<CacheConfig>{
        {"max_body_bytes", KeyType::size, "Longer answers are not stored.", kKiB, kGiB},
        &CacheConfig::max_body_bytes},
};

constexpr std::array kLogKeys{
    Key<TokenLogConfig>{{"enabled", KeyType::boolean, "Keep the token log."},
                        &TokenLogConfig::enabled},
    Key<TokenLogConfig>{{"path", KeyType::text, "File of the token log.", 0, kTextMax, false,
                         "`log.db` in `data_dir`"},
                        &TokenLogConfig::path},
    Key<TokenLogConfig>{{"top_logprobs", KeyType::integer,
                         "Alternatives recorded per token; a margin needs 2.", 0, 20},
                        &TokenLogConfig::top_logprobs},
};

constexpr std::array kAccessLogKeys{
    Key<AccessLogConfig>{
        {"level", KeyType::choice, "What goes to stderr; a line per request from `info` on."},
        &AccessLogConfig::level},
};

constexpr std::array kModelKeys{
    Key<ModelConfig>{
        {"name", KeyType::name, "How routes call this local model.", 1, kNameMax, true},
        &ModelConfig::name},
    Key<ModelConfig>{{"path", KeyType::text,
                      "GGUF file, folder in Hugging Face's form, or a known name (`fixpoint model "
                      "list`) that is looked up in `data_dir/models`.",
                      1, kTextMax, true},
                     &ModelConfig::path},
    Key<ModelConfig>{
        {"threads", KeyType::integer, "Threads that compute; 0: one per hardware thread.", 0, 256},
        &ModelConfig::threads},
    Key<ModelConfig>{
        {"context", KeyType::integer, "Tokens per sequence; 0: the model's own.", 0, 1'048'576},
        &ModelConfig::context},
    Key<ModelConfig>{{"max_batch", KeyType::integer, "Sequences that decode together.", 1, 256},
                     &ModelConfig::max_batch},
    Key<ModelConfig>{{"kv_bytes", KeyType::size, "Memory for the keys and values of all sequences.",
                      kMiB, 1024 * kGiB},
                     &ModelConfig::kv_bytes},
    Key<ModelConfig>{
        {"max_queue", KeyType::integer, "Requests that may wait; more are refused.", 1, 65536},
        &ModelConfig::max_queue},
};

constexpr std::array kUpstreamKeys{
    Key<UpstreamConfig>{
        {"name", KeyType::name, "How routes call this upstream; part of the cache key.", 1,
         kNameMax, true},
        &UpstreamConfig::name},
    Key<UpstreamConfig>{
        {"base_url", KeyType::name, "As SDKs want it, for example `https://api.openai.com/v1`.", 1,
         kTextMax, true},
        &UpstreamConfig::base_url},
    Key<UpstreamConfig>{{"api_key", KeyType::secret,
                         "Sent as `Authorization: Bearer`. Empty: the client's own "
                         "Authorization passes through.",
                         0, kTextMax},
                        &UpstreamConfig::api_key},
    Key<UpstreamConfig>{
        {"headers", KeyType::headers, "Header fields added to every request.", 0, kTextMax},
        &UpstreamConfig::headers},
    Key<UpstreamConfig>{{"ca_file", KeyType::text,
                         "PEM file of the authorities to trust. Empty: the system's.", 0, kTextMax},
                        &UpstreamConfig::ca_file},
    Key<UpstreamConfig>{
        {"verify_tls", KeyType::boolean, "Check the upstream's certificate and host name."},
        &UpstreamConfig::verify_tls},
    Key<UpstreamConfig>{{"connect_timeout", KeyType::duration,
                         "Name look-up, connection and TLS handshake together.", 1, kHour},
                        &UpstreamConfig::connect_timeout},
    Key<UpstreamConfig>{
        {"first_byte_timeout", KeyType::duration, "Time for an answer to begin.", 1, kDay},
        &UpstreamConfig::first_byte_timeout},
    Key<UpstreamConfig>{{"between_bytes_timeout", KeyType::duration,
                         "Time between two pieces of an answer.", 1, kDay},
                        &UpstreamConfig::between_bytes_timeout},
    Key<UpstreamConfig>{{"idle_ttl", KeyType::duration,
                         "An idle connection older than this is not used again.", 1, kDay},
                        &UpstreamConfig::idle_ttl},
    Key<UpstreamConfig>{
        {"max_connections", KeyType::integer,
         "Connections per serving thread; beyond: refused as overloaded.", 1, 65536},
        &UpstreamConfig::max_connections},
    Key<UpstreamConfig>{{"max_idle_connections", KeyType::integer,
                         "Connections kept open per serving thread.", 0, 65536},
                        &UpstreamConfig::max_idle_connections},
    Key<UpstreamConfig>{{"max_response_bytes", KeyType::size, "Longest answer.", kKiB, 4 * kGiB},
                        &UpstreamConfig::max_response_bytes},
};

constexpr std::array kRouteKeys{
    Key<RouteConfig>{{"model", KeyType::text,
                      "Requested model; `*` stands for any text. The first route that matches "
                      "answers.",
                      1, kNameMax, true},
                     &RouteConfig::model},
    Key<RouteConfig>{
        {"upstream", KeyType::name,
         "Name of the upstream that answers. Exactly one of `upstream` and `local`.", 0, kNameMax},
        &RouteConfig::upstream},
    Key<RouteConfig>{{"local", KeyType::name, "Name of the local model that answers.", 0, kNameMax},
                     &RouteConfig::local},
    Key<RouteConfig>{{"upstream_model", KeyType::text,
                      "Model name sent to the upstream. Empty: the requested one.", 0, kNameMax},
                     &RouteConfig::upstream_model},
    Key<RouteConfig>{{"repro_model", KeyType::name,
                      "Name of the local model that answers requests tagged reproducible. "
                      "Empty: `local`, if set.",
                      0, kNameMax},
                     &RouteConfig::repro_model},
    Key<RouteConfig>{{"repro", KeyType::choice,
                      "The tag of requests that carry none; `preferred` falls back to the "
                      "upstream, `required` never does."},
                     &RouteConfig::repro},
    Key<RouteConfig>{{"cache", KeyType::choice, "As `cache.policy`, for this route.", 0, 0, false,
                      "`cache.policy`"},
                     &RouteConfig::cache},
};

std::string_view or_dash(std::string_view text) {
  return text.empty() ? "-" : text;
}

template <class Section>
void append_rows(std::string& out, std::string_view prefix) {
  const Section defaults;
  for (const Key<Section>& key : keys<Section>()) {
    Section copy = defaults;
    const Slot slot = key.slot(copy);
    std::string standard(key.info.default_text);
    if (key.info.required) {
      standard = "required";
    } else if (standard.empty()) {
      const std::string value = value_text(key.info, slot);
      standard = value.empty() ? "empty" : "`" + value + "`";
    }
    out += "| `";
    out += prefix;
    out += key.info.name;
    out += "` | ";
    out += to_string(key.info.type);
    out += " | " + standard + " | ";
    out += or_dash(limits_text(key.info, slot));
    out += " | ";
    out += key.info.doc;
    out += " |\n";
  }
}

}  // namespace

std::string_view to_string(KeyType type) {
  switch (type) {
    case KeyType::text:
      return "text";
    case KeyType::name:
      return "name";
    case KeyType::secret:
      return "secret";
    case KeyType::integer:
      return "integer";
    case KeyType::size:
      return "size";
    case KeyType::duration:
      return "duration";
    case KeyType::boolean:
      return "boolean";
    case KeyType::choice:
      return "choice";
    case KeyType::headers:
      return "mapping";
  }
  return "";
}

template <>
std::span<const Key<Config>> keys() {
  return kRootKeys;
}
template <>
std::span<const Key<ServerConfig>> keys() {
  return kServerKeys;
}
template <>
std::span<const Key<CacheConfig>> keys() {
  return kCacheKeys;
}
template <>
std::span<const Key<TokenLogConfig>> keys() {
  return kLogKeys;
}
template <>
std::span<const Key<AccessLogConfig>> keys() {
  return kAccessLogKeys;
}
template <>
std::span<const Key<ModelConfig>> keys() {
  return kModelKeys;
}
template <>
std::span<const Key<UpstreamConfig>> keys() {
  return kUpstreamKeys;
}
template <>
std::span<const Key<RouteConfig>> keys() {
  return kRouteKeys;
}

}  // namespace fixpoint::config

namespace fixpoint {

std::string config_keys_markdown() {
  using config::append_rows;
  std::string out = "| Key | Type | Default | Limits | Meaning |\n|---|---|---|---|---|\n";
  append_rows<Config>(out, "");
  append_rows<ServerConfig>(out, "server.");
  append_rows<CacheConfig>(out, "cache.");
  append_rows<TokenLogConfig>(out, "log.");
  append_rows<AccessLogConfig>(out, "access_log.");
  append_rows<ModelConfig>(out, "models[].");
  append_rows<UpstreamConfig>(out, "upstreams[].");
  append_rows<RouteConfig>(out, "routes[].");
  return out;
}

}  // namespace fixpoint
