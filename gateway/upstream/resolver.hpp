// Names to addresses, cached, without blocking a core.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gateway/http/asio.hpp"

namespace fixpoint {

// One name on one core. A look-up runs in Asio's helper thread and cannot be interrupted. Only
// callers that have no older answer wait, beside it, so that their own deadline and cancellation
// hold; they share it. A look-up that hangs or fails takes no known address away.
class Resolver {
 public:
  Resolver(net::io_context& context, std::string host, std::uint16_t port);

  // Errors: unreachable, timeout. Answers are kept for a minute (getaddrinfo tells no TTL); then
  // the next call still gets the old one, and starts a look-up for those after it.
  Task<Result<std::vector<tcp::endpoint>>> resolve(Clock::time_point deadline);
  void forget();  // the addresses did not work: looks up again

 private:
  struct State;
  static void look_up(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace fixpoint
