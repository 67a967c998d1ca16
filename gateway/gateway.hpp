// What all requests share: settings, stores, engines, flights, metrics.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cache/fingerprints.hpp"
#include "cache/single_flight.hpp"
#include "cache/store.hpp"
#include "cache/token_log.hpp"
#include "gateway/api/answer.hpp"
#include "gateway/http/server.hpp"
#include "gateway/log.hpp"
#include "gateway/metrics.hpp"
#include "gateway/settings.hpp"
#include "gateway/telemetry/request_metrics.hpp"
#include "gateway/telemetry/span_exporter.hpp"
#include "gateway/tenants/tenants.hpp"
#include "local_engine/engine.hpp"

namespace fixpoint {

struct AnswerJob;

// Record and replay for test suites: see RecordingStore. Either way that store is the store.
enum class Recording { off, record, replay };

// Made once by serve(); outlives the server, is outlived by nothing that it owns. Members are set
// before the server starts, except `engines`, which is complete once `ready` is true, and the
// settings, which reload() replaces.
struct Gateway {
  Gateway(Config configuration, Cores& all_cores);

  Cores& cores;
  MetricsRegistry registry;
  RequestMetrics metrics{registry};
  std::unique_ptr<Store> store;         // null: caching is off
  BurstWarning look_up_failed;          // a store that is away fails every look-up
  std::unique_ptr<TokenLog> log;        // null: logging is off
  std::unique_ptr<Tenants> tenants;     // never null once the server runs
  std::unique_ptr<SpanExporter> spans;  // null: no export
  std::unique_ptr<FingerprintTracker> fingerprints = std::make_unique<FingerprintTracker>();
  RecordingStore* recordings = nullptr;  // `store`, where recording is not off
  Recording recording = Recording::off;
  AnswerFlights flights;
  std::map<std::string, std::unique_ptr<engine::Engine>, std::less<>> engines;
  std::atomic<bool> ready{false};
  std::atomic<std::size_t> relays{0};  // calls to upstreams that have not ended
  bool loopback = true;                // where the server listens
  std::string admin_token;             // of the file beside the data; empty: none was made
  net::thread_pool background{1};      // for work that waits for a disk

  // The settings as they are now; a request takes them once. Thread-safe.
  SettingsPtr settings() const {
    const std::lock_guard lock(settings_mutex_);
    return settings_;
  }
  // Puts a checked configuration in place of the running one. Requests in flight keep theirs.
  // Errors: invalid (a CA file, a price). Not thread-safe.
  Result<void> reload(Config configuration);

  engine::Engine* find_engine(std::string_view name) const;
  // What an ended generation (its record is complete) means to metrics and fingerprints.
  void generation_ended(const AnswerJob& job);
  void log_generation(GenerationRecord record);

 private:
  void install(SettingsPtr fresh);
  // Not an atomic pointer: libstdc++ 12's is a lock, too, and its load() lets go of it in an order
  // that a store() cannot rely on.
  mutable std::mutex settings_mutex_;
  SettingsPtr settings_;
};

// The HTTP handler: routes a request to its endpoint. `gateway` must outlive the server.
Handler make_handler(Gateway& gateway);
// The server's answers to requests that never reach the handler, in the shape of the client's API;
// they are counted and logged.
Refusal make_refusal(Gateway& gateway);
HeadCheck make_head_check(Gateway& gateway);

}  // namespace fixpoint
