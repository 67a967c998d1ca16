#include "gateway/serve.hpp"

#include <sys/resource.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>
#include <optional>

#include "gateway/admin.hpp"
#include "gateway/cli/cli.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/server.hpp"
#include "gateway/log.hpp"
#include "gateway/model_store.hpp"

namespace fixpoint {
namespace {

ServerOptions server_options(const ServerConfig& config) {
  const auto address = parse_listen(config.listen).value();  // checked when the file was loaded
  ServerOptions options;
  options.address = address.address;
  options.port = address.port;
  options.max_header_bytes = config.max_header_bytes;
  options.max_body_bytes = config.max_body_bytes;
  options.max_connections = config.max_connections;
  options.header_timeout = config.header_timeout;
  options.body_timeout = config.body_timeout;
  options.idle_timeout = config.idle_timeout;
  options.write_timeout = config.write_timeout;
  return options;
}

// A store that cannot be opened is an error at start-up: a gateway that silently does not cache is
// not what was configured.
bool open_stores(Gateway& gateway) {
  const auto& config = gateway.config;
  // The first start makes the data folder, for this user alone: prompts are personal data. A
  // failure shows in the message of the store that needed it.
  std::error_code code;
  if (std::filesystem::create_directories(config.data_dir, code)) {
    std::filesystem::permissions(config.data_dir, std::filesystem::perms::owner_all, code);
  }
  if (config.cache.enabled) {
    SqliteStoreOptions options;
    options.path = config.cache.path;
    options.on_write_error = [](const Error& error) { log_warning("cache: " + error.message); };
    auto store = open_sqlite_store(options);
    if (!store) {
      log_error("cache: " + store.error().message);
      return false;
    }
    gateway.store = std::move(*store);
  }
  if (config.log.enabled) {
    TokenLogOptions options;
    options.path = config.log.path;
    options.on_write_error = [](const Error& error) { log_warning("token log: " + error.message); };
    auto log = TokenLog::open(options);
    if (!log) {
      log_error("token log: " + log.error().message);
      return false;
    }
    gateway.log = std::move(*log);
  }
  return true;
}

bool load_engines(Gateway& gateway) {
  const ModelStore models(gateway.config.models_dir());
  for (const auto& model : gateway.config.models) {
    const auto path = models.resolve(model.path);
    if (!path) {
      log_error("model '" + model.name + "': " + path.error().message);
      return false;
    }
    engine::EngineOptions options;
    options.name = model.name;
    options.threads = static_cast<int>(model.threads);
    options.context = model.context;
    options.max_batch = model.max_batch;
    options.kv_bytes = model.kv_bytes;
    options.max_queue = model.max_queue;
    auto engine = engine::Engine::load(*path, options);
    if (!engine) {
      log_error("model '" + model.name + "': " + engine.error().message);
      return false;
    }
    log_info("model '" + model.name + "' loaded, fingerprint " + (*engine)->info().fingerprint);
    gateway.engines.emplace(model.name, std::move(*engine));
  }
  return true;
}

// Waits for SIGINT, SIGTERM or SIGHUP (its terminal closed) on a context of its own.
class StopSignal {
 public:
  StopSignal() : signals_(context_, SIGINT, SIGTERM, SIGHUP) {
    signals_.async_wait([](const boost::system::error_code&, int) {});
  }
  void wait() { context_.run(); }

 private:
  net::io_context context_{1};
  net::signal_set signals_;
};

// Every connection is a descriptor, and a shell's soft limit is often 1,024: takes what the hard
// limit gives, and keeps room beside the clients for upstream connections and files.
std::uint64_t raise_descriptor_limit(std::uint64_t wanted_connections) {
  constexpr std::uint64_t kReserve = 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted_connections;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::uint64_t most =
      limit.rlim_cur > 2 * kReserve ? limit.rlim_cur - kReserve : limit.rlim_cur / 2;
  if (most >= wanted_connections) return wanted_connections;
  log_warning("server.max_connections is " + std::to_string(wanted_connections) + ", but " +
              std::to_string(limit.rlim_cur) + " descriptors allow " + std::to_string(most) +
              ": using that; raise `ulimit -n`");
  return most;
}

}  // namespace

int serve(const Config& config, const std::string&) {
  std::signal(SIGPIPE, SIG_IGN);
  StopSignal stop;  // before any thread, so that every thread has the signals' handlers

  Cores cores(config.server.threads);
  Gateway gateway(config, cores);
  if (!open_stores(gateway)) return kExitFailed;

  ServerOptions options = server_options(config.server);
  options.max_connections = raise_descriptor_limit(options.max_connections);
  Server server(cores, options, make_handler(gateway));
  std::optional<AdminFile> admin;
  if (gateway.store) {
    const auto address = parse_listen(config.server.listen).value().address;
    admin.emplace(config.cache.path, address, server.port());
    gateway.admin_token = admin->token();
  }
  cores.start();
  server.start();
  log_info("listening on " + config.server.listen + " (port " + std::to_string(server.port()) +
           ")");

  int exit_code = kExitOk;
  if (load_engines(gateway)) {
    gateway.ready.store(true, std::memory_order_release);
    log_info("ready");
    stop.wait();
    log_info("stopping: no new requests, those in flight end");
  } else {
    exit_code = kExitFailed;
  }
  server.drain(config.server.drain_timeout);
  gateway.engines.clear();  // its callbacks post to the cores: first the engines, then the cores
  gateway.background.join();
  cores.stop();
  return exit_code;
}

}  // namespace fixpoint
