#include "gateway/upstream/tls.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "cache/base/digest.hpp"

namespace fixpoint {
namespace {

// A TLS 1.3 ticket serves one connection, so a few are kept per peer: servers send two each time.
constexpr std::size_t kSessionsPerPeer = 8;
// Peers come from the configuration; the bound only keeps a bug from growing the map.
constexpr std::size_t kPeers = 256;

// Slots on OpenSSL's objects that lead its callback back to us.
int policy_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}
int peer_slot() {
  static const int slot = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

}  // namespace

std::string ca_digest(const std::string& ca_file) {
  std::ifstream in(ca_file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return text.empty() ? std::string() : sha256_hex(text);
}

std::shared_ptr<TlsPolicy> TlsPolicy::get(const std::string& ca_file, bool verify) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, bool>, std::weak_ptr<TlsPolicy>> policies;
  const std::lock_guard lock(mutex);
  std::erase_if(policies, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<TlsPolicy>& known = policies[{ca_file, ca_digest(ca_file), verify}];
  std::shared_ptr<TlsPolicy> policy = known.lock();
  if (!policy) known = policy = std::make_shared<TlsPolicy>(ca_file, verify);
  return policy;
}

TlsPolicy::TlsPolicy(const std::string& ca_file, bool verify)
    : context_(net::ssl::context::tls_client), verify_(verify) {
  SSL_CTX* raw = context_.native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  if (verify) {
    error_code ec;
    if (ca_file.empty()) {
      context_.set_default_verify_paths(ec);
    } else {
      context_.load_verify_file(ca_file, ec);
    }
    if (ec) throw std::runtime_error("ca_file \"" + ca_file + "\" cannot be used: " + ec.message());
    context_.set_verify_mode(net::ssl::verify_peer);
  } else {
    context_.set_verify_mode(net::ssl::verify_none);
  }
  static constexpr std::array<unsigned char, 9> kHttp11 = {8,   'h', 't', 't', 'p',
                                                           '/', '1', '.', '1'};
  SSL_CTX_set_alpn_protos(raw, kHttp11.data(), kHttp11.size());
  SSL_CTX_set_ex_data(raw, policy_slot(), this);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(raw, &TlsPolicy::on_new_session);
}

Result<void> TlsPolicy::prepare(TlsStream& stream, const std::string& host,
                                const std::string& peer) {
  SSL* ssl = stream.native_handle();
  SSL_set_ex_data(ssl, peer_slot(), const_cast<std::string*>(&peer));
  error_code ec;
  net::ip::make_address(host, ec);
  const bool is_address = !ec;
  // RFC 6066: the server name is never an address.
  bool ok = is_address || SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  if (verify_) {
    X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    ok = ok && (is_address ? X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str()) == 1
                           : SSL_set1_host(ssl, host.c_str()) == 1);
  }
  if (!ok) return fail(ErrorCode::unreachable, "host \"" + host + "\" cannot be verified by TLS");
  if (const Session session = take(peer)) SSL_set_session(ssl, session.get());
  return {};
}

void TlsPolicy::mark_closed(TlsStream& stream) {
  SSL_set_shutdown(stream.native_handle(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

// Called by OpenSSL while a stream reads; with TLS 1.3 after the handshake, once per ticket.
int TlsPolicy::on_new_session(SSL* ssl, SSL_SESSION* session) {
  auto* policy = static_cast<TlsPolicy*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), policy_slot()));
  const auto* peer = static_cast<const std::string*>(SSL_get_ex_data(ssl, peer_slot()));
  if (policy == nullptr || peer == nullptr) return 0;
  policy->store(*peer, Session(session));
  return 1;  // the reference is ours
}

void TlsPolicy::store(const std::string& peer, Session session) {
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= kPeers && !sessions_.contains(peer)) return;
  std::vector<Session>& list = sessions_[peer];
  if (list.size() >= kSessionsPerPeer) list.erase(list.begin());
  list.push_back(std::move(session));
}

TlsPolicy::Session TlsPolicy::take(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(peer);
  if (found == sessions_.end() || found->second.empty()) return nullptr;
  std::vector<Session>& list = found->second;
  if (SSL_SESSION_get_protocol_version(list.back().get()) < TLS1_3_VERSION) {
    // TLS 1.2 sessions may serve many connections.
    SSL_SESSION_up_ref(list.back().get());
    return Session(list.back().get());
  }
  Session newest = std::move(list.back());
  list.pop_back();
  return newest;
}

}  // namespace fixpoint
