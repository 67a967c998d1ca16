// Writes that stall, early answers and deadlines, seen through the client.
#include "gateway/upstream/connection.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/certificate.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/gateway/upstream/client_fixture.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kLarge = std::size_t{32} << 20;  // more than the kernel's buffers take

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kRefused = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";

UpstreamRequest large_request() {
  UpstreamRequest request;
  request.body = std::make_shared<const std::string>(kLarge, 'x');
  return request;
}

// A blocking TLS server for one connection.
class TlsPeer {
 public:
  using Stream = net::ssl::stream<net::ip::tcp::socket>;
  TlsPeer(const test::CertificateFiles& files, std::function<void(Stream&)> script) {
    tls_.use_certificate_chain_file(files.certificate);
    tls_.use_private_key_file(files.key, net::ssl::context::pem);
    thread_ = std::thread([this, script = std::move(script)] {
      error_code ec;
      Stream stream(acceptor_.accept(), tls_);
      stream.handshake(net::ssl::stream_base::server, ec);
      if (!ec) script(stream);
    });
  }
  ~TlsPeer() { thread_.join(); }
  std::string url() { return "https://127.0.0.1:" + std::to_string(port_); }

  // Until so many bytes have come; false: the client left.
  static bool receive(Stream& stream, std::size_t size) {
    std::vector<char> bytes(65536);
    while (size > 0) {
      error_code ec;
      const std::size_t n = stream.read_some(net::buffer(bytes), ec);
      if (ec) return false;
      size -= std::min(n, size);
    }
    return true;
  }
  static void send(Stream& stream, const std::string& text) {
    error_code ec;
    net::write(stream, net::buffer(text), ec);
  }

 private:
  net::io_context context_;
  net::ssl::context tls_{net::ssl::context::tls_server};
  net::ip::tcp::acceptor acceptor_{context_, {net::ip::address_v4::loopback(), 0}};
  const std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::thread thread_;
};

class ConnectionTest : public ClientTest {
 protected:
  test::TempDir folder_;

  // Of a peer that never ends an operation too late: no test waits for them.
  UpstreamOptions patient(const std::string& url) {
    UpstreamOptions o = options(url);
    o.verify_tls = false;
    o.between_bytes_timeout = std::chrono::minutes(2);
    return o;
  }
  test::CertificateFiles certificate() {
    return test::make_certificate(folder_.path().string(), "peer", "localhost");
  }
};

TEST_F(ConnectionTest, TheTotalHoldsWhileTheRequestIsSent) {
  std::size_t taken = 0;
  std::promise<void> over;
  ScriptedServer server({[&](ScriptedPeer& peer) {
    for (std::string piece = peer.receive(); !piece.empty(); piece = peer.receive()) {
      taken += piece.size();
      std::this_thread::sleep_for(milliseconds(2));
    }
    over.set_value();
  }});
  UpstreamOptions o = patient(server.url());
  o.total_timeout = milliseconds(300);
  UpstreamClient client(context_, o);
  const Result<Answer> answer = get(client, large_request());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::timeout);
  EXPECT_NE(answer.error().message.find("total_timeout"), std::string::npos);
  over.get_future().wait();
  EXPECT_LT(taken, kLarge) << "the peer took pieces in time, but not the whole";
}

TEST_F(ConnectionTest, AnEarlyAnswerOfAPeerThatReadsNothing) {
  std::promise<void> done;
  ScriptedServer server({[&](ScriptedPeer& peer) {
                           peer.receive();
                           peer.send(kRefused);
                           done.get_future().wait();
                         },
                         [&](ScriptedPeer& peer) {
                           peer.read_request();
                           peer.send(kOk);
                           peer.client_left();
                         }});
  UpstreamClient client(context_, patient(server.url()));
  const Result<Answer> answer = get(client, large_request());
  done.set_value();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 401);
  EXPECT_EQ(get(client)->status, 200);
  EXPECT_EQ(server.connections(), 2) << "the rest of the request never went out";
}

TEST_F(ConnectionTest, AnEarlyAnswerOverTls) {
  std::promise<void> done;
  TlsPeer peer(certificate(), [&](TlsPeer::Stream& stream) {
    TlsPeer::receive(stream, 1);
    TlsPeer::send(stream, kRefused);
    done.get_future().wait();
  });
  UpstreamClient client(context_, patient(peer.url()));
  const Result<Answer> answer = get(client, large_request());
  done.set_value();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 401);
}

TEST_F(ConnectionTest, WhatIsNoAnswerDoesNotEndAWriteThatStalls) {
  ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.send("HTTP/1.1 103 Early Hints\r\n\r\n");
    std::this_thread::sleep_for(milliseconds(2500));
    peer.read_request();
    peer.send(kOk);
  }});
  UpstreamClient client(context_, patient(server.url()));
  const Result<Answer> answer = get(client, large_request());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  // With TLS 1.3 session tickets wait to be read.
  TlsPeer peer(certificate(), [&](TlsPeer::Stream& stream) {
    std::this_thread::sleep_for(milliseconds(2500));
    if (TlsPeer::receive(stream, kLarge)) TlsPeer::send(stream, kOk);
  });
  UpstreamClient secure(context_, patient(peer.url()));
  const Result<Answer> second = get(secure, large_request());
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->status, 200);
}

// When the deadline fires, the first part of a message has been read and the next read has ended
// already: there is nothing to cancel, and only then comes the wait for the part that is missing.
TEST_F(ConnectionTest, ADeadlineHoldsThoughBytesAreThere) {
  const std::string rest(16384 - 4, 'x');
  const std::string server_hello = std::string("\x02\0\xea\x60", 4);  // of 60000 bytes
  const std::string record = std::string("\x16\x03\x03\x40\0", 5);
  std::atomic<bool> left{false};
  ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.receive();
    {
      const test::Blocked blocked(context_);
      peer.send(record + server_hello + rest + record + "xxxx" + rest);
      std::this_thread::sleep_for(milliseconds(1000));
    }
    left = peer.client_left();
  }});
  UpstreamOptions o = options("https://127.0.0.1:" + std::to_string(server.port()));
  o.verify_tls = false;
  o.connect_timeout = milliseconds(500);
  UpstreamClient client(context_, o);
  const Result<Answer> answer = get(client);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::timeout) << answer.error().message;
  EXPECT_TRUE(test::eventually([&] { return left.load(); })) << "the peer ended it, not the client";
}

}  // namespace
}  // namespace fixpoint
