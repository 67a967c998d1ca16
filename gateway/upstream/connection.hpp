// One connection to an upstream, plain or TLS.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http/asio.hpp"
#include "gateway/http/deadline.hpp"
#include "gateway/upstream/tls.hpp"

namespace fixpoint {

// Used by one coroutine at a time, on its core. After an error it can only be destroyed.
class UpstreamConnection {
 public:
  // `tls` null: plain. `host` is verified; `peer` ("host:port") names it in messages.
  UpstreamConnection(net::io_context& context, std::shared_ptr<TlsPolicy> tls, std::string host,
                     std::string peer);
  ~UpstreamConnection();
  UpstreamConnection(const UpstreamConnection&) = delete;
  UpstreamConnection& operator=(const UpstreamConnection&) = delete;

  // Tries the addresses in order; each gets an equal share of the time that is left. Errors:
  // unreachable, timeout.
  Task<Result<void>> connect(const std::vector<tcp::endpoint>& endpoints,
                             Clock::time_point deadline);
  // The timeout starts again with each piece that the peer takes. Errors: timeout, closed.
  Task<Result<void>> write(std::string_view head, std::string_view body,
                           std::chrono::milliseconds timeout);
  // Appends to unread(). False: the peer closed its side properly (for TLS: said so). Errors:
  // timeout, closed.
  Task<Result<bool>> read(std::chrono::milliseconds timeout);

  std::string_view unread() const;
  void consume(std::size_t bytes) { in_.consume(bytes); }
  // Whether an idle connection can be used again. Looks without waiting.
  bool is_alive();
  // Frees what an idle connection does not need.
  void rest();
  bool resumed() const;  // the TLS session was resumed

 private:
  Task<Result<void>> handshake(Clock::time_point deadline);
  tl::unexpected<Error> failure(const char* what, const error_code& ec) const;
  void arm(std::chrono::milliseconds timeout);

  std::shared_ptr<TlsPolicy> policy_;
  const std::string host_;
  const std::string peer_;
  Socket socket_;
  std::optional<TlsStream> tls_;
  Deadline deadline_;
  bool timed_out_ = false;
  boost::beast::flat_buffer in_;
};

}  // namespace fixpoint
