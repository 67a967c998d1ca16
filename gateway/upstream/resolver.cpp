#include "gateway/upstream/resolver.hpp"

#include <boost/asio/ip/basic_resolver.hpp>

namespace fixpoint {
namespace {

constexpr std::chrono::seconds kTimeToLive{60};
// With an older answer at hand, a failed look-up is not repeated for so long.
constexpr std::chrono::seconds kPause{5};

}  // namespace

struct Resolver::State {
  State(net::io_context& context, std::string h, std::uint16_t p)
      : resolver(context.get_executor()),
        done(context.get_executor()),
        host(std::move(h)),
        port(p) {}

  net::ip::basic_resolver<tcp, Executor> resolver;
  Timer done;  // never fires by itself: cancelled when the look-up ends
  const std::string host;
  const std::uint16_t port;
  std::vector<tcp::endpoint> endpoints;
  Clock::time_point good_until{};  // no look-up before; after a failure, too
  std::string failure;
  bool running = false;
};

Resolver::Resolver(net::io_context& context, std::string host, std::uint16_t port)
    : state_(std::make_shared<State>(context, std::move(host), port)) {
  error_code ec;
  const auto address = net::ip::make_address(state_->host, ec);
  if (ec) return;
  state_->endpoints = {tcp::endpoint(address, port)};
  state_->good_until = Clock::time_point::max();
}

void Resolver::forget() {
  const bool is_address = state_->good_until == Clock::time_point::max();
  if (is_address || state_->running || !state_->failure.empty()) return;
  state_->good_until = Clock::time_point{};
  look_up(state_);
}

void Resolver::look_up(const std::shared_ptr<State>& state) {
  state->running = true;
  state->failure.clear();
  state->done.expires_at(Clock::time_point::max());
  const auto flags = net::ip::resolver_base::numeric_service;
  state->resolver.async_resolve(state->host, std::to_string(state->port), flags,
                                [state](error_code ec, auto results) {
                                  state->running = false;
                                  if (ec) {
                                    state->failure = ec.message();
                                    if (!state->endpoints.empty())
                                      state->good_until = Clock::now() + kPause;
                                  } else {
                                    state->endpoints.clear();
                                    for (const auto& entry : results)
                                      state->endpoints.push_back(entry.endpoint());
                                    state->good_until = Clock::now() + kTimeToLive;
                                  }
                                  state->done.cancel();
                                });
}

Task<Result<std::vector<tcp::endpoint>>> Resolver::resolve(Clock::time_point deadline) {
  const std::shared_ptr<State> state = state_;
  if (!state->running && Clock::now() >= state->good_until) look_up(state);
  if (!state->endpoints.empty()) co_return state->endpoints;
  Timer timeout(state->resolver.get_executor());
  timeout.expires_at(deadline);
  // Shared: the handler may already be queued when a cancellation destroys this frame.
  const auto late = std::make_shared<bool>(false);
  timeout.async_wait([state, late](error_code ec) {
    if (ec) return;
    *late = true;
    state->done.cancel();
  });
  while (state->running && !*late) {
    error_code ec;
    co_await state->done.async_wait(net::redirect_error(use_task, ec));
  }
  if (state->running) {
    co_return fail(ErrorCode::timeout, "host \"" + state->host + "\" was not resolved in time");
  }
  if (state->endpoints.empty()) {
    co_return fail(ErrorCode::unreachable,
                   "host \"" + state->host + "\" cannot be resolved: " + state->failure);
  }
  co_return state->endpoints;
}

}  // namespace fixpoint
