#include "gateway/upstream/client.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "gateway/http/head_scanner.hpp"
#include "gateway/upstream/connection.hpp"
#include "gateway/upstream/request_head.hpp"
#include "gateway/upstream/resolver.hpp"
#include "gateway/upstream/response_parser.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxHead = 64 * 1024;
// 1xx responses before the real one.
constexpr int kMaxInterim = 16;
// When the request could not be written, a response that explains why may already be here, or a
// part of it.
constexpr milliseconds kEarlyResponse{1000};

Url require_url(const std::string& text) {
  Result<Url> url = parse_url(text);
  if (!url) throw std::runtime_error(url.error().message);
  return std::move(*url);
}

std::optional<Proxy> require_proxy(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Result<Proxy> proxy = parse_proxy(text);
  if (!proxy) throw std::runtime_error(proxy.error().message);
  return std::move(*proxy);
}

UpstreamTarget connection_target(const UpstreamOptions& options, const Url& url,
                                 const std::optional<Proxy>& proxy) {
  const bool secure = url.scheme == "https";
  UpstreamTarget target;
  target.host = url.host;
  target.peer = host_and_port(url.host, url.port, 0);
  if (secure) target.tls = TlsPolicy::get(options.ca_file, options.verify_tls);
  if (proxy) {
    target.via = host_and_port(proxy->host, proxy->port, 0);
    if (secure) target.tunnel_head = connect_head(url, *proxy);
  }
  return target;
}

}  // namespace

// Everything of one upstream on one core. Leases and responses hold it, so it outlives the client
// while a response is being read.
struct UpstreamClient::Impl : std::enable_shared_from_this<UpstreamClient::Impl> {
  struct Idle {
    std::unique_ptr<UpstreamConnection> connection;
    Clock::time_point since;
  };
  class Lease;
  class PooledResponse;

  Impl(net::io_context& c, UpstreamOptions o)
      : context(c),
        options(std::move(o)),
        url(require_url(options.base_url)),
        proxy(require_proxy(options.proxy)),
        head_target(request_target(url, proxy ? &*proxy : nullptr)),
        target(connection_target(options, url, proxy)),
        resolver(context, proxy ? proxy->host : url.host, proxy ? proxy->port : url.port),
        idle_deadline(context, [this] { drop_expired(); }) {}

  Task<Result<void>> open(Lease& lease, Clock::time_point end);
  std::unique_ptr<UpstreamConnection> take_idle();
  void keep(std::unique_ptr<UpstreamConnection> connection);
  void drop_expired();
  // A timeout that is the whole call's says so.
  Error named(Error error, Clock::time_point end) const;

  net::io_context& context;
  const UpstreamOptions options;
  const Url url;
  const std::optional<Proxy> proxy;
  const RequestTarget head_target;
  const UpstreamTarget target;  // connections refer to it
  Resolver resolver;
  Deadline idle_deadline;
  std::vector<Idle> idle;  // the one used last is last, and is used first
  std::size_t leased = 0;
};

// A connection out of the pool, counted against max_connections; closed unless it is given back.
class UpstreamClient::Impl::Lease {
 public:
  explicit Lease(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) { ++impl_->leased; }
  ~Lease() { close(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  void give_back() {
    impl_->keep(std::move(connection));
    close();
  }
  void close() {
    connection.reset();
    if (counted_) --impl_->leased;
    counted_ = false;
  }
  Impl& impl() { return *impl_; }

  std::unique_ptr<UpstreamConnection> connection;
  bool reused = false;

 private:
  std::shared_ptr<Impl> impl_;
  bool counted_ = true;
};

class UpstreamClient::Impl::PooledResponse final : public UpstreamResponse {
 public:
  PooledResponse(std::shared_ptr<Impl> impl, Clock::time_point deadline)
      : lease(std::move(impl)), deadline_(deadline) {}

  int status() const override { return parser_->status(); }
  const Headers& headers() const override { return headers_; }
  Task<Result<std::string_view>> read_some() override;

  Task<Result<void>> exchange(const std::string& head, const UpstreamRequest& request);

  Lease lease;
  bool saw_bytes = false;  // of the response
  // When the peer had been sent all of the request.
  Clock::time_point written_at = Clock::time_point::max();

 private:
  Task<Result<void>> read_head(bool no_body, milliseconds first_byte);
  Result<void> decode();
  void end();
  // What a wait may take: the timeout, or what is left of the whole call.
  milliseconds within(milliseconds timeout) const;

  const Clock::time_point deadline_;
  Headers headers_;
  std::optional<ResponseParser> parser_;
  std::string piece_;
  std::optional<Error> error_;
  bool reusable_ = true;  // false: the peer answered without taking the whole request
};

std::unique_ptr<UpstreamConnection> UpstreamClient::Impl::take_idle() {
  while (!idle.empty()) {
    Idle last = std::move(idle.back());
    idle.pop_back();
    if (Clock::now() - last.since < options.idle_ttl && last.connection->is_alive()) {
      return std::move(last.connection);
    }
  }
  return nullptr;
}

void UpstreamClient::Impl::keep(std::unique_ptr<UpstreamConnection> connection) {
  if (options.max_idle_connections == 0) return;
  if (idle.size() >= options.max_idle_connections) idle.erase(idle.begin());
  connection->rest();
  idle.push_back(Idle{std::move(connection), Clock::now()});
  if (idle.size() == 1) idle_deadline.expire_after(options.idle_ttl);
}

void UpstreamClient::Impl::drop_expired() {
  const Clock::time_point oldest = Clock::now() - options.idle_ttl;
  std::erase_if(idle, [oldest](const Idle& entry) { return entry.since <= oldest; });
  if (idle.empty()) return;
  idle_deadline.expire_after(
      std::chrono::ceil<milliseconds>(idle.front().since + options.idle_ttl - Clock::now()));
}

Error UpstreamClient::Impl::named(Error error, Clock::time_point end) const {
  if (error.code == ErrorCode::timeout && Clock::now() >= end) {
    error.message =
        "the call to " + target.name() + " exceeded its time as a whole (total_timeout)";
  }
  return error;
}

// A new connection for the lease.
Task<Result<void>> UpstreamClient::Impl::open(Lease& lease, Clock::time_point end) {
  const Clock::time_point deadline = std::min(end, Clock::now() + options.connect_timeout);
  const Result<std::vector<tcp::endpoint>> endpoints = co_await resolver.resolve(deadline);
  if (!endpoints) co_return tl::make_unexpected(endpoints.error());
  lease.reused = false;
  lease.connection = std::make_unique<UpstreamConnection>(context, target);
  const std::vector<tcp::endpoint>& addresses = *endpoints;
  const Result<void> connected = co_await lease.connection->connect(addresses, deadline);
  if (!connected) resolver.forget();
  co_return connected;
}

// Sends the request on the lease's connection and reads the head of the response.
Task<Result<void>> UpstreamClient::Impl::PooledResponse::exchange(const std::string& head,
                                                                  const UpstreamRequest& request) {
  const UpstreamOptions& settings = lease.impl().options;
  const bool no_body = request.method == "HEAD";
  const std::string_view body = request.body ? std::string_view(*request.body) : "";
  const milliseconds timeout = settings.between_bytes_timeout;
  const Result<void> written = co_await lease.connection->write(head, body, timeout, deadline_);
  if (written) written_at = Clock::now();
  if (written && request.written != nullptr) *request.written = true;
  if (!written && written.error().code == ErrorCode::timeout) co_return written;
  const milliseconds first_byte = written ? settings.first_byte_timeout : kEarlyResponse;
  const Result<void> answered = co_await read_head(no_body, first_byte);
  if (!answered && !written && !saw_bytes) co_return written;
  reusable_ = written.has_value();
  co_return answered;
}

Task<Result<void>> UpstreamClient::Impl::PooledResponse::read_head(bool no_body,
                                                                   milliseconds first_byte) {
  const UpstreamOptions& settings = lease.impl().options;
  const Impl& impl = lease.impl();
  UpstreamConnection& connection = *lease.connection;
  milliseconds timeout = first_byte;
  saw_bytes = !connection.unread().empty();
  for (int interim = 0; interim <= kMaxInterim; ++interim) {
    HeadScanner scanner;
    std::size_t size = 0;
    for (;;) {
      const Result<std::size_t> scanned = scanner.scan(connection.unread());
      if (!scanned) {
        co_return fail(ErrorCode::protocol,
                       "the upstream's response is not valid HTTP: " + scanned.error().message);
      }
      size = *scanned;
      const std::size_t head = size != 0 ? size : connection.unread().size();
      if (head > kMaxHead) {
        co_return fail(ErrorCode::protocol, "the upstream's response header exceeds the limit of " +
                                                std::to_string(kMaxHead) + " bytes");
      }
      if (size != 0) break;
      const Result<bool> more = co_await connection.read(within(timeout));
      if (!more) co_return tl::make_unexpected(more.error());
      if (!*more) {
        co_return fail(ErrorCode::closed, "the upstream closed before its response");
      }
      saw_bytes = true;
      timeout = settings.between_bytes_timeout;
    }
    headers_ = Headers{};
    parser_.emplace(headers_, no_body, settings.max_response_bytes);
    const Result<void> parsed = parser_->put_head(connection.unread().substr(0, size));
    connection.consume(size);
    if (!parsed) co_return parsed;
    if (parser_->status() == 407 && impl.proxy && impl.target.tunnel_head.empty()) {
      co_return fail(ErrorCode::unreachable,
                     "proxy " + impl.target.via + " refused the request: HTTP 407");
    }
    if (parser_->status() >= 200) co_return Result<void>();
    if (parser_->status() == 101) {
      co_return fail(ErrorCode::protocol, "the upstream switched protocols without being asked");
    }
    // After a 1xx the real answer may take as long as a first byte.
    timeout = first_byte;
  }
  co_return fail(ErrorCode::protocol, "the upstream sent more than " + std::to_string(kMaxInterim) +
                                          " interim responses");
}

milliseconds UpstreamClient::Impl::PooledResponse::within(milliseconds timeout) const {
  if (deadline_ == Clock::time_point::max()) return timeout;
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
  return std::clamp(left, milliseconds(0), timeout);
}

// Decodes what has arrived into piece_.
Result<void> UpstreamClient::Impl::PooledResponse::decode() {
  UpstreamConnection& connection = *lease.connection;
  if (connection.unread().empty()) return {};
  const Result<std::size_t> used = parser_->put_body(connection.unread(), piece_);
  if (!used) return tl::make_unexpected(used.error());
  connection.consume(*used);
  if (!parser_->done() && connection.unread().size() > kMaxChunkLine) {
    return fail(ErrorCode::protocol,
                "a chunk header or trailer of the upstream exceeds the limit of " +
                    std::to_string(kMaxChunkLine) + " bytes");
  }
  return {};
}

void UpstreamClient::Impl::PooledResponse::end() {
  if (!lease.connection) return;
  if (reusable_ && parser_->keep_alive() && lease.connection->unread().empty()) {
    lease.give_back();
  } else {
    lease.close();
  }
}

Task<Result<std::string_view>> UpstreamClient::Impl::PooledResponse::read_some() {
  piece_.clear();
  while (!error_ && piece_.empty() && !parser_->done()) {
    const Result<void> decoded = decode();
    if (!decoded) {
      error_ = decoded.error();
      break;
    }
    if (!piece_.empty() || parser_->done()) break;
    const milliseconds timeout = within(lease.impl().options.between_bytes_timeout);
    if (timeout == milliseconds(0)) {  // bytes may still come, without a pause
      error_ = Error{ErrorCode::timeout, {}};
      break;
    }
    const Result<bool> more = co_await lease.connection->read(timeout);
    if (!more) {
      error_ = more.error();
    } else if (!*more) {
      const Result<void> ended = parser_->put_end();
      if (!ended) error_ = ended.error();
    }
  }
  if (error_) {
    lease.close();
    error_ = lease.impl().named(std::move(*error_), deadline_);
    co_return tl::make_unexpected(*error_);
  }
  if (parser_->done()) end();
  co_return std::string_view(piece_);
}

UpstreamClient::UpstreamClient(net::io_context& context, UpstreamOptions options)
    : impl_(std::make_shared<Impl>(context, std::move(options))) {}

UpstreamClient::~UpstreamClient() {
  impl_->idle_deadline.cancel();
  impl_->idle.clear();
}

Task<Result<std::unique_ptr<UpstreamResponse>>> UpstreamClient::send(
    const UpstreamRequest& request) {
  const std::shared_ptr<Impl> impl = impl_;
  const UpstreamOptions& settings = impl->options;
  const Result<std::string> head = render_request_head(request, impl->head_target);
  if (!head) co_return tl::make_unexpected(head.error());
  const std::string& text = *head;
  Clock::time_point deadline = Clock::time_point::max();
  if (request.deadline) {
    deadline = *request.deadline;
  } else if (settings.total_timeout > milliseconds(0)) {
    deadline = Clock::now() + settings.total_timeout;
  }
  for (bool fresh = false;; fresh = true) {
    if (impl->leased >= settings.max_connections) {
      co_return fail(ErrorCode::overloaded,
                     "upstream " + impl->target.peer + " has max_connections of " +
                         std::to_string(settings.max_connections) + " in use");
    }
    auto response = std::make_unique<Impl::PooledResponse>(impl, deadline);
    Impl::Lease& lease = response->lease;
    if (!fresh) lease.connection = impl->take_idle();
    lease.reused = lease.connection != nullptr;
    const bool reused = lease.reused;
    if (!reused) {
      const Result<void> opened = co_await impl->open(lease, deadline);
      if (!opened) co_return tl::make_unexpected(impl->named(opened.error(), deadline));
    }
    const Result<void> answered = co_await response->exchange(text, request);
    if (answered) {
      std::unique_ptr<UpstreamResponse> result = std::move(response);
      co_return std::move(result);
    }
    // The peer closed an idle connection just as it was used again.
    const bool stale = reused && answered.error().code == ErrorCode::closed &&
                       !response->saw_bytes &&
                       Clock::now() - settings.stale_close < response->written_at;
    if (!stale) co_return tl::make_unexpected(impl->named(answered.error(), deadline));
    if (request.sent_again != nullptr) *request.sent_again = true;
  }
}

Task<Result<std::string>> UpstreamClient::read_all(UpstreamResponse& response) {
  std::string body;
  for (;;) {
    const Result<std::string_view> piece = co_await response.read_some();
    if (!piece) co_return tl::make_unexpected(piece.error());
    if (piece->empty()) co_return body;
    body += *piece;
  }
}

}  // namespace fixpoint
