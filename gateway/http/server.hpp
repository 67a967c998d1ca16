// The HTTP/1.1 server: one io_context and one thread per core, a connection lives on one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/http/types.hpp"

namespace fixpoint {

// The threads of the gateway. Work of a connection never leaves its core; between cores only owned
// values travel, by post().
class Cores {
 public:
  explicit Cores(std::size_t count);  // 0: one per hardware thread
  ~Cores();                           // stops and joins
  std::size_t size() const;
  net::io_context& context(std::size_t core);
  void start();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Sends one response on a connection. Used by one coroutine, on the connection's core. After an
// error (the client is gone) every further call returns that error.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  // A whole response with Content-Length.
  virtual Task<Result<void>> send(const Response& response) = 0;
  // The head of a chunked response (the body member is ignored), then pieces of its body, each
  // flushed. The first piece may go out with the head, and the last one with the end: that spares a
  // system call. An empty piece is none (an empty chunk would end the stream).
  virtual Task<Result<void>> begin(const Response& head, std::string_view bytes) = 0;
  virtual Task<Result<void>> write(std::string_view bytes) = 0;
  virtual Task<Result<void>> finish(std::string_view bytes) = 0;
  // Closes the connection without a proper end, so that the client sees that the body is
  // incomplete.
  virtual void abort() = 0;
  virtual bool started() const = 0;  // a head went out
  // `call` is called on the connection's core when the server is about to cut the connection: the
  // deadline of drain() has passed, or had before this call. The handler then has a moment to end
  // its answer. What `call` refers to must live as long as the handler runs.
  virtual void before_cut(std::function<void()> call) = 0;
};

// Runs on the connection's core. When the client goes away before the handler is done (noticed
// within 200 ms; a client that half-closes counts as gone), the handler is cancelled: terminal
// cancellation of the coroutine, its pending operation ends with operation_aborted and every later
// co_await throws boost::system::system_error(operation_aborted). Let that exception pass; clean up
// in destructors. A handler that throws or returns without a response gives the client a 500; one
// that returns in the middle of a streamed response cuts the connection. The server answers OPTIONS
// itself. `request` lives until the handler is done, and what it points to as long as somebody
// keeps it.
using Handler = std::function<Task<void>(const RequestPtr& request, ResponseWriter& writer)>;

// Words the answer to a request that is refused before a handler runs: its peer is known, the rest
// as far as it was read. Runs on the connection's core.
using Refusal = std::function<Response(const Request& request, const RequestError& error)>;

// Looks at a request whose head is there and whose body is not, or not all of it: an answer to send
// instead of reading the rest. Nothing: the body is read. Runs on the connection's core.
using HeadCheck = std::function<std::optional<Response>(const Request& request)>;

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;     // 0: the system picks
  std::string tls_cert_file;  // PEM chain, own certificate first; with tls_key_file: HTTPS only
  std::string tls_key_file;   // PEM, not encrypted
  std::size_t max_header_bytes = 16 * 1024;
  std::size_t max_body_bytes = 16 * 1024 * 1024;    // beyond: 413
  std::size_t max_connections = 16384;              // beyond: accept waits
  std::chrono::milliseconds header_timeout{10000};  // of a TLS handshake, too
  std::chrono::milliseconds body_timeout{60000};    // between bytes
  std::chrono::milliseconds idle_timeout{75000};
  std::chrono::milliseconds write_timeout{60000};  // a client that takes nothing for so long is cut
  Refusal refusal = nullptr;                       // null: a JSON body as OpenAI's errors have it
  HeadCheck head_check = nullptr;                  // null: every body is read
};

// Errors before a handler runs: 400, 408, 413, 414, 417, 431, 501, 505.
class Server {
 public:
  // Binds at once. Throws std::system_error when the address cannot be bound and std::runtime_error
  // when the certificate or its key cannot be used (start-up).
  Server(Cores& cores, ServerOptions options, Handler handler);
  ~Server();
  std::uint16_t port() const;
  void start();
  // Stops accepting, lets requests in flight end (their connections close); what is left after the
  // deadline hears of it (before_cut) and is cut half a second later. Blocks. Call from outside the
  // cores.
  void drain(std::chrono::milliseconds deadline);
  std::size_t connections() const;
  // Reads tls_cert_file and tls_key_file again: new connections use what they hold now, open ones
  // go on. On an error (invalid: the files cannot be used or do not belong together) everything
  // stays as it was. Without TLS it does nothing. Thread-safe.
  Result<void> reload_certificate();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fixpoint
