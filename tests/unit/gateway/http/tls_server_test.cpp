// The server over TLS: certificates, ends of connections, clients that do not speak it.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "gateway/http/server_tls.hpp"
#include "tests/support/certificate.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/gateway/http/server_fixture.hpp"

namespace fixpoint {
namespace {

using test::CertificateFiles;

struct ClientOptions {
  std::string trusted;  // certificate file; the name must be "localhost"
  int newest = TLS1_3_VERSION;
  std::string protocols;  // ALPN in wire form; empty: none
  SSL_SESSION* resume = nullptr;
};

// A blocking TLS client on 127.0.0.1 that sees how the connection ends.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const ClientOptions& options) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_, options.newest);
    SSL_CTX_load_verify_locations(context_, options.trusted.c_str(), nullptr);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    ssl_ = SSL_new(context_);
    SSL_set1_host(ssl_, "localhost");
    if (!options.protocols.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
    }
    if (options.resume != nullptr) SSL_set_session(ssl_, options.resume);
    raw_ = std::make_unique<RawClient>(port);
    SSL_set_fd(ssl_, raw_->descriptor());
    const timeval limit{10, 0};
    ::setsockopt(raw_->descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool connected() const { return connected_; }
  SSL* ssl() { return ssl_; }
  RawClient& raw() { return *raw_; }
  bool send(std::string_view bytes) {
    return SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  // Until `end` was read, or the connection ended.
  std::string read_until(std::string_view end) {
    std::string text;
    while (text.find(end) == std::string::npos && read(text)) {
    }
    return text;
  }
  std::string read_all() {
    std::string text;
    while (read(text)) {
    }
    return text;
  }
  // After read_all(): close_notify came before the end.
  bool ended_properly() { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }
  std::string certificate_of_server() {
    X509* certificate = SSL_get1_peer_certificate(ssl_);
    const std::string number =
        certificate == nullptr
            ? ""
            : std::to_string(ASN1_INTEGER_get(X509_get0_serialNumber(certificate)));
    X509_free(certificate);
    return number;
  }

 private:
  bool read(std::string& text) {
    std::array<char, 16384> bytes;
    const int n = SSL_read(ssl_, bytes.data(), bytes.size());
    if (n > 0) text.append(bytes.data(), static_cast<std::size_t>(n));
    return n > 0;
  }

  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  std::unique_ptr<RawClient> raw_;
  bool connected_ = false;
};

class TlsServerTest : public ServerTest {
 protected:
  test::TempDir folder_;
  CertificateFiles files_ = make("server");
  ServerOptions options_;

  // OpenSSL writes to a socket that may be closed.
  TlsServerTest() { std::signal(SIGPIPE, SIG_IGN); }

  CertificateFiles make(const std::string& name) {
    return test::make_certificate(folder_.path().string(), name, "localhost");
  }
  void start_tls() {
    options_.tls_cert_file = files_.certificate;
    options_.tls_key_file = files_.key;
    start(options_);
  }
  ClientOptions trusting() {
    ClientOptions options;
    options.trusted = files_.certificate;
    return options;
  }
};

TEST_F(TlsServerTest, RequestsOnOneConnection) {
  start_tls();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ClientOptions options = trusting();
    options.newest = version;
    TlsClient client(port(), options);
    ASSERT_TRUE(client.connected());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(client.send(get("/x" + std::to_string(i))));
      const std::string text = client.read_until("GET /x" + std::to_string(i));
      EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
    }
    ASSERT_TRUE(client.send(get("/stream-20")));
    EXPECT_TRUE(client.read_until("0\r\n\r\n").find("data: 19\n\n") != std::string::npos);
    const std::string body(100'000, 'b');
    ASSERT_TRUE(client.send("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + body +
                            get("/pipelined", "Connection: close\r\n")));
    const std::string rest = client.read_all();
    EXPECT_NE(rest.find("POST /p " + body), std::string::npos);
    EXPECT_NE(rest.find("GET /pipelined "), std::string::npos);
    EXPECT_TRUE(client.ended_properly());
  }
}

TEST_F(TlsServerTest, LargeAnswersAndSlowReaders) {
  start_tls();
  TlsClient client(port(), trusting());
  ASSERT_TRUE(client.connected());
  ASSERT_TRUE(client.send(get("/large-5000000", "Connection: close\r\n")));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_GT(client.read_all().size(), 5'000'000u);
  EXPECT_TRUE(client.ended_properly());
}

TEST_F(TlsServerTest, OldVersionsAndOtherProtocolsAreRefused) {
  start_tls();
  ClientOptions old = trusting();
  old.newest = TLS1_1_VERSION;
  EXPECT_FALSE(TlsClient(port(), old).connected());
  ClientOptions only_h2 = trusting();
  only_h2.protocols = "\x02h2";
  EXPECT_FALSE(TlsClient(port(), only_h2).connected());
  ClientOptions both = trusting();
  both.protocols = "\x02h2\x08http/1.1";
  TlsClient client(port(), both);
  ASSERT_TRUE(client.connected());
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(client.ssl(), &chosen, &size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size), "http/1.1");
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 1; }));
}

TEST_F(TlsServerTest, SessionsAreResumed) {
  start_tls();
  TlsClient first(port(), trusting());
  ASSERT_TRUE(first.send(get("/", "Connection: close\r\n")));
  first.read_all();
  SSL_SESSION* session = SSL_get1_session(first.ssl());
  ClientOptions again = trusting();
  again.resume = session;
  TlsClient second(port(), again);
  ASSERT_TRUE(second.connected());
  EXPECT_EQ(SSL_session_reused(second.ssl()), 1);
  SSL_SESSION_free(session);
}

TEST_F(TlsServerTest, PlainHttpIsClosedCleanly) {
  start_tls();
  RawClient client(port());
  ASSERT_TRUE(client.send(get("/")));
  client.finish_sending();
  EXPECT_TRUE(client.ends_cleanly());
  EXPECT_EQ(seen_.started, 0);
  EXPECT_TRUE(eventually([&] { return server_->server().connections() == 0; }));
}

TEST_F(TlsServerTest, ASlowHandshakeIsClosed) {
  options_.header_timeout = milliseconds(200);
  start_tls();
  RawClient silent(port());
  EXPECT_TRUE(silent.closed_within(milliseconds(5000)));
  RawClient half(port());
  ASSERT_TRUE(half.send(std::string("\x16\x03\x01\x02\x00\x01", 6)));  // a hello that never ends
  EXPECT_TRUE(half.closed_within(milliseconds(5000)));
}

TEST_F(TlsServerTest, ATimeoutIsAnsweredAndEndsProperly) {
  options_.header_timeout = milliseconds(200);
  options_.idle_timeout = milliseconds(200);
  start_tls();
  TlsClient half(port(), trusting());
  ASSERT_TRUE(half.connected());
  ASSERT_TRUE(half.send("GET / HTTP/1.1\r\nHo"));
  EXPECT_TRUE(half.read_all().starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(half.ended_properly());
  TlsClient idle(port(), trusting());
  ASSERT_TRUE(idle.connected());
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(idle.ended_properly());
}

TEST_F(TlsServerTest, WhatIsCutShowsIt) {
  start_tls();
  for (const char* path : {"/abort", "/half"}) {
    for (const char* version : {"1.1", "1.0"}) {
      TlsClient client(port(), trusting());
      ASSERT_TRUE(client.connected());
      ASSERT_TRUE(
          client.send("GET " + std::string(path) + " HTTP/" + version + "\r\nHost: a\r\n\r\n"));
      EXPECT_NE(client.read_all().find("data: 0\n\n"), std::string::npos);
      EXPECT_FALSE(client.ended_properly()) << path << " HTTP/" << version;
    }
  }
  // The same body with a proper end.
  TlsClient whole(port(), trusting());
  ASSERT_TRUE(whole.send("GET /stream-1 HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(whole.read_all().ends_with("data: 0\n\n"));
  EXPECT_TRUE(whole.ended_properly());
}

TEST_F(TlsServerTest, AClientThatLeavesIsNoticed) {
  start_tls();
  {
    TlsClient client(port(), trusting());
    ASSERT_TRUE(client.send(get("/sleep-60000")));
    ASSERT_TRUE(eventually([&] { return seen_.started == 1; }));
    client.raw().reset();
  }
  EXPECT_TRUE(eventually([&] { return seen_.cancelled == 1; }));
  TlsClient client(port(), trusting());
  ASSERT_TRUE(client.send(get("/sleep-60000")));
  ASSERT_TRUE(eventually([&] { return seen_.started == 2; }));
  SSL_shutdown(client.ssl());
  client.raw().finish_sending();
  EXPECT_TRUE(eventually([&] { return seen_.cancelled == 2; }));
}

TEST_F(TlsServerTest, AReloadedCertificateServesNewConnections) {
  start_tls();
  TlsClient old(port(), trusting());
  ASSERT_TRUE(old.connected());
  const std::string before = old.certificate_of_server();
  files_ = make("server");  // the same files
  ASSERT_TRUE(server_->server().reload_certificate());
  TlsClient fresh(port(), trusting());
  ASSERT_TRUE(fresh.connected());
  EXPECT_NE(fresh.certificate_of_server(), before);
  ASSERT_TRUE(old.send(get("/still-here")));
  EXPECT_FALSE(old.read_until("GET /still-here").empty());
}

// An encrypted key must be an error: asking for its password would hang the start.
std::string encrypted_key(const CertificateFiles& files) {
  std::unique_ptr<BIO, decltype(&BIO_free)> in(BIO_new_file(files.key.c_str(), "r"), BIO_free);
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), BIO_free);
  const unsigned char password[] = "secret";
  PEM_write_bio_PrivateKey(out.get(), key.get(), EVP_aes_128_cbc(), password, 6, nullptr, nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

TEST_F(TlsServerTest, BadFilesChangeNothing) {
  start_tls();
  const CertificateFiles other = make("other");
  const std::string before = TlsClient(port(), trusting()).certificate_of_server();
  const std::string encrypted = encrypted_key(other);
  for (const std::string& bad : {std::string("nonsense"), std::string(), encrypted}) {
    SCOPED_TRACE(bad);
    std::ofstream(files_.key, std::ios::trunc) << bad;
    const Result<void> reloaded = server_->server().reload_certificate();
    ASSERT_FALSE(reloaded);
    EXPECT_EQ(reloaded.error().code, ErrorCode::invalid);
    EXPECT_NE(reloaded.error().message.find("tls_key_file"), std::string::npos);
    EXPECT_EQ(TlsClient(port(), trusting()).certificate_of_server(), before);
  }
  ServerOptions mixed;
  mixed.tls_cert_file = files_.certificate;
  mixed.tls_key_file = other.key;
  Cores cores(1);
  EXPECT_THROW(Server(cores, mixed, nullptr), std::runtime_error) << "they do not belong together";
  mixed.tls_key_file.clear();
  EXPECT_THROW(Server(cores, mixed, nullptr), std::runtime_error);
  start({});
  EXPECT_TRUE(server_->server().reload_certificate()) << "nothing to do without TLS";
}

TEST_F(TlsServerTest, DrainEndsIdleConnectionsProperly) {
  start_tls();
  TlsClient idle(port(), trusting());
  ASSERT_TRUE(idle.send(get("/1")));
  EXPECT_FALSE(idle.read_until("GET /1").empty());
  std::thread drain([&] { server_->server().drain(std::chrono::seconds(10)); });
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(idle.ended_properly());
  drain.join();
  EXPECT_EQ(server_->server().connections(), 0u);
}

}  // namespace
}  // namespace fixpoint
