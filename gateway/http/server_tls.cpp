#include "gateway/http/server_tls.hpp"

#include <openssl/ssl.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace fixpoint {
namespace {

constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

// RFC 7301, 3.2: a client that offers protocols, but not ours, is refused.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  unsigned char* out = nullptr;
  const int found =
      SSL_select_next_proto(&out, size, kHttp11.data(), kHttp11.size(), offered, offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = out;
  return SSL_TLSEXT_ERR_OK;
}

// An encrypted key would make OpenSSL ask for its password on the terminal.
int no_password(char*, int, int, void*) {
  return -1;
}

}  // namespace

ServerTls::ServerTls(std::string cert_file, std::string key_file)
    : cert_file_(std::move(cert_file)), key_file_(std::move(key_file)) {
  const Result<void> loaded = reload();
  if (!loaded) throw std::runtime_error(loaded.error().message);
}

std::shared_ptr<net::ssl::context> ServerTls::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

Result<void> ServerTls::reload() {
  Result<ContextPtr> loaded = load();
  if (!loaded) return tl::make_unexpected(loaded.error());
  const std::lock_guard lock(mutex_);
  context_ = std::move(*loaded);
  return {};
}

Result<ServerTls::ContextPtr> ServerTls::load() const {
  auto context = std::make_shared<net::ssl::context>(net::ssl::context::tls_server);
  SSL_CTX* raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Clients resume by tickets; a cache of sessions here would only hold memory.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  // Idle connections hold no buffers.
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  SSL_CTX_set_default_passwd_cb(raw, no_password);
  error_code ec;
  context->use_certificate_chain_file(cert_file_, ec);
  if (ec) {
    return fail(ErrorCode::invalid,
                "tls_cert_file \"" + cert_file_ + "\" cannot be used: " + ec.message());
  }
  context->use_private_key_file(key_file_, net::ssl::context::pem, ec);
  if (ec) {
    return fail(ErrorCode::invalid, "tls_key_file \"" + key_file_ +
                                        "\" cannot be used with tls_cert_file: " + ec.message());
  }
  return context;
}

}  // namespace fixpoint
