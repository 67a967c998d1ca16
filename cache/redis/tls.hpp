// TLS towards Redis servers.
#pragma once

#include <memory>
#include <string>

#include "cache/base/result.hpp"
#include "cache/redis/asio.hpp"

namespace fixpoint::redis {

// A context that trusts the certificates in `ca_file`; empty: the system's. TLS 1.2 and later.
// Errors: invalid (the file cannot be used).
Result<std::shared_ptr<net::ssl::context>> make_tls_context(const std::string& ca_file);

// Before the handshake: the server name, and that the certificate must be valid for `host`.
// Errors: unreachable.
Result<void> expect_host(TlsStream& stream, const std::string& host);

// After a failed handshake: what was wrong with the certificate, otherwise `ec`.
std::string handshake_failure(TlsStream& stream, const error_code& ec);

}  // namespace fixpoint::redis
