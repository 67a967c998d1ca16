// Keys of the gateway itself: where it listens, what it keeps, what it tells.
#include "gateway/config_keys.hpp"

#include <array>
#include <chrono>

#include "cache/entry_codec.hpp"
#include "gateway/config_units.hpp"

namespace fixpoint::config {
namespace {

constexpr std::array kRootKeys{
    Key<Config>{{"data_dir", KeyType::text,
                 "Folder of `cache.db`, `log.db`, `keys.db`, `gateway.json` and `models/`.", 0,
                 kTextMax, false, "`$XDG_DATA_HOME/fixpoint`, else `~/.local/share/fixpoint`"},
                &Config::data_dir,
                kAtStart},
};

constexpr std::array kServerKeys{
    Key<ServerConfig>{{"listen", KeyType::name,
                       "Address and port to serve on, as `127.0.0.1:8080`, `[::1]:8080` or "
                       "`localhost:8080`; port 0 lets the system pick one. Without gateway keys "
                       "(`fixpoint keys create`) only this machine reaches it.",
                       1, kNameMax},
                      &ServerConfig::listen,
                      kAtStart},
    Key<ServerConfig>{{"tls_cert_file", KeyType::text,
                       "PEM file of the certificate and its chain; with `tls_key_file`: HTTPS "
                       "only. SIGHUP reads the files again.",
                       0, kTextMax},
                      &ServerConfig::tls_cert_file,
                      kAtStart},
    Key<ServerConfig>{
        {"tls_key_file", KeyType::text, "PEM file of the certificate's private key.", 0, kTextMax},
        &ServerConfig::tls_key_file,
        kAtStart},
    Key<ServerConfig>{{"threads", KeyType::integer,
                       "Threads that serve connections; 0: one per hardware thread.", 0, 256},
                      &ServerConfig::threads,
                      kAtStart},
    Key<ServerConfig>{
        {"max_header_bytes", KeyType::size, "Longest request head; beyond: 431.", kKiB, kMiB},
        &ServerConfig::max_header_bytes,
        kAtStart},
    Key<ServerConfig>{
        {"max_body_bytes", KeyType::size, "Longest request body; beyond: 413.", kKiB, kGiB},
        &ServerConfig::max_body_bytes,
        kAtStart},
    Key<ServerConfig>{{"max_connections", KeyType::integer,
                       "Open client connections; beyond, new ones wait.", 1, 1'000'000},
                      &ServerConfig::max_connections,
                      kAtStart},
    Key<ServerConfig>{
        {"header_timeout", KeyType::duration, "Time for a request's head to arrive.", 1, kHour},
        &ServerConfig::header_timeout,
        kAtStart},
    Key<ServerConfig>{{"body_timeout", KeyType::duration,
                       "Time between two pieces of a request's body.", 1, kHour},
                      &ServerConfig::body_timeout,
                      kAtStart},
    Key<ServerConfig>{{"idle_timeout", KeyType::duration,
                       "Time that a connection may wait for its next request.", 1, kDay},
                      &ServerConfig::idle_timeout,
                      kAtStart},
    Key<ServerConfig>{{"write_timeout", KeyType::duration,
                       "A client that takes nothing for so long is cut.", 1, kHour},
                      &ServerConfig::write_timeout,
                      kAtStart},
    Key<ServerConfig>{
        {"drain_timeout", KeyType::duration,
         "Time for requests in flight to end when the server stops; then they end with "
         "an error, streams with an error event.",
         0, kHour},
        &ServerConfig::drain_timeout},
    Key<ServerConfig>{{"heartbeat", KeyType::duration,
                       "Silence in a stream after which a comment (for Anthropic's API a `ping`) "
                       "keeps it open; 0s: never.",
                       0, kHour},
                      &ServerConfig::heartbeat},
};

constexpr std::array kCacheKeys{
    Key<CacheConfig>{
        {"enabled", KeyType::boolean, "Keep answers at all."}, &CacheConfig::enabled, kAtStart},
    Key<CacheConfig>{{"path", KeyType::text, "File of the cache (not with `redis_url`).", 0,
                      kTextMax, false, "`cache.db` in `data_dir`"},
                     &CacheConfig::path,
                     kAtStart},
    Key<CacheConfig>{{"policy", KeyType::choice,
                      "Which answers are stored when the route does not say; `auto`: those with "
                      "temperature 0, a seed, a sample index or a reproducibility tag."},
                     &CacheConfig::policy},
    Key<CacheConfig>{{"max_body_bytes", KeyType::size,
                      "Longer answers are not stored (but recorded).", kKiB, kMaxDecodedBody},
                     &CacheConfig::max_body_bytes},
    Key<CacheConfig>{
        {"store_length", KeyType::boolean, "Store also answers that ended at their token limit."},
        &CacheConfig::store_length},
    Key<CacheConfig>{{"ttl", KeyType::duration,
                      "Older answers are not given any more; 0s: no limit. A longer one needs a "
                      "restart: the store removes by the value that it was opened with.",
                      0, kTenYears},
                     &CacheConfig::ttl},
    Key<CacheConfig>{{"max_bytes", KeyType::size,
                      "Size of the store; beyond, answers that were not used for longest go. With "
                      "`redis_url` the server's `maxmemory` decides.",
                      kMiB, 1024 * kGiB},
                     &CacheConfig::max_bytes,
                     kAtStart},
    Key<CacheConfig>{{"memory_bytes", KeyType::size,
                      "Answers kept in memory in front of the store; 0: none.", 0, 1024 * kGiB},
                     &CacheConfig::memory_bytes,
                     kAtStart},
    Key<CacheConfig>{
        {"compress_above", KeyType::size, "Longer answers are stored compressed (zstd).", 0, kGiB},
        &CacheConfig::compress_above,
        kAtStart},
    Key<CacheConfig>{{"replay", KeyType::choice,
                      "Pace of streams from the cache: at once, or as the answer first came."},
                     &CacheConfig::replay},
    Key<CacheConfig>{{"redis_url", KeyType::secret,
                      "Keep answers in Redis, shared by several gateways: "
                      "`redis://[user:password@]host[:port][/db]`, `rediss://` for TLS.",
                      0, kTextMax},
                     &CacheConfig::redis_url,
                     kAtStart},
    Key<CacheConfig>{
        {"redis_cluster", KeyType::boolean, "The URL names a node of a Redis Cluster."},
        &CacheConfig::redis_cluster,
        kAtStart},
    Key<CacheConfig>{{"redis_ca_file", KeyType::text,
                      "PEM file of the authorities to trust. Empty: the system's.", 0, kTextMax},
                     &CacheConfig::redis_ca_file,
                     kAtStart},
    Key<CacheConfig>{
        {"redis_prefix", KeyType::name, "What every key in Redis begins with.", 1, kNameMax},
        &CacheConfig::redis_prefix,
        kAtStart},
    Key<CacheConfig>{
        {"redis_timeout", KeyType::duration,
         "Time for a look-up; beyond, the request goes on as a miss, marked.", 1, 60 * kSecond},
        &CacheConfig::redis_timeout,
        kAtStart},
};

constexpr std::array kLogKeys{
    Key<TokenLogConfig>{
        {"enabled", KeyType::boolean, "Keep the token log."}, &TokenLogConfig::enabled, kAtStart},
    Key<TokenLogConfig>{{"path", KeyType::text, "File of the token log.", 0, kTextMax, false,
                         "`log.db` in `data_dir`"},
                        &TokenLogConfig::path,
                        kAtStart},
    Key<TokenLogConfig>{{"top_logprobs", KeyType::integer,
                         "Alternatives recorded per token; a margin needs 2.", 0, 20},
                        &TokenLogConfig::top_logprobs},
    Key<TokenLogConfig>{{"logprobs", KeyType::choice,
                         "Log-probabilities of hosted models: recorded when the client asked "
                         "(`client`), or also asked for when it did not, and taken out of the "
                         "answer (`inject`). With a client's own wish go as many alternatives as "
                         "it asked for."},
                        &TokenLogConfig::logprobs},
    Key<TokenLogConfig>{{"text", KeyType::choice,
                         "Whether the log keeps what the tokens say (`full`) or their numbers "
                         "alone (`off`)."},
                        &TokenLogConfig::text,
                        kAtStart},
    Key<TokenLogConfig>{
        {"redact", KeyType::texts,
         "Regular expressions (PCRE2); text that they match is not logged.", 1, kTextMax},
        &TokenLogConfig::redact,
        kAtStart},
    Key<TokenLogConfig>{
        {"max_age", KeyType::duration, "Older generations are removed; 0s: never.", 0, kTenYears},
        &TokenLogConfig::max_age,
        kAtStart},
    Key<TokenLogConfig>{{"max_bytes", KeyType::size,
                         "Size of the file; beyond, the oldest generations go.", kMiB, 1024 * kGiB},
                        &TokenLogConfig::max_bytes,
                        kAtStart},
    Key<TokenLogConfig>{{"fingerprint_epoch", KeyType::boolean,
                         "A changed fingerprint of a hosted model starts a new cache epoch: older "
                         "answers are not given any more."},
                        &TokenLogConfig::fingerprint_epoch},
};

constexpr std::array kAccessLogKeys{
    Key<AccessLogConfig>{
        {"level", KeyType::choice, "What goes to stderr; a line per request from `info` on."},
        &AccessLogConfig::level},
    Key<AccessLogConfig>{{"format", KeyType::choice, "Lines of text, or one JSON object per line."},
                         &AccessLogConfig::format},
};

constexpr std::array kAdminKeys{
    Key<AdminConfig>{{"token", KeyType::secret,
                      "Bearer token of the admin paths, at least 16 bytes. Empty: only the token "
                      "that the gateway leaves in `data_dir`.",
                      0, kTextMax},
                     &AdminConfig::token},
};

constexpr std::array kTelemetryKeys{
    Key<TelemetryConfig>{{"otlp_endpoint", KeyType::name,
                          "OpenTelemetry collector that gets spans (OTLP/HTTP, JSON), for example "
                          "`http://localhost:4318`. Empty: none does.",
                          0, kTextMax},
                         &TelemetryConfig::otlp_endpoint,
                         kAtStart},
    Key<TelemetryConfig>{
        {"service_name", KeyType::text, "The resource's `service.name`.", 1, kNameMax},
        &TelemetryConfig::service_name,
        kAtStart},
    Key<TelemetryConfig>{
        {"headers", KeyType::headers, "Header fields of the export requests.", 0, kTextMax},
        &TelemetryConfig::headers,
        kAtStart},
    Key<TelemetryConfig>{
        {"interval", KeyType::duration, "Longest time that a span waits.", 100, kHour},
        &TelemetryConfig::interval,
        kAtStart},
};

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
    case KeyType::number:
      return "number";
    case KeyType::size:
      return "size";
    case KeyType::duration:
      return "duration";
    case KeyType::boolean:
      return "boolean";
    case KeyType::choice:
      return "choice";
    case KeyType::texts:
    case KeyType::names:
      return "list";
    case KeyType::secrets:
      return "list of secrets";
    case KeyType::mapping:
    case KeyType::headers:
      return "mapping";
  }
  return "";
}

bool is_secret(KeyType type) {
  return type == KeyType::secret || type == KeyType::secrets || type == KeyType::headers;
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
std::span<const Key<AdminConfig>> keys() {
  return kAdminKeys;
}
template <>
std::span<const Key<TelemetryConfig>> keys() {
  return kTelemetryKeys;
}

}  // namespace fixpoint::config
