// Names to addresses, cached, without blocking a core.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gateway/http/asio.hpp"

namespace fixpoint {

// One name on one core. A look-up runs in Asio's helper thread and cannot be interrupted; callers
// wait beside it, so their own deadline and cancellation hold, and callers at the same time share
// it.
class Resolver {
 public:
  Resolver(net::io_context& context, std::string host, std::uint16_t port);

  // Errors: unreachable, timeout. Answers are kept for a minute (getaddrinfo tells no TTL); after
  // a failed look-up an older answer is used, if there is one.
  Task<Result<std::vector<tcp::endpoint>>> resolve(Clock::time_point deadline);
  void forget();  // the addresses did not work: look up again next time

 private:
  struct State;
  static void look_up(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace fixpoint
