#include "gateway/http/server.hpp"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>

#include "gateway/http/connection.hpp"
#include "gateway/http/server_tls.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

// How long accept rests when the process has no file descriptor or memory left, or when
// max_connections is reached: those waiting stay in the kernel's queue.
constexpr milliseconds kAcceptPause{50};
constexpr int kBacklog = 4096;  // cut by the system to net.core.somaxconn
// Time for handlers that heard that their connection will be cut.
constexpr milliseconds kLastWords{500};
// A connection that was cut ends within a turn of its core's loop; more means a handler that
// blocks.
constexpr milliseconds kCutGrace{2000};

// Out of memory, or a bug. A gateway that accepts nobody any more would only look alive.
void end_of_process(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
  Impl(Cores& all, ServerOptions o)
      : cores(all), options(std::move(o)), acceptor(all.context(0).get_executor()) {
    if (!options.tls_cert_file.empty() || !options.tls_key_file.empty()) {
      tls.emplace(options.tls_cert_file, options.tls_key_file);
    }
  }

  void bind();
  Task<void> accept_loop();
  Task<void> accept_pause();
  void hand_over(std::size_t core, Socket socket);
  bool wait_for_none(milliseconds time) const;
  // On every core that has a running loop, for each of its connections.
  template <class F>
  void on_each_connection(F f) {
    for (auto& core : per_core) {
      net::post(core->context, [core, f] {
        const std::vector<Connection*> all(core->connections.begin(), core->connections.end());
        for (Connection* connection : all) f(*connection);
      });
    }
  }

  Cores& cores;
  const ServerOptions options;
  Acceptor acceptor;  // used on core 0
  std::uint16_t port = 0;
  std::optional<ServerTls> tls;
  const std::shared_ptr<std::atomic<std::size_t>> connections =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<bool> stopping{false};
  std::atomic<bool> started{false};
  std::vector<std::shared_ptr<ServerCore>> per_core;
};

void Server::Impl::bind() {
  try {
    const tcp::endpoint endpoint(net::ip::make_address(options.address), options.port);
    acceptor.open(endpoint.protocol());
    acceptor.set_option(Acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen(kBacklog);
    port = acceptor.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw std::system_error(error.code(), "cannot listen on " + options.address + " port " +
                                              std::to_string(options.port));
  }
}

Task<void> Server::Impl::accept_loop() {
  const auto self = shared_from_this();
  std::size_t next = 0;
  while (!stopping) {
    if (connections->load() >= options.max_connections) {
      co_await accept_pause();
      continue;
    }
    net::io_context& target = cores.context(next);
    error_code ec;
    const Executor executor = target.get_executor();
    Socket socket = co_await acceptor.async_accept(executor, net::redirect_error(use_task, ec));
    if (stopping) break;
    if (!ec) {
      hand_over(next, std::move(socket));
      next = (next + 1) % cores.size();
    } else if (ec != net::error::connection_aborted) {
      // Out of descriptors or memory, mostly; at once again would only spin.
      co_await accept_pause();
    }
  }
  error_code ec;
  acceptor.close(ec);
}

Task<void> Server::Impl::accept_pause() {
  Timer timer(acceptor.get_executor());
  timer.expires_after(kAcceptPause);
  error_code ec;
  co_await timer.async_wait(net::redirect_error(use_task, ec));
}

void Server::Impl::hand_over(std::size_t core, Socket socket) {
  connections->fetch_add(1);
  std::shared_ptr<ServerCore> target = per_core[core];
  std::shared_ptr<net::ssl::context> context;
  if (tls) context = tls->context();
  net::post(target->context, [target, context, socket = std::move(socket)]() mutable {
    auto connection = std::make_shared<Connection>(target, std::move(socket), std::move(context));
    connection->start();
    if (target->draining) connection->close_when_idle();
  });
}

bool Server::Impl::wait_for_none(milliseconds time) const {
  const Clock::time_point end = Clock::now() + time;
  while (connections->load() != 0) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

Server::Server(Cores& cores, ServerOptions options, Handler handler)
    : impl_(std::make_shared<Impl>(cores, std::move(options))) {
  impl_->bind();
  for (std::size_t i = 0; i < cores.size(); ++i) {
    impl_->per_core.push_back(std::make_shared<ServerCore>(cores.context(i), impl_->options,
                                                           handler, impl_->connections));
  }
}

Server::~Server() {
  drain(milliseconds(0));
}

std::uint16_t Server::port() const {
  return impl_->port;
}

void Server::start() {
  if (impl_->started.exchange(true)) return;
  net::co_spawn(impl_->cores.context(0).get_executor(), impl_->accept_loop(), end_of_process);
}

void Server::drain(milliseconds deadline) {
  if (!impl_->started || impl_->cores.context(0).stopped()) return;
  if (!impl_->stopping.exchange(true)) {
    net::post(impl_->cores.context(0), [impl = impl_] {
      error_code ec;
      impl->acceptor.close(ec);
    });
  }
  for (auto& core : impl_->per_core) net::post(core->context, [core] { core->draining = true; });
  impl_->on_each_connection([](Connection& connection) { connection.close_when_idle(); });
  if (impl_->wait_for_none(deadline)) return;
  impl_->on_each_connection([](Connection& connection) { connection.announce_cut(); });
  if (impl_->wait_for_none(kLastWords)) return;
  impl_->on_each_connection([](Connection& connection) { connection.cut(); });
  impl_->wait_for_none(kCutGrace);
}

std::size_t Server::connections() const {
  return impl_->connections->load();
}

Result<void> Server::reload_certificate() {
  if (!impl_->tls) return {};
  return impl_->tls->reload();
}

}  // namespace fixpoint
