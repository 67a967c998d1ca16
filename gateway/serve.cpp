#include "gateway/serve.hpp"

#include <sys/resource.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "gateway/admin_file.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/server.hpp"
#include "gateway/log.hpp"
#include "gateway/model_store.hpp"
#include "gateway/stores.hpp"

namespace fixpoint {
namespace {

ServerOptions server_options(const ServerConfig& config, const ListenAddress& address) {
  ServerOptions options;
  options.address = address.address;
  options.port = address.port;
  options.tls_cert_file = config.tls_cert_file;
  options.tls_key_file = config.tls_key_file;
  options.max_header_bytes = config.max_header_bytes;
  options.max_body_bytes = config.max_body_bytes;
  options.max_connections = config.max_connections;
  options.header_timeout = config.header_timeout;
  options.body_timeout = config.body_timeout;
  options.idle_timeout = config.idle_timeout;
  options.write_timeout = config.write_timeout;
  return options;
}

// Without gateway keys nobody but this machine may use it: whoever reaches the port would spend
// the upstreams' keys.
ListenAddress address_for(const Gateway& gateway, const ServerConfig& config) {
  auto address = parse_listen(config.listen).value();  // checked when the file was loaded
  if (address.loopback || gateway.tenants->any()) return address;
  log_warning("server.listen is " + config.listen +
              ", but there are no gateway keys: listening on loopback only. Create one with "
              "`fixpoint keys create`, and start again");
  address.address = address.address.find(':') == std::string::npos ? "127.0.0.1" : "::1";
  address.loopback = true;
  return address;
}

bool load_engines(Gateway& gateway) {
  const auto settings = gateway.settings();
  const ModelStore models(settings->config.models_dir());
  for (const auto& model : settings->config.models) {
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

// Signals on a context of their own.
class Signals {
 public:
  // A SIGHUP from here on waits for wait(). SIGINT and SIGTERM end the process until then: nothing
  // is being answered while models load, and that may take minutes.
  Signals() : signals_(context_, SIGHUP) {}
  // Until SIGINT or SIGTERM, a second of which ends the process at once. SIGHUP calls reload.
  void wait(const std::function<void()>& reload) {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    wait_for_next(reload);
    context_.run();
    signals_.remove(SIGINT);  // the system's default from here on
    signals_.remove(SIGTERM);
  }

 private:
  void wait_for_next(const std::function<void()>& reload) {
    signals_.async_wait([this, &reload](const boost::system::error_code& error, int signal) {
      if (error || signal != SIGHUP) return;
      reload();
      wait_for_next(reload);
    });
  }

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

// A relay outlives the connection that it answered by moments; it must not outlive the cores.
void wait_for_relays(const Gateway& gateway) {
  constexpr auto kPatience = std::chrono::seconds(2);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (gateway.relays.load() > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// On SIGHUP. Whatever is wrong with the new file, the running configuration stays.
void reload(Gateway& gateway, Server& server, const ServeArguments& arguments) {
  if (auto done = server.reload_certificate(); !done) {
    log_error("reload: " + done.error().message + "; the running certificate stays");
  }
  auto fresh = load_config(arguments.file, arguments.options);
  if (!fresh) {
    for (const auto& error : fresh.error()) log_error("reload: " + error.text());
    log_error("reload: the running configuration stays");
    return;
  }
  // Both compare with the start: the settings hold what the last file said, in force or not.
  const auto unloaded = unloaded_models(arguments.config, *fresh);
  for (const auto& problem : unloaded) log_error("reload: " + problem);
  if (!unloaded.empty()) {
    log_error("reload: the running configuration stays");
    return;
  }
  for (const auto& problem : reload_problems(arguments.config, *fresh)) {
    log_warning("reload: " + problem);
  }
  const auto& log = fresh->access_log;
  const auto level = log.level;
  const auto format = log.format;
  hide_in_log(fresh->secrets());
  if (auto done = gateway.reload(std::move(*fresh)); !done) {
    log_error("reload: " + done.error().message + "; the running configuration stays");
    return;
  }
  set_log(level, format);
  log_info("reload: the new configuration is in force");
}

}  // namespace

int serve(const ServeArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  // A file that would outgrow `ulimit -f`: the write fails instead, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  Signals signals;
  const Config& config = arguments.config;
  init_log(config.access_log.level, config.secrets(), config.access_log.format);

  Cores cores(config.server.threads);
  Gateway gateway(config, cores);
  if (!open_stores(gateway, arguments)) return kExitFailed;
  if (!config.telemetry.otlp_endpoint.empty()) {
    gateway.spans = std::make_unique<SpanExporter>(config.telemetry);
  }

  const auto address = address_for(gateway, config.server);
  gateway.loopback = address.loopback;
  ServerOptions options = server_options(config.server, address);
  options.refusal = make_refusal(gateway);
  options.head_check = make_head_check(gateway);
  options.max_connections = raise_descriptor_limit(options.max_connections);
  Server server(cores, options, make_handler(gateway));
  const AdminFile admin(config.data_dir, address.address, server.port(),
                        !config.server.tls_cert_file.empty());
  gateway.admin_token = admin.token();
  cores.start();
  server.start();
  log_info("listening on " + address.address + " (port " + std::to_string(server.port()) + ")");

  int exit_code = kExitOk;
  if (load_engines(gateway)) {
    gateway.ready.store(true, std::memory_order_release);
    log_info("ready");
    signals.wait([&] { reload(gateway, server, arguments); });
    log_info("stopping: no new requests, those in flight end");
  } else {
    exit_code = kExitFailed;
  }
  server.drain(gateway.settings()->config.server.drain_timeout);
  wait_for_relays(gateway);
  gateway.engines.clear();  // its callbacks post to the cores: first the engines, then the cores
  gateway.background.join();
  cores.stop();
  return exit_code;
}

}  // namespace fixpoint
