#include "gateway/upstream/connection.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "gateway/http/head_scanner.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kRead = 32 * 1024;
// The rest of a head or chunk line that is not complete yet, and one read.
constexpr std::size_t kMaxBuffer = 128 * 1024 + kRead;

// Buffers of connections at rest, for the next connection of this core that reads: a new buffer
// for each answer would cost more than what is read into it. 2 MiB a core.
constexpr std::size_t kMaxSpare = 64;
thread_local std::vector<boost::beast::flat_buffer> spare_buffers;

// A proxy's answer to CONNECT, and the 1xx responses before it.
constexpr std::size_t kMaxTunnelHead = 16 * 1024;
constexpr int kMaxInterim = 16;

// A write that stalls looks this often whether the peer has spoken meanwhile.
constexpr milliseconds kStall{1000};
// What has completed already cannot be cancelled, but what follows it in the same operation can.
constexpr milliseconds kCancelAgain{100};

// Of a response's head; 0: not a status line.
int status_of(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 13 || head[8] != ' ') return 0;
  int status = 0;
  const auto parsed = std::from_chars(head.data() + 9, head.data() + 12, status);
  const bool three = parsed.ptr == head.data() + 12 && (head[12] == ' ' || head[12] == '\r');
  return three && status >= 100 ? status : 0;
}

// Whether there is more than interim responses: those say nothing about the request.
bool has_answer(std::string_view bytes) {
  while (status_of(bytes) / 100 == 1) {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    bytes.remove_prefix(end + 4);
  }
  return !bytes.empty();
}

milliseconds until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return std::max(left, milliseconds(0));
}

}  // namespace

std::string UpstreamTarget::name() const {
  return via.empty() ? peer : peer + " (through proxy " + via + ")";
}

UpstreamConnection::UpstreamConnection(net::io_context& context, const UpstreamTarget& target)
    : target_(target),
      socket_(context.get_executor()),
      deadline_(context, [this] { on_deadline(); }),
      in_(kMaxBuffer) {}

UpstreamConnection::~UpstreamConnection() {
  if (tls_) TlsPolicy::mark_closed(*tls_);
}

void UpstreamConnection::arm(milliseconds timeout) {
  timed_out_ = false;
  deadline_.expire_after(timeout);
}

void UpstreamConnection::on_deadline() {
  timed_out_ = true;
  if (write_end_) {
    answered_ = answered_ || has_spoken();
    timed_out_ = !answered_ && Clock::now() >= *write_end_;
    if (!answered_ && !timed_out_) {
      deadline_.expire_after(std::min(kStall, until(*write_end_)));
      return;
    }
  }
  error_code ec;
  socket_.cancel(ec);
  deadline_.expire_after(kCancelAgain);
}

tl::unexpected<Error> UpstreamConnection::failure(const char* what, const error_code& ec) const {
  const std::string who = std::string(what) + " " + target_.name();
  if (timed_out_) return fail(ErrorCode::timeout, who + " timed out");
  return fail(ErrorCode::closed, who + " failed: " + ec.message());
}

Task<Result<void>> UpstreamConnection::connect(const std::vector<tcp::endpoint>& endpoints,
                                               Clock::time_point deadline) {
  error_code ec = net::error::not_found;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    socket_ = Socket(socket_.get_executor());
    arm(until(deadline) / static_cast<long>(endpoints.size() - i));
    co_await socket_.async_connect(endpoints[i], net::redirect_error(use_task, ec));
    if (timed_out_) ec = net::error::timed_out;
    if (!ec) break;
  }
  deadline_.cancel();
  if (ec) {
    if (timed_out_) co_return failure("connecting to", ec);
    const std::string where = target_.via.empty() ? target_.peer : "proxy " + target_.via;
    co_return fail(ErrorCode::unreachable, "cannot connect to " + where + ": " + ec.message());
  }
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  // A model may think for minutes; this keeps middle boxes from forgetting the connection.
  socket_.set_option(net::socket_base::keep_alive(true), ignored);
  if (!target_.tunnel_head.empty()) {
    const Result<void> tunnel = co_await open_tunnel(deadline);
    if (!tunnel) co_return tunnel;
  }
  if (!target_.tls) co_return Result<void>();
  const Result<void> secured = co_await handshake(deadline);
  co_return secured;
}

// Everything after the proxy's answer comes from the upstream, which says nothing before TLS.
Task<Result<void>> UpstreamConnection::open_tunnel(Clock::time_point deadline) {
  const std::string who = "proxy " + target_.via;
  const std::string_view no_body;
  const Result<void> asked =
      co_await write(target_.tunnel_head, no_body, until(deadline), deadline);
  if (!asked) co_return asked;
  for (int answers = 0; answers <= kMaxInterim; ++answers) {
    HeadScanner scanner;
    std::size_t size = 0;
    while (size == 0) {
      const Result<std::size_t> scanned = scanner.scan(unread());
      if (!scanned || unread().size() > kMaxTunnelHead) {
        co_return fail(ErrorCode::protocol, who + " answered with what is not valid HTTP");
      }
      size = *scanned;
      if (size != 0) break;
      const Result<bool> more = co_await read(until(deadline));
      if (!more) co_return tl::make_unexpected(more.error());
      if (!*more) co_return fail(ErrorCode::closed, who + " closed instead of opening a tunnel");
    }
    const int status = status_of(unread().substr(0, size));
    consume(size);
    if (status / 100 == 1) continue;
    if (status / 100 == 2 && unread().empty()) co_return Result<void>();
    if (status / 100 == 2 || status == 0) {
      co_return fail(ErrorCode::protocol, who + " answered with what is not valid HTTP");
    }
    co_return fail(ErrorCode::unreachable, who + " refused a tunnel to " + target_.peer +
                                               ": HTTP " + std::to_string(status));
  }
  co_return fail(ErrorCode::protocol, who + " sent too many interim responses");
}

Task<Result<void>> UpstreamConnection::handshake(Clock::time_point deadline) {
  tls_.emplace(socket_, target_.tls->context());
  const Result<void> prepared = target_.tls->prepare(*tls_, target_.host, target_.peer);
  if (!prepared) co_return prepared;
  arm(until(deadline));
  error_code ec;
  co_await tls_->async_handshake(net::ssl::stream_base::client, net::redirect_error(use_task, ec));
  deadline_.cancel();
  if (timed_out_) co_return failure("the TLS handshake with", ec);
  if (!ec) co_return Result<void>();
  const long verified = SSL_get_verify_result(tls_->native_handle());
  const std::string why =
      verified != X509_V_OK ? X509_verify_cert_error_string(verified) : ec.message();
  co_return fail(ErrorCode::unreachable, "TLS to " + target_.name() + " failed: " + why);
}

Task<Result<void>> UpstreamConnection::write(std::string_view head, std::string_view body,
                                             milliseconds timeout, Clock::time_point end) {
  std::array<net::const_buffer, 2> out = {net::const_buffer(head.data(), head.size()),
                                          net::const_buffer(body.data(), body.size())};
  answered_ = false;
  for (;;) {
    error_code ec;
    std::size_t n = 0;
    const Clock::time_point now = Clock::now();
    timed_out_ = now >= end;  // a peer that takes one piece after the other lets no deadline fire
    if (timed_out_) co_return failure("sending to", ec);
    write_end_ = std::min(now + timeout, end);
    arm(std::min(kStall, until(*write_end_)));
    if (tls_) {
      n = co_await tls_->async_write_some(out, net::redirect_error(use_task, ec));
    } else {
      n = co_await socket_.async_write_some(out, net::redirect_error(use_task, ec));
    }
    deadline_.cancel();
    write_end_.reset();
    std::size_t rest = 0;
    for (net::const_buffer& piece : out) {
      const std::size_t taken = std::min(n, piece.size());
      piece += taken;
      n -= taken;
      rest += piece.size();
    }
    if (!ec && rest == 0) co_return Result<void>();
    if (answered_) {
      co_return fail(ErrorCode::closed, "sending to " + target_.name() +
                                            " was given up: it answered or left before the end");
    }
    if (ec || timed_out_) co_return failure("sending to", ec);
  }
}

Task<Result<bool>> UpstreamConnection::read(milliseconds timeout) {
  arm(timeout);
  error_code ec;
  std::size_t n = 0;
  if (in_.capacity() == 0 && !spare_buffers.empty()) {
    in_ = std::move(spare_buffers.back());
    spare_buffers.pop_back();
  }
  // With the rest of a line in it the buffer is not enlarged, unless the rest is most of it.
  const std::size_t room = std::max(kRead - std::min(kRead, in_.size()), kRead / 2);
  const auto space = in_.prepare(std::min(room, in_.max_size() - in_.size()));
  if (tls_) {
    n = co_await tls_->async_read_some(space, net::redirect_error(use_task, ec));
  } else {
    n = co_await socket_.async_read_some(space, net::redirect_error(use_task, ec));
  }
  deadline_.cancel();
  if (timed_out_) co_return failure("reading from", ec);
  // For TLS eof means close_notify; a bare FIN is stream_truncated and so an error.
  if (ec == net::error::eof) co_return false;
  if (ec) co_return failure("reading from", ec);
  in_.commit(n);
  co_return true;
}

std::string_view UpstreamConnection::unread() const {
  const auto data = in_.data();
  return {static_cast<const char*>(data.data()), data.size()};
}

bool UpstreamConnection::is_alive() {
  return in_.size() == 0 && socket_.is_open() && !has_spoken() && in_.size() == 0;
}

// Whether the peer has left or said more than interim responses. Looks without waiting, also while
// a write does not get on. (Only a TLS peer that asks for an answer of TLS itself in that moment,
// as to new keys, breaks the write; it is as good as stuck then.)
bool UpstreamConnection::has_spoken() {
  char byte = 0;
  const ssize_t n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
  if (n == 0) return true;
  error_code ec;
  socket_.non_blocking(true, ec);
  const auto space = in_.prepare(std::min(kRead, in_.max_size() - in_.size()));
  // With TLS the bytes may be late session tickets, which reading takes in.
  in_.commit(tls_ ? tls_->read_some(space, ec) : socket_.read_some(space, ec));
  if (ec) return ec != net::error::would_block;
  return has_answer(unread());
}

void UpstreamConnection::rest() {
  deadline_.cancel();
  if (in_.size() > 0 || in_.capacity() != kRead || spare_buffers.size() == kMaxSpare) {
    in_.shrink_to_fit();
    return;
  }
  spare_buffers.push_back(std::move(in_));
  in_ = boost::beast::flat_buffer(kMaxBuffer);
}

}  // namespace fixpoint
