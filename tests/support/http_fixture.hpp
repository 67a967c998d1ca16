// A running server and a way to run coroutines, for tests of the HTTP rooms.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "gateway/http/asio.hpp"
#include "gateway/http/server.hpp"

namespace fixpoint::test {

// A server on a free port with its own cores.
class TestServer {
 public:
  explicit TestServer(Handler handler, ServerOptions options = {}, std::size_t cores = 1)
      : cores_(cores), server_(cores_, std::move(options), std::move(handler)) {
    cores_.start();
    server_.start();
  }
  ~TestServer() {
    server_.drain(std::chrono::milliseconds(0));
    cores_.stop();
  }
  std::uint16_t port() const { return server_.port(); }
  Server& server() { return server_; }
  Cores& cores() { return cores_; }

 private:
  Cores cores_;
  Server server_;
};

// Runs one coroutine to its end on a context of the caller's; exceptions come out.
template <class T>
T run(net::io_context& context, Task<T> task) {
  std::exception_ptr failure;
  std::optional<T> value;
  net::co_spawn(context.get_executor(), std::move(task), [&](std::exception_ptr e, T result) {
    failure = e;
    value.emplace(std::move(result));
    context.stop();
  });
  context.restart();
  context.run();
  if (failure) std::rethrow_exception(failure);
  return std::move(*value);
}

// While it lives, a context that another thread runs does nothing: what happens meanwhile is met
// all at once.
class Blocked {
 public:
  explicit Blocked(net::io_context& context) {
    const auto block = [state = state_] {
      state->begun.set_value();
      state->over.get_future().wait();
    };
    // Behind what is due already.
    net::post(context, [&context, block] { net::post(context, block); });
    state_->begun.get_future().wait();
  }
  ~Blocked() { state_->over.set_value(); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  struct State {
    std::promise<void> begun, over;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Waits without spinning until the condition holds; false after `limit`.
template <class F>
bool eventually(F condition, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace fixpoint::test
