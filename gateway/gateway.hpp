// What all requests share: configuration, stores, engines, upstream clients, flights, metrics.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/single_flight.hpp"
#include "cache/store.hpp"
#include "cache/token_log.hpp"
#include "gateway/api/answer.hpp"
#include "gateway/config.hpp"
#include "gateway/http/server.hpp"
#include "gateway/metrics.hpp"
#include "gateway/upstream/client.hpp"
#include "local_engine/engine.hpp"

namespace fixpoint {

// Series that the request path counts in, looked up once. Thread-safe.
class GatewayMetrics {
 public:
  explicit GatewayMetrics(MetricsRegistry& registry);
  enum class CacheResult { hit, miss, joined, bypass, error };
  void count_cache(CacheResult result) { cache_[static_cast<std::size_t>(result)]->add(); }
  void count_request(std::string_view endpoint, int status, double seconds);
  void count_upstream(std::string_view upstream, std::string_view result);
  void count_tokens(std::string_view provider, std::uint64_t prompt, std::uint64_t completion);

 private:
  MetricsRegistry& registry_;
  std::vector<Counter*> cache_;
};

// Made once by serve(); outlives the server, is outlived by nothing that it owns. Members are set
// before the server starts, except `engines`, which is complete once `ready` is true.
struct Gateway {
  Gateway(Config configuration, Cores& all_cores);

  Config config;
  Cores& cores;
  MetricsRegistry registry;
  GatewayMetrics metrics{registry};
  std::unique_ptr<Store> store;   // null: caching is off
  std::unique_ptr<TokenLog> log;  // null: logging is off
  AnswerFlights flights;
  // By upstream name; one client per core.
  std::map<std::string, std::vector<std::unique_ptr<UpstreamClient>>, std::less<>> upstreams;
  // Last: engines are stopped first, while everything that their callbacks use is still there.
  std::map<std::string, std::unique_ptr<engine::Engine>, std::less<>> engines;
  std::atomic<bool> ready{false};
  std::string admin_token;         // of AdminFile; empty: the admin paths refuse everybody
  net::thread_pool background{1};  // for work that waits for a disk

  // The client of this core. Precondition: called on one of the cores; the name is configured.
  UpstreamClient& upstream(std::string_view name, const net::io_context& core);
  engine::Engine* find_engine(std::string_view name) const;
};

// The HTTP handler: routes a request to its endpoint. `gateway` must outlive the server.
Handler make_handler(Gateway& gateway);

}  // namespace fixpoint
