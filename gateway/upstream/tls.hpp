// TLS towards upstreams: one context per policy for the whole process, and session resumption.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/http/asio.hpp"

namespace fixpoint {

using TlsStream = net::ssl::stream<Socket&>;

// Of what a CA file holds now, to see at a reload that it is another; empty: it cannot be read.
std::string ca_digest(const std::string& ca_file);

// Which peers are trusted. Loading the CA bundle takes 20 to 30 ms, so a policy is made once and
// shared by every core and upstream that has the same settings. Thread-safe.
class TlsPolicy {
 public:
  // The policy of these settings and what the file holds now; made when nobody holds it. Throws
  // std::runtime_error when the CA file cannot be used. An empty `ca_file` means the system's
  // certificates.
  static std::shared_ptr<TlsPolicy> get(const std::string& ca_file, bool verify);

  TlsPolicy(const std::string& ca_file, bool verify);
  TlsPolicy(const TlsPolicy&) = delete;
  TlsPolicy& operator=(const TlsPolicy&) = delete;

  net::ssl::context& context() { return context_; }
  // Before the handshake: server name, verification of the host's name, a session to resume. `peer`
  // ("host:port") must live as long as the stream. Errors: unreachable.
  Result<void> prepare(TlsStream& stream, const std::string& host, const std::string& peer);
  // Before a stream is destroyed: without it OpenSSL takes the session for broken and a server
  // would never see it again.
  static void mark_closed(TlsStream& stream);

 private:
  struct SessionFree {
    void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  };
  using Session = std::unique_ptr<SSL_SESSION, SessionFree>;

  static int on_new_session(SSL* ssl, SSL_SESSION* session);
  void store(const std::string& peer, Session session);
  Session take(const std::string& peer);

  net::ssl::context context_;
  const bool verify_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Session>> sessions_;  // newest last
};

}  // namespace fixpoint
