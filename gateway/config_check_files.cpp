// The files of TLS that a configuration names, read by the code that serves with them.
#include <stdexcept>

#include "cache/redis/tls.hpp"
#include "cache/redis/url.hpp"
#include "gateway/config_keys.hpp"
#include "gateway/http/server_tls.hpp"
#include "gateway/upstream/client.hpp"
#include "gateway/upstream/tls.hpp"

namespace fixpoint::config {
namespace {

// `use` makes what needs the file, and throws where that cannot be made.
template <class Use>
void check_use(const std::string& path, const Report& report, Use use) {
  try {
    use();
  } catch (const std::runtime_error& error) {
    report(path, error.what());
  }
}

}  // namespace

void check_files(const Config& config, const Report& report) {
  const ServerConfig& server = config.server;
  if (!server.tls_cert_file.empty() && !server.tls_key_file.empty()) {
    check_use("server.tls_cert_file", report,
              [&] { const ServerTls tls(server.tls_cert_file, server.tls_key_file); });
  }
  const CacheConfig& cache = config.cache;
  const auto url = redis::parse_url(cache.redis_url);
  if (url && url->tls && !cache.redis_ca_file.empty()) {
    if (const auto made = redis::make_tls_context(cache.redis_ca_file); !made) {
      report("cache.redis_ca_file", made.error().message);
    }
  }
  for (std::size_t i = 0; i < config.upstreams.size(); ++i) {
    const UpstreamConfig& upstream = config.upstreams[i];
    const auto base = parse_url(upstream.base_url);
    if (!base || base->scheme != "https" || upstream.ca_file.empty()) continue;
    check_use("upstreams[" + std::to_string(i) + "].ca_file", report,
              [&] { const TlsPolicy policy(upstream.ca_file, upstream.verify_tls); });
  }
}

}  // namespace fixpoint::config
