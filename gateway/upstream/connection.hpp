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

// Where connections of one upstream lead.
struct UpstreamTarget {
  std::string host;         // verified by TLS
  std::string peer;         // "host:port" of the upstream: names TLS sessions
  std::string via;          // "host:port" of a proxy, which is connected to instead; or empty
  std::string tunnel_head;  // secret; asks the proxy for a tunnel; empty: none is needed
  std::shared_ptr<TlsPolicy> tls;  // null: plain

  std::string name() const;  // for messages: the peer and the proxy
};

// Used by one coroutine at a time, on its core. After an error it can only be destroyed; after one
// of write() the peer's answer can still be read.
class UpstreamConnection {
 public:
  // `target` must outlive the connection.
  UpstreamConnection(net::io_context& context, const UpstreamTarget& target);
  ~UpstreamConnection();
  UpstreamConnection(const UpstreamConnection&) = delete;
  UpstreamConnection& operator=(const UpstreamConnection&) = delete;

  // Tries the addresses (of the proxy, where there is one) in order; each gets an equal share of
  // the time that is left. Then the tunnel, then TLS. Errors: unreachable, timeout, closed,
  // protocol.
  Task<Result<void>> connect(const std::vector<tcp::endpoint>& endpoints,
                             Clock::time_point deadline);
  // The timeout starts again with each piece that the peer takes; all of it goes out by `end`. A
  // peer that takes nothing and has spoken already is not waited for. Errors: timeout, closed.
  Task<Result<void>> write(std::string_view head, std::string_view body,
                           std::chrono::milliseconds timeout, Clock::time_point end);
  // Appends to unread(). False: the peer closed its side properly (for TLS: said so). Errors:
  // timeout, closed.
  Task<Result<bool>> read(std::chrono::milliseconds timeout);

  std::string_view unread() const;
  void consume(std::size_t bytes) { in_.consume(bytes); }
  // Whether an idle connection can be used again. Looks without waiting.
  bool is_alive();
  // Frees what an idle connection does not need.
  void rest();

 private:
  Task<Result<void>> open_tunnel(Clock::time_point deadline);
  Task<Result<void>> handshake(Clock::time_point deadline);
  tl::unexpected<Error> failure(const char* what, const error_code& ec) const;
  void arm(std::chrono::milliseconds timeout);
  void on_deadline();
  bool has_spoken();

  const UpstreamTarget& target_;
  Socket socket_;
  std::optional<TlsStream> tls_;
  Deadline deadline_;
  bool timed_out_ = false;                      // counts even when the operation ended just then
  std::optional<Clock::time_point> write_end_;  // of the piece being written
  bool answered_ = false;                       // while it had not taken the request
  boost::beast::flat_buffer in_;
};

}  // namespace fixpoint
