#include "gateway/http/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "cache/base/release.hpp"
#include "gateway/http/head_scanner.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

// First read of a request, and reads of a body. Chat requests are mostly below 8 KiB.
constexpr std::size_t kSmallRead = 8 * 1024;
constexpr std::size_t kLargeRead = 64 * 1024;
// An idle connection keeps no buffer larger than this.
constexpr std::size_t kIdleBuffer = 16 * 1024;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

Response plain_refusal(const RequestError& error) {
  const nlohmann::json json = {
      {"error",
       {{"message", error.message},
        {"type", error.status < 500 ? "invalid_request_error" : "server_error"},
        {"param", nullptr},
        {"code", error.code}}}};
  Response response;
  response.status = error.status;
  response.body = std::make_shared<const std::string>(
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return response;
}

}  // namespace

ServerCore::ServerCore(net::io_context& c, const ServerOptions& o, Handler h,
                       std::shared_ptr<std::atomic<std::size_t>> t)
    : context(c),
      options(o),
      limits{o.max_body_bytes},
      handler(std::move(h)),
      total(std::move(t)) {}

Connection::Connection(std::shared_ptr<ServerCore> core, Socket socket,
                       std::shared_ptr<net::ssl::context> tls)
    : core_(std::move(core)),
      stream_(std::move(socket), std::move(tls)),
      deadline_(core_->context, [this] { on_deadline(); }),
      in_(std::max(core_->options.max_header_bytes, core_->limits.chunk_line_bytes) + kLargeRead),
      request_(std::make_shared<Request>()) {
  core_->connections.insert(this);
}

Connection::~Connection() {
  core_->connections.erase(this);
  core_->total->fetch_sub(1);
}

void Connection::start() {
  error_code ec;
  socket().set_option(tcp::no_delay(true), ec);
  const tcp::endpoint remote = socket().remote_endpoint(ec);
  if (!ec) {
    const std::string address = remote.address().to_string();
    request_->peer = (remote.address().is_v6() ? "[" + address + "]" : address) + ":" +
                     std::to_string(remote.port());
  }
  auto self = shared_from_this();
  auto done = [self](std::exception_ptr failure) {
    // operation_aborted after a cancellation; anything else is a bug and must be seen.
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const boost::system::system_error& error) {
      if (error.code() != net::error::operation_aborted) {
        log_error("connection of " + self->request_->peer + " failed: " + error.what());
      }
    } catch (const std::exception& error) {
      log_error("connection of " + self->request_->peer + " failed: " + error.what());
    }
    // The signal, which the finishing coroutine still refers to, dies after it.
    net::post(self->core_->context, [self] {});
  };
  net::co_spawn(core_->context.get_executor(), run(),
                net::bind_cancellation_slot(cancel_.slot(), std::move(done)));
}

Task<void> Connection::run() {
  const bool ready = co_await handshake();
  while (ready) {
    const bool have_request = co_await read_request();
    if (!have_request) break;
    co_await handle();
    if (error_ || closing()) break;
  }
  deadline_.cancel();
  if (error_ || !socket().is_open()) co_return;
  co_await close();
}

// True: requests may come. False: the client does not speak TLS as this server does.
Task<bool> Connection::handshake() {
  if (!stream_.is_tls()) co_return true;
  enter(Phase::handshaking, core_->options.header_timeout);
  error_code ec;
  co_await stream_.handshake(ec);
  secured_ = !ec && !timed_out_;
  linger_ = !secured_ && !timed_out_;  // so that the client sees the alert
  co_return secured_;
}

std::string_view Connection::unread() const {
  const auto data = in_.data();
  return {static_cast<const char*>(data.data()), data.size()};
}

void Connection::enter(Phase phase, milliseconds deadline) {
  phase_ = phase;
  timed_out_ = false;
  deadline_.expire_after(deadline);
}

void Connection::on_deadline() {
  error_code ec;
  switch (phase_) {
    case Phase::handshaking:
    case Phase::idle:
    case Phase::reading:
    case Phase::lingering:
      timed_out_ = true;
      socket().cancel(ec);
      // What has completed already cannot be cancelled, but what follows it can.
      deadline_.expire_after(kWatchInterval);
      return;
    case Phase::writing:
      set_error(ErrorCode::timeout, "the client took no bytes within write_timeout");
      close_hard();
      return;
    case Phase::handling:
      if (!peer_is_gone()) {
        deadline_.expire_after(kWatchInterval);
        return;
      }
      set_error(ErrorCode::closed, "the client closed the connection");
      cancel_.emit(net::cancellation_type::terminal);
      return;
  }
}

// Asks for the state of the TCP connection instead of reading from it: pipelined bytes stay where
// they are and do not hide a FIN that follows them. A FIN alone counts as gone: a client that
// half-closes and still waits for its answer cannot be told from one that left.
bool Connection::peer_is_gone() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(socket().native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state != TCP_ESTABLISHED;
}

void Connection::set_error(ErrorCode code, std::string message) {
  if (!error_) error_ = Error{code, std::move(message)};
}

Result<void> Connection::result() const {
  if (error_) return tl::make_unexpected(*error_);
  return {};
}

// More bytes into in_. False: the peer is gone or the deadline has passed.
Task<bool> Connection::read_more() {
  const std::size_t room = in_.max_size() - in_.size();
  const std::size_t size = phase_ == Phase::reading && parser_ ? kLargeRead : kSmallRead;
  error_code ec;
  const auto space = in_.prepare(std::min(size, room));
  const std::size_t n = co_await stream_.read_some(space, ec);
  // A request that began just as its connection was idle for too long is served.
  const bool late = timed_out_ && phase_ != Phase::idle;
  if (ec && !timed_out_) set_error(ErrorCode::closed, "the client closed the connection");
  if (ec || late) co_return false;
  in_.commit(n);
  co_return true;
}

// Makes room for the next request. Small memory is kept, since it is needed again at once; an idle
// connection holds no large buffer.
void Connection::forget_request() {
  parser_.reset();
  if (request_.use_count() > 1) {  // somebody keeps it
    auto next = std::make_shared<Request>();
    next->peer = request_->peer;
    request_ = std::move(next);
  }
  request_->method.clear();
  request_->path.clear();
  request_->query.clear();
  request_->headers.clear();
  if (request_->body.capacity() > kIdleBuffer) {
    release(request_->body);
  } else {
    request_->body.clear();
  }
  if (in_.size() == 0 && in_.capacity() > kIdleBuffer) in_.shrink_to_fit();
}

// False: nothing more to do on this connection (an error response went out where one is due).
Task<bool> Connection::read_request() {
  forget_request();
  if (in_.size() == 0) {
    enter(Phase::idle, core_->options.idle_timeout);
    if (core_->draining) co_return false;
  } else {
    enter(Phase::reading, core_->options.header_timeout);
  }
  HeadScanner scanner;
  std::size_t size = 0;
  bool first = true;
  for (;;) {
    // RFC 9112, 2.2: an empty line before a request is ignored.
    if (first && in_.size() >= 2) {
      first = false;
      if (unread().substr(0, 2) == "\r\n") in_.consume(2);
    }
    if (!first) {
      const Result<std::size_t> scanned = scanner.scan(unread());
      if (!scanned) {
        const RequestError bad{400, "invalid_http",
                               "the request is not valid HTTP: " + scanned.error().message};
        co_await refuse(bad);
        co_return false;
      }
      size = *scanned;
      if (scanner.first_line_size() > core_->limits.request_line_bytes ||
          (scanner.lines() == 0 && in_.size() > core_->limits.request_line_bytes)) {
        const RequestError bad{414, "uri_too_long",
                               "the request line exceeds the limit of " +
                                   std::to_string(core_->limits.request_line_bytes) + " bytes"};
        co_await refuse(bad);
        co_return false;
      }
      const std::size_t head = size != 0 ? size : in_.size();
      if (head > core_->options.max_header_bytes) {
        const RequestError bad{431, "header_too_large",
                               "the request header exceeds the limit of " +
                                   std::to_string(core_->options.max_header_bytes) + " bytes"};
        co_await refuse(bad);
        co_return false;
      }
      if (size != 0) break;
    }
    const bool more = co_await read_more();
    if (!more) {
      if (timed_out_ && phase_ == Phase::reading) {
        const RequestError late{408, "request_timeout",
                                "the request header did not arrive in time"};
        co_await refuse(late);
      }
      co_return false;
    }
    if (phase_ == Phase::idle) enter(Phase::reading, core_->options.header_timeout);
  }
  parser_.emplace(*request_, core_->limits);
  std::optional<RequestError> error = parser_->put_head(unread().substr(0, size));
  in_.consume(size);
  if (error) {
    co_await refuse(*error);
    co_return false;
  }
  keep_alive_ = parser_->keep_alive();
  if (parser_->done()) co_return true;
  const bool complete = co_await read_body();
  co_return complete;
}

Task<bool> Connection::read_body() {
  bool asks = parser_->expects_continue() && in_.size() == 0;
  for (bool first = true;; first = false) {
    if (in_.size() > 0) {
      std::size_t used = 0;
      std::optional<RequestError> error = parser_->put_body(unread(), used);
      in_.consume(used);
      // The parser leaves only a chunk's line or a trailer that is not complete yet.
      const std::size_t limit = core_->limits.chunk_line_bytes;
      if (!error && in_.size() > limit && !parser_->done()) {
        error = RequestError{400, "invalid_http",
                             "a chunk's extensions or the trailer exceed the limit of " +
                                 std::to_string(limit) + " bytes"};
      }
      if (error) {
        co_await refuse(*error);
        co_return false;
      }
      if (parser_->done()) co_return true;
    }
    if (first && core_->options.head_check) {
      // Those who may not ask cannot fill the memory, nor do they send what nobody reads.
      if (const auto response = core_->options.head_check(*request_)) {
        co_await send_last(*response);
        co_return false;
      }
    }
    if (std::exchange(asks, false)) {
      out_ = {net::buffer(kContinue)};
      const Result<void> sent = co_await flush();
      if (!sent) co_return false;
    }
    enter(Phase::reading, core_->options.body_timeout);
    const bool more = co_await read_more();
    if (more) continue;
    if (timed_out_) {
      const RequestError late{408, "request_timeout", "the request body did not arrive in time"};
      co_await refuse(late);
    }
    co_return false;
  }
}

Task<void> Connection::refuse(const RequestError& error) {
  const Refusal& refusal = core_->options.refusal;
  const Response response = refusal ? refusal(*request_, error) : plain_refusal(error);
  co_await send_last(response);
}

// The answer to a request that was not read to its end; the connection ends after it.
Task<void> Connection::send_last(const Response& response) {
  keep_alive_ = false;
  linger_ = true;
  started_ = finished_ = false;
  const Result<void> sent = co_await send(response);
  (void)sent;  // kept in error_
}

Task<void> Connection::handle() {
  started_ = finished_ = chunked_ = false;
  enter(Phase::handling, kWatchInterval);
  const RequestPtr request = request_;  // the handler refers to it
  try {
    if (request_->method == "OPTIONS") {
      Response response;
      response.status = 204;
      response.headers.add("Allow", "GET, HEAD, POST, PATCH, OPTIONS");
      const Result<void> sent = co_await send(response);
      (void)sent;
    } else {
      Task<void> task = core_->handler(request, *this);
      co_await std::move(task);
    }
  } catch (const std::exception& error) {
    // After a cancellation this is the coroutine unwinding, as it should.
    if (!error_) {
      log_error("handler of " + request_->method + " " + request_->path +
                " failed: " + error.what());
    }
  }
  before_cut_ = nullptr;  // it refers to the handler's own
  if (error_) co_return;
  if (!started_) {
    const RequestError failure{500, "internal_error", "the server failed to answer"};
    const Response response = plain_refusal(failure);
    const Result<void> sent = co_await send(response);
    (void)sent;
  } else if (!finished_) {
    abort();
  }
}

}  // namespace fixpoint
