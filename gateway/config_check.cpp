// Checks between the keys of a configuration that its table of keys cannot express: the gateway
// itself, and URLs.
#include <algorithm>

#include "cache/redaction.hpp"
#include "cache/redis/url.hpp"
#include "gateway/config_keys.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint::config {
namespace {

void check_server(const ServerConfig& server, const Report& report) {
  if (const auto listen = parse_listen(server.listen); !listen) {
    report("server.listen", listen.error().message);
  }
  if (server.tls_cert_file.empty() != server.tls_key_file.empty()) {
    report(server.tls_cert_file.empty() ? "server.tls_key_file" : "server.tls_cert_file",
           "tls_cert_file and tls_key_file must be set together");
  }
}

void check_cache(const CacheConfig& cache, const Report& report) {
  if (!cache.redis_url.empty()) {
    const auto url = redis::parse_url(cache.redis_url);  // its messages quote nothing
    if (!url) {
      report("cache.redis_url", url.error().message);
    } else if (cache.redis_cluster && url->database != 0) {
      report("cache.redis_url", "a Redis Cluster has database 0 only");
    }
    return;
  }
  if (cache.redis_cluster) report("cache.redis_cluster", "has no effect without redis_url");
  if (!cache.redis_ca_file.empty()) {
    report("cache.redis_ca_file", "has no effect without redis_url");
  }
}

void check_log(const TokenLogConfig& log, const Report& report) {
  bool good = true;
  for (std::size_t i = 0; i < log.redact.size(); ++i) {
    if (log.redact[i].empty()) {
      good = false;  // reported already
    } else if (const auto one = Redactor::compile({log.redact[i]}); !one) {
      const std::string message = one.error().message;
      report("log.redact[" + std::to_string(i) + "]", message.substr(message.find(": ") + 2));
      good = false;
    }
  }
  if (!good) return;
  if (const auto all = Redactor::compile(log.redact); !all) {
    report("log.redact", all.error().message);
  }
}

void check_admin(const AdminConfig& admin, const Report& report) {
  constexpr std::size_t kShortest = 16;  // it opens everything, and nothing slows a guesser down
  if (!admin.token.empty() && admin.token.size() < kShortest) {
    report("admin.token", "must have at least " + std::to_string(kShortest) + " bytes");
  }
}

void check_telemetry(const TelemetryConfig& telemetry, const Report& report) {
  if (!telemetry.otlp_endpoint.empty() && !parse_url(telemetry.otlp_endpoint)) {
    report("telemetry.otlp_endpoint",
           "must be an http or https URL without user, query or fragment");
  }
  check_header_names(telemetry.headers, "telemetry.headers", report);
}

// Characters of an HTTP field name (RFC 9110, 5.6.2).
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

// Fields that belong to the connection: the gateway's HTTP client writes them itself.
bool is_reserved(std::string_view name) {
  constexpr std::string_view kReserved[] = {
      "host",    "connection", "content-length", "transfer-encoding", "te", "trailer",
      "upgrade", "keep-alive", "expect",         "accept-encoding"};
  return std::any_of(std::begin(kReserved), std::end(kReserved),
                     [&](std::string_view field) { return equal_ignoring_case(field, name); });
}

}  // namespace

void check_header_names(const std::vector<NamedValue>& headers, const std::string& path,
                        const Report& report) {
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const std::string& name = headers[i].name;
    const std::string place = path + "." + name;
    if (!is_token(name)) {
      report(place, "is not an HTTP field name");
    } else if (is_reserved(name)) {
      report(place, "is written by the gateway and cannot be set");
    }
    const auto same = [&](const NamedValue& other) {
      return equal_ignoring_case(other.name, name);
    };
    const auto end = headers.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(headers.begin(), end, same)) {
      report(place, "is set twice (field names do not differ by case)");
    }
  }
}

void cross_check(const Config& config, const Report& report) {
  check_server(config.server, report);
  check_cache(config.cache, report);
  check_log(config.log, report);
  check_admin(config.admin, report);
  check_telemetry(config.telemetry, report);
  check_answers(config, report);
  if (config.cache.enabled && config.log.enabled && config.cache.path == config.log.path) {
    report("log.path", "must not be the file of cache.path");
  }
}

}  // namespace fixpoint::config
