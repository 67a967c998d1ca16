// One client connection of the server: reads requests, runs the handler, writes responses.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "gateway/http/asio.hpp"
#include "gateway/http/deadline.hpp"
#include "gateway/http/request_parser.hpp"
#include "gateway/http/response_head.hpp"
#include "gateway/http/server.hpp"
#include "gateway/http/stream.hpp"

namespace fixpoint {

class Connection;

// What the connections of one core share. Everything but `total` is used on the core only.
struct ServerCore {
  ServerCore(net::io_context& c, const ServerOptions& o, Handler h,
             std::shared_ptr<std::atomic<std::size_t>> t);

  net::io_context& context;
  const ServerOptions options;
  const RequestLimits limits;
  const Handler handler;
  const std::shared_ptr<std::atomic<std::size_t>> total;  // connections of the whole server
  DateLine date;
  std::unordered_set<Connection*> connections;
  bool draining = false;
};

// Owned by its coroutine; lives and dies on its core.
class Connection final : public ResponseWriter, public std::enable_shared_from_this<Connection> {
 public:
  // Registers with the core. Call start() once on the core. `tls` null: plain HTTP.
  Connection(std::shared_ptr<ServerCore> core, Socket socket,
             std::shared_ptr<net::ssl::context> tls);
  ~Connection() override;
  void start();

  // Drain: closes at once when no request has begun, otherwise after the reply.
  void close_when_idle();
  // Tells the handler that asked for it (before_cut).
  void announce_cut();
  // Cancels the handler and closes the socket.
  void cut();

  Task<Result<void>> send(const Response& response) override;
  Task<Result<void>> begin(const Response& head, std::string_view bytes) override;
  Task<Result<void>> write(std::string_view bytes) override;
  Task<Result<void>> finish(std::string_view bytes) override;
  void abort() override;
  bool started() const override { return started_; }
  void before_cut(std::function<void()> call) override;

 private:
  // The client is looked at this often while its handler runs; faster handlers pay nothing.
  static constexpr std::chrono::milliseconds kWatchInterval{100};

  // What the deadline means now.
  enum class Phase { handshaking, idle, reading, handling, writing, lingering };

  Task<void> run();
  Task<bool> handshake();
  void forget_request();
  Task<bool> read_request();
  Task<bool> read_body();
  Task<bool> read_more();
  Task<void> handle();
  Task<void> refuse(const RequestError& error);
  Task<void> send_last(const Response& response);
  Task<void> close();
  Task<void> linger();
  void put_piece(std::string_view bytes, std::string_view tail);
  Task<Result<void>> flush();
  bool drop_written(std::size_t bytes);

  void enter(Phase phase, std::chrono::milliseconds deadline);
  void on_deadline();
  void close_hard();
  bool peer_is_gone();
  Socket& socket() { return stream_.socket(); }
  std::string_view unread() const;
  bool closing() const { return !keep_alive_ || core_->draining; }
  void set_error(ErrorCode code, std::string message);
  Result<void> result() const;

  std::shared_ptr<ServerCore> core_;
  ServerStream stream_;
  Deadline deadline_;
  Phase phase_ = Phase::idle;
  // Set by the deadline while reading; counts even if bytes came just then.
  bool timed_out_ = false;
  net::cancellation_signal cancel_;
  std::function<void()> before_cut_;  // the handler's
  bool cut_announced_ = false;

  boost::beast::flat_buffer in_;  // bytes received and not used yet: pipelined requests stay here
  std::optional<RequestParser> parser_;
  std::shared_ptr<Request> request_;  // its peer is set once

  // The response being written.
  std::string head_;
  std::array<char, 20> chunk_line_;
  std::array<net::const_buffer, 4> out_;
  std::optional<Error> error_;  // the connection is unusable; every later call returns it
  bool started_ = false;
  bool finished_ = false;
  bool chunked_ = false;
  bool body_allowed_ = true;  // false for HEAD, 204 and 304
  bool keep_alive_ = false;
  bool secured_ = false;  // the TLS handshake is done
  bool linger_ = false;   // the client may still be sending what nobody will read
};

}  // namespace fixpoint
