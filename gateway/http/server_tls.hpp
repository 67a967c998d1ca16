// The server's certificate.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <mutex>
#include <string>

#include "gateway/http/asio.hpp"

namespace fixpoint {

// TLS 1.2 and 1.3, ALPN http/1.1. Thread-safe.
class ServerTls {
 public:
  // Throws std::runtime_error when the files cannot be used (start-up).
  ServerTls(std::string cert_file, std::string key_file);

  // For one new connection, which keeps the certificate that it began with.
  std::shared_ptr<net::ssl::context> context() const;
  // Errors: invalid; the certificate in use stays.
  Result<void> reload();

 private:
  using ContextPtr = std::shared_ptr<net::ssl::context>;
  Result<ContextPtr> load() const;

  const std::string cert_file_;
  const std::string key_file_;
  mutable std::mutex mutex_;
  ContextPtr context_;
};

}  // namespace fixpoint
