#include "cache/redis/connection.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <utility>

#include "cache/base/release.hpp"
#include "cache/redis/tls.hpp"

namespace fixpoint::redis {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kRead = 64 * 1024;
constexpr std::size_t kKeepBuffer = 1 << 20;  // larger ones are given back after use
constexpr milliseconds kFirstPause{50}, kLongestPause{1000};
// A connection that is lost sooner counts as a failed attempt: otherwise a server that breaks every
// connection would be connected to without pause.
constexpr milliseconds kLasted{1000};
constexpr milliseconds kRenewAfter{5000};

// Out of memory, or a bug. A store that never connects again would hide it.
void end_of_process(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

struct Connection::Link {
  explicit Link(const Executor& executor) : socket(executor) {}

  Socket socket;
  std::optional<TlsStream> tls;
  ReplyReader replies;
  std::array<char, kRead> in;
  std::string writing;
  std::string why;  // we closed it

  void close(std::string reason) {
    if (why.empty()) why = std::move(reason);
    error_code ignored;
    socket.close(ignored);
  }
};

void Request::finish(Result<Reply> result) {
  if (!done) return;
  const Done call = std::exchange(done, nullptr);
  release(bytes);
  call(std::move(result));
}

Connection::Connection(net::io_context& context, const Settings& settings, Owner& owner,
                       Address address)
    : context_(context),
      settings_(settings),
      owner_(owner),
      address_(std::move(address)),
      timer_(context.get_executor()),
      silence_timer_(context.get_executor()) {}

void Connection::start() {
  net::co_spawn(context_.get_executor(), run(shared_from_this()), end_of_process);
}

Task<void> Connection::run(std::shared_ptr<Connection> self) {
  while (!self->closed_) {
    const LinkPtr link = std::make_shared<Link>(self->context_.get_executor());
    self->link_ = link;
    const Result<void> opened = co_await self->open(link);
    Error why{ErrorCode::closed, ""};
    if (opened && !self->closed_) {
      self->ready_ = true;
      self->away_ = false;
      self->ready_since_ = self->last_heard_ = Clock::now();
      self->flush();
      self->watch();
      why = co_await self->read_replies(link);
    } else if (!opened) {
      why = opened.error();
    }
    link->close("");
    if (self->closed_) break;
    const bool lasted = self->ready_ && Clock::now() - self->ready_since_ >= kLasted;
    self->go_down(std::move(why), lasted);
    if (self->closed_) break;
    if (lasted) continue;
    error_code ec;
    self->timer_.expires_after(self->pause());
    co_await self->timer_.async_wait(net::redirect_error(use_task, ec));
  }
}

milliseconds Connection::pause() {
  const int doublings = std::min(failures_ - 1, 5);
  const milliseconds longest = std::min(kFirstPause * (1 << doublings), kLongestPause);
  std::uniform_int_distribution<long> share(longest.count() / 2, longest.count());
  return milliseconds(share(jitter_));
}

void Connection::go_down(Error why, bool lasted) {
  ready_ = false;
  away_ = !lasted;
  failures_ = lasted ? 0 : failures_ + 1;
  attempt_began_ = Clock::now();
  last_error_ = {ErrorCode::unreachable, why.message};
  out_.clear();
  silence_timer_.cancel();
  owner_.on_down(*this, why);
  // The owner may send them again, and to this connection.
  for (const RequestPtr& request : std::exchange(waiting_, {})) {
    if (request && request->done) owner_.on_failure(*this, request, why);
  }
}

void Connection::close() {
  closed_ = true;
  ready_ = false;
  timer_.cancel();
  silence_timer_.cancel();
  if (link_) link_->close("");
  const Error why{ErrorCode::closed, "the connection to Redis " + address_.name() + " was closed"};
  for (const RequestPtr& request : std::exchange(waiting_, {})) {
    if (request && request->done) owner_.on_failure(*this, request, why);
  }
}

void Connection::renew() {
  if (ready_ && Clock::now() - ready_since_ > kRenewAfter) link_->close("left for a new one");
}

void Connection::send(const RequestPtr& request, bool asking) {
  if (closed_ || away()) {
    const Error why{ErrorCode::unreachable, last_error_.message.empty()
                                                ? "Redis " + address_.name() + " does not answer"
                                                : last_error_.message};
    owner_.on_failure(*this, request, why);
    return;
  }
  if (waiting_.empty()) last_heard_ = Clock::now();
  if (asking) {
    append_command(out_, {"ASKING"});
    waiting_.push_back(nullptr);
  }
  out_ += request->bytes;
  waiting_.push_back(request);
  schedule_flush();
  watch();
}

void Connection::schedule_flush() {
  if (flush_scheduled_ || !ready_) return;
  flush_scheduled_ = true;
  net::post(context_, [self = shared_from_this()] {
    self->flush_scheduled_ = false;
    self->flush();
  });
}

void Connection::flush() {
  if (!ready_ || out_.empty() || !link_->writing.empty()) return;
  std::swap(out_, link_->writing);
  const auto written = [self = shared_from_this(), link = link_](const error_code& ec,
                                                                 std::size_t) {
    link->writing.clear();
    if (link->writing.capacity() > kKeepBuffer) release(link->writing);
    if (link != self->link_) return;
    if (ec) {
      link->close("writing failed: " + ec.message());
    } else {
      self->flush();
    }
  };
  const net::const_buffer bytes = net::buffer(link_->writing);
  if (link_->tls) {
    net::async_write(*link_->tls, bytes, written);
  } else {
    net::async_write(link_->socket, bytes, written);
  }
}

// Armed only while an answer is due.
void Connection::watch() {
  if (watching_ || !ready_ || waiting_.empty()) return;
  watching_ = true;
  silence_timer_.expires_at(last_heard_ + settings_.silence);
  silence_timer_.async_wait([self = shared_from_this(), link = link_](const error_code& ec) {
    self->watching_ = false;
    const bool silent = Clock::now() - self->last_heard_ >= self->settings_.silence;
    if (!ec && link == self->link_ && !self->waiting_.empty() && silent) {
      link->close("no answer for " + std::to_string(self->settings_.silence.count()) + " ms");
      return;
    }
    self->watch();
  });
}

void Connection::arm(const LinkPtr& link, Clock::time_point deadline) {
  timer_.expires_at(deadline);
  timer_.async_wait([link](const error_code& ec) {
    if (!ec) link->close("connecting took too long");
  });
}

Error Connection::failure(const Link& link, const std::string& what, const error_code& ec) const {
  return {ErrorCode::unreachable,
          what + " Redis " + address_.name() + ": " + (link.why.empty() ? ec.message() : link.why)};
}

Task<Result<void>> Connection::open(LinkPtr link) {
  const Clock::time_point deadline = Clock::now() + settings_.connect_timeout;
  error_code ec;
  std::vector<tcp::endpoint> endpoints;
  const net::ip::address numeric = net::ip::make_address(address_.host, ec);
  if (!ec) {
    endpoints.emplace_back(numeric, address_.port);
  } else {
    net::ip::basic_resolver<tcp, Executor> resolver(context_.get_executor());
    const std::string port = std::to_string(address_.port);
    const auto found =
        co_await resolver.async_resolve(address_.host, port, net::redirect_error(use_task, ec));
    if (ec) co_return tl::make_unexpected(failure(*link, "cannot resolve the name of", ec));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  ec = net::error::host_not_found;
  for (std::size_t i = 0; i < endpoints.size() && !closed_; ++i) {
    // Each address gets an equal share of the time that is left.
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      ec = net::error::timed_out;
      break;
    }
    arm(link, now + (deadline - now) / static_cast<long>(endpoints.size() - i));
    error_code ignored;
    link->socket.close(ignored);
    link->why.clear();
    co_await link->socket.async_connect(endpoints[i], net::redirect_error(use_task, ec));
    if (!ec) break;
  }
  timer_.cancel();
  if (ec || closed_) co_return tl::make_unexpected(failure(*link, "cannot connect to", ec));
  error_code ignored;
  link->socket.set_option(tcp::no_delay(true), ignored);
  link->socket.set_option(net::socket_base::keep_alive(true), ignored);
  arm(link, deadline);
  Result<void> done = co_await secure(link);
  if (done) {
    done = co_await log_in(link);
  }
  timer_.cancel();
  co_return done;
}

Task<Result<void>> Connection::secure(LinkPtr link) {
  if (!settings_.tls) co_return Result<void>();
  link->tls.emplace(link->socket, *settings_.tls);
  const Result<void> expected = expect_host(*link->tls, address_.host);
  if (!expected) co_return expected;
  error_code ec;
  co_await link->tls->async_handshake(net::ssl::stream_base::client,
                                      net::redirect_error(use_task, ec));
  if (!ec) co_return Result<void>();
  Error error = failure(*link, "no TLS with", ec);
  if (link->why.empty()) error.message += " (" + handshake_failure(*link->tls, ec) + ")";
  co_return tl::make_unexpected(error);
}

// The PING shows that commands are answered: a stopped server's kernel still accepts, and one that
// loads its data or wants a password refuses it.
Task<Result<void>> Connection::log_in(LinkPtr link) {
  std::vector<const char*> sent;
  std::string bytes;
  if (!settings_.password.empty()) {
    sent.push_back("AUTH");
    if (settings_.user.empty()) {
      append_command(bytes, {"AUTH", settings_.password});
    } else {
      append_command(bytes, {"AUTH", settings_.user, settings_.password});
    }
  }
  if (settings_.database != 0) {
    const std::string database = std::to_string(settings_.database);
    sent.push_back("SELECT");
    append_command(bytes, {"SELECT", database});
  }
  sent.push_back("PING");
  append_command(bytes, {"PING"});
  error_code ec;
  const net::const_buffer buffer = net::buffer(bytes);
  if (link->tls) {
    co_await net::async_write(*link->tls, buffer, net::redirect_error(use_task, ec));
  } else {
    co_await net::async_write(link->socket, buffer, net::redirect_error(use_task, ec));
  }
  if (ec) co_return tl::make_unexpected(failure(*link, "cannot log in to", ec));
  for (std::size_t answered = 0; answered < sent.size();) {
    Result<Reply> reply = link->replies.next();
    if (!reply)
      co_return tl::make_unexpected(
          Error{ErrorCode::unreachable, "Redis " + address_.name() + ": " + reply.error().message});
    if (!*reply) {
      const Result<void> more = co_await read_some(link);
      if (!more) co_return more;
      continue;
    }
    const char* what = sent[answered++];
    // A user who may not PING is a user.
    const bool refused = is_error(**reply) && !text_of(**reply).starts_with("NOPERM");
    if (!refused) continue;
    Error error = error_of(**reply, what);
    error.code = ErrorCode::unreachable;
    error.message = "Redis " + address_.name() + ": " + error.message;
    co_return tl::make_unexpected(error);
  }
  co_return Result<void>();
}

Task<Result<void>> Connection::read_some(LinkPtr link) {
  error_code ec;
  std::size_t n = 0;
  const net::mutable_buffer space = net::buffer(link->in);
  if (link->tls) {
    n = co_await link->tls->async_read_some(space, net::redirect_error(use_task, ec));
  } else {
    n = co_await link->socket.async_read_some(space, net::redirect_error(use_task, ec));
  }
  if (ec) {
    Error error = failure(*link, "lost the connection to", ec);
    error.code = ErrorCode::closed;
    co_return tl::make_unexpected(error);
  }
  last_heard_ = Clock::now();
  const Result<void> fed = link->replies.feed({link->in.data(), n});
  co_return fed;
}

Task<Error> Connection::read_replies(LinkPtr link) {
  for (;;) {
    const Result<void> more = co_await read_some(link);
    if (!more) co_return more.error();
    for (;;) {
      Result<Reply> reply = link->replies.next();
      if (!reply) co_return reply.error();
      if (!*reply) break;
      const Result<void> taken = take_reply(std::move(*reply));
      if (!taken) co_return taken.error();
      if (closed_) co_return Error{ErrorCode::closed, ""};
    }
  }
}

Result<void> Connection::take_reply(Reply reply) {
  if (waiting_.empty()) {
    return fail(ErrorCode::protocol,
                "Redis " + address_.name() + " sent a reply that nobody asked for");
  }
  const RequestPtr request = std::move(waiting_.front());
  waiting_.pop_front();
  if (request && request->done) owner_.on_reply(*this, request, std::move(reply));
  return {};
}

}  // namespace fixpoint::redis
