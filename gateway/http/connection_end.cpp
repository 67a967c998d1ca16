// The ends of a Connection: proper, with what is still to be said and heard, or cut.
#include <utility>

#include "gateway/http/connection.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

// After an early error the client may still be sending. Closing at once would reset the connection
// and destroy the reply on its way, so what it sends is discarded for a while.
constexpr milliseconds kLingerTime{2000};
constexpr std::size_t kLingerBytes = 16u << 20;
constexpr std::size_t kLingerRead = 64 * 1024;

}  // namespace

void Connection::close_when_idle() {
  if (phase_ == Phase::idle || phase_ == Phase::handshaking) on_deadline();
}

void Connection::before_cut(std::function<void()> call) {
  before_cut_ = std::move(call);
  if (cut_announced_) announce_cut();
}

void Connection::announce_cut() {
  cut_announced_ = true;
  if (before_cut_) std::exchange(before_cut_, nullptr)();
}

void Connection::cut() {
  set_error(ErrorCode::closed, "the connection was cut");
  cancel_.emit(net::cancellation_type::terminal);
  close_hard();
}

void Connection::abort() {
  set_error(ErrorCode::closed, "the response was aborted");
  deadline_.cancel();
  close_hard();
}

// At once, so that no body that was cut looks complete. With TLS nothing more is said either: the
// missing close_notify shows the cut. A body that ends with the connection looks complete after a
// plain close: reset instead.
void Connection::close_hard() {
  error_code ec;
  const bool ends_with_connection = started_ && !finished_ && !chunked_;
  if (ends_with_connection) socket().set_option(net::socket_base::linger(true, 0), ec);
  socket().close(ec);
}

// A proper end, after which the client has everything that was sent.
Task<void> Connection::close() {
  error_code ec;
  enter(Phase::lingering, kLingerTime);
  // Closing with unread bytes in the kernel resets the connection, too.
  const bool discard = linger_ || in_.size() > 0 || socket().available(ec) > 0;
  if (secured_) {
    // Nothing more is expected of this client: say_end() need not wait for its close_notify.
    if (!discard) socket().shutdown(tcp::socket::shutdown_receive, ec);
    co_await stream_.say_end(ec);
  }
  if (discard) {
    co_await linger();
  }
  deadline_.cancel();
  socket().shutdown(tcp::socket::shutdown_both, ec);
  socket().close(ec);
}

// Below TLS: what still comes is not looked at.
Task<void> Connection::linger() {
  error_code ec;
  socket().shutdown(tcp::socket::shutdown_send, ec);
  in_.consume(in_.size());
  for (std::size_t discarded = 0; !timed_out_ && discarded < kLingerBytes;) {
    const auto space = in_.prepare(kLingerRead);
    const std::size_t n =
        co_await socket().async_read_some(space, net::redirect_error(use_task, ec));
    if (ec) break;
    discarded += n;
  }
}

}  // namespace fixpoint
