#include "cache/redis/tls.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>

namespace fixpoint::redis {

Result<std::shared_ptr<net::ssl::context>> make_tls_context(const std::string& ca_file) {
  auto context = std::make_shared<net::ssl::context>(net::ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code ec;
  if (ca_file.empty()) {
    context->set_default_verify_paths(ec);
  } else {
    context->load_verify_file(ca_file, ec);
  }
  if (ec) {
    return fail(ErrorCode::invalid,
                "redis CA file \"" + ca_file + "\" cannot be used: " + ec.message());
  }
  context->set_verify_mode(net::ssl::verify_peer);
  return context;
}

Result<void> expect_host(TlsStream& stream, const std::string& host) {
  SSL* ssl = stream.native_handle();
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  error_code ec;
  net::ip::make_address(host, ec);
  // RFC 6066: the server name is never an address.
  const bool ok = !ec ? X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1
                      : SSL_set_tlsext_host_name(ssl, host.c_str()) == 1 &&
                            SSL_set1_host(ssl, host.c_str()) == 1;
  if (!ok) return fail(ErrorCode::unreachable, "host \"" + host + "\" cannot be verified by TLS");
  return {};
}

std::string handshake_failure(TlsStream& stream, const error_code& ec) {
  const long verified = SSL_get_verify_result(stream.native_handle());
  return verified != X509_V_OK ? X509_verify_cert_error_string(verified) : ec.message();
}

}  // namespace fixpoint::redis
