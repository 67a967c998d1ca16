// The byte stream of a client's connection: TCP, or TLS over it.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <utility>

#include "gateway/http/asio.hpp"

namespace fixpoint {

// One read and one write at a time. Asynchronous operations return Asio's own coroutines, so that
// plain connections pay for a branch and nothing else.
class ServerStream {
 public:
  // `tls` null: plain.
  ServerStream(Socket socket, std::shared_ptr<net::ssl::context> tls)
      : context_(std::move(tls)), socket_(std::move(socket)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);  // for write_now()
    if (context_) tls_ = std::make_unique<net::ssl::stream<Socket&>>(socket_, *context_);
  }

  bool is_tls() const { return tls_ != nullptr; }
  // What timeouts, disconnection and the end of a connection work on.
  Socket& socket() { return socket_; }

  template <class Buffers>
  Task<std::size_t> read_some(const Buffers& buffers, error_code& ec) {
    if (tls_) return tls_->async_read_some(buffers, net::redirect_error(use_task, ec));
    return socket_.async_read_some(buffers, net::redirect_error(use_task, ec));
  }
  // What the kernel takes at once. would_block: nothing, or TLS. Answers mostly fit: writing them
  // in this way spares the coroutine a turn of the loop, which is a system call.
  template <class Buffers>
  std::size_t write_now(const Buffers& buffers, error_code& ec) {
    if (!tls_) return socket_.write_some(buffers, ec);
    ec = net::error::would_block;
    return 0;
  }
  template <class Buffers>
  Task<std::size_t> write_some(const Buffers& buffers, error_code& ec) {
    if (tls_) return tls_->async_write_some(buffers, net::redirect_error(use_task, ec));
    return socket_.async_write_some(buffers, net::redirect_error(use_task, ec));
  }

  // Precondition of both: is_tls().
  Task<void> handshake(error_code& ec) {
    return tls_->async_handshake(net::ssl::stream_base::server, net::redirect_error(use_task, ec));
  }
  // Sends close_notify, which tells the client that nothing was cut off, and waits for the
  // client's.
  Task<void> say_end(error_code& ec) {
    return tls_->async_shutdown(net::redirect_error(use_task, ec));
  }

 private:
  std::shared_ptr<net::ssl::context> context_;
  Socket socket_;
  std::unique_ptr<net::ssl::stream<Socket&>> tls_;
};

}  // namespace fixpoint
