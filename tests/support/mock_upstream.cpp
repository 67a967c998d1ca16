#include "tests/support/mock_upstream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>
#include <thread>
#include <unordered_set>
#include <vector>

#include "gateway/http/asio.hpp"
#include "tests/support/mock_answers.hpp"
#include "tests/support/mock_counters.hpp"
#include "tests/support/mock_request.hpp"

namespace fixpoint::test {
namespace {

using std::chrono::milliseconds;
using TlsSocket = net::ssl::stream<Socket>;

constexpr std::size_t kMaxRequest = 64u << 20;
// While an answer waits, its client is looked at this often.
constexpr milliseconds kSlice{10};

Socket& lowest(Socket& stream) {
  return stream;
}
Socket& lowest(TlsSocket& stream) {
  return stream.next_layer();
}

}  // namespace

struct MockUpstream::Impl : std::enable_shared_from_this<MockUpstream::Impl> {
  struct Core {
    net::io_context context{1};
    net::executor_work_guard<Executor> work{context.get_executor()};
    std::unordered_set<Socket*> idle;  // waiting for a request
    std::thread thread;
  };

  explicit Impl(MockUpstreamOptions o);
  Task<void> accept_loop();
  template <class Stream>
  Task<void> serve(std::shared_ptr<Stream> stream, Core& core);
  Task<void> serve_tls(std::shared_ptr<TlsSocket> stream, Core& core);
  template <class Stream>
  Task<bool> read_request(Stream& stream, Core& core, std::string& buffer, MockRequest& request);
  template <class Stream>
  Task<bool> answer(Stream& stream, const MockRequest& request);
  MockAnswer control(const MockRequest& request);
  void close_idle();
  template <class Stream>
  Task<bool> send(Stream& stream, const MockAnswer& answer);
  template <class Stream>
  Task<bool> write(Stream& stream, const std::string& bytes);
  Task<bool> wait(Socket& socket, milliseconds time);

  const MockUpstreamOptions options;
  std::vector<std::unique_ptr<Core>> cores;
  std::unique_ptr<net::ssl::context> tls;
  std::unique_ptr<Acceptor> acceptor;
  std::uint16_t port = 0;

  MockCounters counters;
};

MockUpstream::Impl::Impl(MockUpstreamOptions o) : options(std::move(o)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(1, options.threads); ++i) {
    cores.push_back(std::make_unique<Core>());
  }
  if (!options.cert_file.empty()) {
    tls = std::make_unique<net::ssl::context>(net::ssl::context::tls_server);
    tls->use_certificate_chain_file(options.cert_file);
    tls->use_private_key_file(options.key_file, net::ssl::context::pem);
    const unsigned char id[] = "mock";
    SSL_CTX_set_session_id_context(tls->native_handle(), id, sizeof id);
  }
  acceptor =
      std::make_unique<Acceptor>(cores[0]->context.get_executor(),
                                 tcp::endpoint(net::ip::make_address("127.0.0.1"), options.port));
  port = acceptor->local_endpoint().port();
}

Task<void> MockUpstream::Impl::accept_loop() {
  for (std::size_t next = 0;; next = (next + 1) % cores.size()) {
    Core& core = *cores[next];
    const Executor executor = core.context.get_executor();
    error_code ec;
    Socket socket = co_await acceptor->async_accept(executor, net::redirect_error(use_task, ec));
    if (ec) co_return;
    ++counters.connections;
    socket.set_option(tcp::no_delay(true), ec);
    if (tls) {
      auto stream = std::make_shared<TlsSocket>(std::move(socket), *tls);
      net::co_spawn(executor, serve_tls(stream, core), net::detached);
    } else {
      auto stream = std::make_shared<Socket>(std::move(socket));
      net::co_spawn(executor, serve(stream, core), net::detached);
    }
  }
}

Task<void> MockUpstream::Impl::serve_tls(std::shared_ptr<TlsSocket> stream, Core& core) {
  error_code ec;
  co_await stream->async_handshake(net::ssl::stream_base::server,
                                   net::redirect_error(use_task, ec));
  if (ec) co_return;
  if (SSL_session_reused(stream->native_handle()) == 1) ++counters.resumed;
  co_await serve(stream, core);
}

template <class Stream>
Task<void> MockUpstream::Impl::serve(std::shared_ptr<Stream> stream, Core& core) {
  std::string buffer;
  MockRequest request;
  for (;;) {
    const bool got = co_await read_request(*stream, core, buffer, request);
    if (!got) break;
    const bool kept = co_await answer(*stream, request);
    if (!kept || !request.keep_alive) break;
  }
  error_code ec;
  lowest(*stream).shutdown(tcp::socket::shutdown_both, ec);
}

template <class Stream>
Task<bool> MockUpstream::Impl::read_request(Stream& stream, Core& core, std::string& buffer,
                                            MockRequest& request) {
  std::size_t head = std::string::npos;
  std::size_t total = 0;
  for (;;) {
    if (head == std::string::npos) {
      head = buffer.find("\r\n\r\n");
      if (head != std::string::npos) {
        head += 4;
        if (!parse_head(std::string_view(buffer).substr(0, head), request)) co_return false;
        const auto length = request.headers.find("content-length");
        total = head;
        if (length != request.headers.end()) total += std::stoul(length->second);
        if (total > kMaxRequest) co_return false;
      }
    }
    if (head != std::string::npos && buffer.size() >= total) break;
    const std::size_t have = buffer.size();
    buffer.resize(have + std::max<std::size_t>(16 * 1024, total > have ? total - have : 0));
    Socket& socket = lowest(stream);
    if (have == 0) core.idle.insert(&socket);
    error_code ec;
    const auto space = net::buffer(buffer.data() + have, buffer.size() - have);
    const std::size_t n = co_await stream.async_read_some(space, net::redirect_error(use_task, ec));
    core.idle.erase(&socket);
    buffer.resize(have + n);
    if (ec) co_return false;
  }
  request.body = buffer.substr(head, total - head);
  buffer.erase(0, total);
  co_return true;
}

template <class Stream>
Task<bool> MockUpstream::Impl::answer(Stream& stream, const MockRequest& request) {
  if (request.path.starts_with("/mock/")) {
    const MockAnswer report = control(request);
    const bool sent = co_await send(stream, report);
    co_return sent;
  }
  const MockTurn turn = counters.count(request);
  std::string fast;
  if (mock_fast_answer(request, turn.call, fast)) {
    const bool sent = co_await write(stream, fast);
    co_return sent;
  }
  const MockAnswer slow = mock_answer(request, turn.call, turn.attempt);
  const bool sent = co_await send(stream, slow);
  if (!sent && !slow.cut && !slow.reset) ++counters.aborted;
  co_return sent;
}

MockAnswer MockUpstream::Impl::control(const MockRequest& request) {
  MockAnswer report;
  if (request.path == "/mock/reset") {
    const auto wish = nlohmann::json::parse(request.body, nullptr, false);
    counters.reset(wish.is_object() ? wish.value("record", std::size_t{0}) : 0);
  }
  if (request.path == "/mock/close_idle") close_idle();
  report.pieces.push_back(request.path == "/mock/requests" ? counters.recorded()
                                                           : counters.stats());
  return report;
}

// False: the connection must end.
template <class Stream>
Task<bool> MockUpstream::Impl::send(Stream& stream, const MockAnswer& answer) {
  error_code ec;
  if (answer.reset) {
    lowest(stream).set_option(net::socket_base::linger(true, 0), ec);
    lowest(stream).close(ec);
    co_return false;
  }
  const bool here = co_await wait(lowest(stream), answer.delay);
  if (!here) co_return false;
  std::size_t size = 0;
  for (const std::string& piece : answer.pieces) size += piece.size();
  std::string out = "HTTP/1.1 " + std::to_string(answer.status) + " Mock\r\nContent-Type: ";
  out += answer.content_type;
  for (const auto& [name, value] : answer.headers) out += "\r\n" + name + ": " + value;
  out += answer.streamed ? "\r\nTransfer-Encoding: chunked\r\n\r\n"
                         : "\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  std::size_t left = answer.cut.value_or(std::string::npos);
  bool first = true;
  for (const std::string& whole : answer.pieces) {
    if (!first && answer.between.count() > 0) {
      const bool still = co_await wait(lowest(stream), answer.between);
      if (!still) co_return false;
    }
    first = false;
    const std::string kept = whole.substr(0, std::min(left, whole.size()));
    const std::size_t step = answer.split ? 1 : std::max<std::size_t>(kept.size(), 1);
    for (std::size_t at = 0; at < kept.size(); at += step) {
      const std::string piece = kept.substr(at, step);
      char line[24];
      std::snprintf(line, sizeof line, "%zx\r\n", piece.size());
      out += answer.streamed ? line + piece + "\r\n" : piece;
      const bool sent = co_await write(stream, out);
      if (!sent) co_return false;
      out.clear();
    }
    left -= left == std::string::npos ? 0 : kept.size();
    if (left == 0) break;
  }
  if (left == 0 && !answer.whole) {
    if (!out.empty()) co_await write(stream, out);
    if (answer.reset_cut) {
      lowest(stream).set_option(net::socket_base::linger(true, 0), ec);
      lowest(stream).close(ec);
    }
    co_return false;
  }
  const bool waiting = co_await wait(lowest(stream), answer.hold);
  if (!waiting) co_return false;
  if (answer.streamed) out += "0\r\n\r\n";
  if (out.empty()) co_return true;
  const bool sent = co_await write(stream, out);
  co_return sent;
}

void MockUpstream::Impl::close_idle() {
  for (auto& core : cores) {
    Impl::Core* c = core.get();
    net::post(c->context, [c] {
      for (Socket* socket : c->idle) {
        error_code ec;
        socket->shutdown(tcp::socket::shutdown_both, ec);
      }
    });
  }
}

template <class Stream>
Task<bool> MockUpstream::Impl::write(Stream& stream, const std::string& bytes) {
  error_code ec;
  co_await net::async_write(stream, net::buffer(bytes), net::redirect_error(use_task, ec));
  co_return !ec;
}

// False: the client has left.
Task<bool> MockUpstream::Impl::wait(Socket& socket, milliseconds time) {
  const Clock::time_point end = Clock::now() + time;
  Timer timer(socket.get_executor());
  while (Clock::now() < end) {
    timer.expires_at(std::min(end, Clock::now() + kSlice));
    error_code ec;
    co_await timer.async_wait(net::redirect_error(use_task, ec));
    char byte = 0;
    const ssize_t n = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) co_return false;
  }
  co_return true;
}

MockUpstream::MockUpstream(MockUpstreamOptions options)
    : impl_(std::make_shared<Impl>(std::move(options))) {
  net::co_spawn(impl_->cores[0]->context.get_executor(), impl_->accept_loop(), net::detached);
  for (auto& core : impl_->cores) {
    Impl::Core* c = core.get();
    c->thread = std::thread([c] { c->context.run(); });
  }
}

MockUpstream::~MockUpstream() {
  for (auto& core : impl_->cores) core->context.stop();
  for (auto& core : impl_->cores) core->thread.join();
}

std::uint16_t MockUpstream::port() const {
  return impl_->port;
}

std::string MockUpstream::base_url() const {
  // A certificate names a host, not an address.
  return (impl_->tls ? "https://localhost:" : "http://127.0.0.1:") + std::to_string(impl_->port) +
         "/v1";
}

std::string MockUpstream::stats() const {
  return impl_->counters.stats();
}
std::uint64_t MockUpstream::requests() const {
  return impl_->counters.requests();
}
std::uint64_t MockUpstream::requests(const std::string& model) const {
  return impl_->counters.requests(model);
}
std::uint64_t MockUpstream::connections() const {
  return impl_->counters.connections;
}
std::uint64_t MockUpstream::aborted() const {
  return impl_->counters.aborted;
}
std::uint64_t MockUpstream::tls_resumed() const {
  return impl_->counters.resumed;
}
void MockUpstream::reset() {
  impl_->counters.reset(0);
}

void MockUpstream::close_idle() {
  impl_->close_idle();
}

}  // namespace fixpoint::test
