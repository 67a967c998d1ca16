#include "gateway/gateway.hpp"

#include <stdexcept>

namespace fixpoint {

GatewayMetrics::GatewayMetrics(MetricsRegistry& registry) : registry_(registry) {
  for (const char* result : {"hit", "miss", "joined", "bypass", "error"}) {
    cache_.push_back(&registry.counter("fixpoint_cache_requests_total",
                                       "Generation requests by what the cache did.",
                                       {{"result", result}}));
  }
}

void GatewayMetrics::count_request(std::string_view endpoint, int status, double seconds) {
  registry_
      .counter("fixpoint_requests_total", "Requests answered.",
               {{"endpoint", std::string(endpoint)}, {"status", std::to_string(status)}})
      .add();
  registry_
      .histogram("fixpoint_request_seconds", "Time from a request's body to the end of its answer.",
                 latency_buckets_seconds(), {{"endpoint", std::string(endpoint)}})
      .observe(seconds);
}

void GatewayMetrics::count_upstream(std::string_view upstream, std::string_view result) {
  registry_
      .counter("fixpoint_upstream_requests_total", "Calls to upstreams, by HTTP status or failure.",
               {{"upstream", std::string(upstream)}, {"result", std::string(result)}})
      .add();
}

void GatewayMetrics::count_tokens(std::string_view provider, std::uint64_t prompt,
                                  std::uint64_t completion) {
  const auto count = [&](const char* kind, std::uint64_t n) {
    registry_
        .counter("fixpoint_tokens_total", "Tokens of generations, as their usage says.",
                 {{"provider", std::string(provider)}, {"kind", kind}})
        .add(n);
  };
  count("prompt", prompt);
  count("completion", completion);
}

Gateway::Gateway(Config configuration, Cores& all_cores)
    : config(std::move(configuration)), cores(all_cores) {
  for (const auto& upstream : config.upstreams) {
    UpstreamOptions options;
    options.base_url = upstream.base_url;
    options.ca_file = upstream.ca_file;
    options.verify_tls = upstream.verify_tls;
    options.max_idle_connections = upstream.max_idle_connections;
    options.max_connections = upstream.max_connections;
    options.idle_ttl = upstream.idle_ttl;
    options.connect_timeout = upstream.connect_timeout;
    options.first_byte_timeout = upstream.first_byte_timeout;
    options.between_bytes_timeout = upstream.between_bytes_timeout;
    options.max_response_bytes = upstream.max_response_bytes;
    auto& clients = upstreams[upstream.name];
    for (std::size_t core = 0; core < cores.size(); ++core) {
      clients.push_back(std::make_unique<UpstreamClient>(cores.context(core), options));
    }
  }
  registry.gauge_from("fixpoint_flights", "Answers being made that several requests may share.", {},
                      [this] { return static_cast<double>(flights.size()); });
  registry.counter_from("fixpoint_cache_write_failures_total", "Answers that could not be stored.",
                        {}, [this] { return store ? store->failed_writes() : 0; });
  registry.counter_from("fixpoint_log_write_failures_total",
                        "Generations that could not be logged.", {},
                        [this] { return log ? log->failed_writes() : 0; });
}

UpstreamClient& Gateway::upstream(std::string_view name, const net::io_context& core) {
  auto& clients = upstreams.find(name)->second;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    if (&cores.context(i) == &core) return *clients[i];
  }
  throw std::logic_error("upstream() called outside the gateway's cores");
}

engine::Engine* Gateway::find_engine(std::string_view name) const {
  const auto found = engines.find(name);
  return found == engines.end() ? nullptr : found->second.get();
}

}  // namespace fixpoint
