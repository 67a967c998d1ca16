// HTTP/1.1 client of one upstream on one core: pooled keep-alive connections, TLS with resumption.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/http/types.hpp"

namespace fixpoint {

struct Url {
  std::string scheme;  // http or https
  std::string host;    // without brackets
  std::uint16_t port = 0;
  std::string path;               // without a trailing slash; may be empty
  std::string authority() const;  // "host:port", without the scheme's own port; as Host fields have
};
// "host:port", brackets around IPv6; without the port when it is `standard` (0: always with).
std::string host_and_port(const std::string& host, std::uint16_t port, std::uint16_t standard);
// Errors: invalid (other schemes, user info, query, fragment).
Result<Url> parse_url(std::string_view text);

// A forward proxy. Towards an https upstream it is asked for a tunnel (CONNECT), towards an http
// one it gets the request in absolute form.
struct Proxy {
  std::string host;  // without brackets
  std::uint16_t port = 0;
  std::string authorization;  // secret; value of Proxy-Authorization, empty: none
};
// "http://[user:password@]host[:port]", user and password percent-encoded where they must be.
// Errors: invalid; the message never has the user info.
Result<Proxy> parse_proxy(std::string_view text);

struct UpstreamOptions {
  std::string base_url;
  std::string proxy;    // secret when it has user info; empty: none. See parse_proxy()
  std::string ca_file;  // empty: the system's
  bool verify_tls = true;
  std::size_t max_idle_connections = 64;  // per core
  // Per core; beyond: overloaded. A guard for the process's descriptors, without a queue: callers
  // that should wait do so before, in Admission, which counts over all cores.
  std::size_t max_connections = 512;
  std::chrono::milliseconds idle_ttl{30000};
  // Resolve + connect (+ the proxy's tunnel) + TLS handshake.
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds first_byte_timeout{300000};
  std::chrono::milliseconds between_bytes_timeout{120000};
  // A connection that the peer closed while it was idle, just as a request was sent: that is known
  // after a round trip. A close that comes later may be of a peer that has begun to work on it.
  std::chrono::milliseconds stale_close{500};
  std::chrono::milliseconds total_timeout{0};  // of a request without a deadline; 0: none
  std::size_t max_response_bytes = 64u << 20;
};

struct UpstreamRequest {
  std::string method = "POST";
  std::string path;  // appended to the base URL's path
  Headers headers;   // end-to-end fields; Host, framing and hop-by-hop ones are the client's own
  std::shared_ptr<const std::string> body;
  // The whole call, including the response's body, ends by then. Unset: after total_timeout, from
  // send(). Set it to let several attempts share one limit.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // The caller's, if it is set: becomes true when the upstream has been sent all of the request,
  // also where send() then ends with an error or is cancelled.
  bool* written = nullptr;
  // The caller's, if it is set: becomes true when the request was sent a second time.
  bool* sent_again = nullptr;
};

// A response whose head has arrived. The connection returns to the pool when the body was read to
// its end; destroying it earlier closes the connection.
class UpstreamResponse {
 public:
  virtual ~UpstreamResponse() = default;
  virtual int status() const = 0;
  virtual const Headers& headers() const = 0;  // hop-by-hop fields removed
  // The next bytes of the body, never empty before the end; empty: the body is complete. The view
  // is valid until the next call. Errors: timeout, protocol or closed (cut before its end), invalid
  // (too large).
  virtual Task<Result<std::string_view>> read_some() = 0;
};

// Per core: not thread-safe, used on its io_context only, and destroyed before it. While idle
// connections wait (at most idle_ttl) the context's run() does not return; destroying the client
// closes them. A response may outlive its client.
class UpstreamClient {
 public:
  // Throws std::runtime_error for a bad base_url or CA file (start-up). The TLS context is made
  // once per policy and shared: see TlsPolicy in tls.hpp.
  UpstreamClient(net::io_context& context, UpstreamOptions options);
  ~UpstreamClient();

  // Sends the request, which must live until then, and reads the response's head. Sends it once
  // more, on a fresh connection, only when a reused one was closed before any response byte and
  // within stale_close. Cancellation
  // closes the connection. Errors: unreachable, timeout, protocol, closed, overloaded.
  Task<Result<std::unique_ptr<UpstreamResponse>>> send(const UpstreamRequest& request);
  // Reads the whole body. Errors as read_some().
  static Task<Result<std::string>> read_all(UpstreamResponse& response);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fixpoint
