// One connection to one Redis node, which comes back by itself.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cache/redis/asio.hpp"
#include "cache/redis/codec.hpp"
#include "cache/redis/url.hpp"

namespace fixpoint::redis {

// One command on its way. Answered once: by the server, a lost connection or its deadline.
struct Request {
  using Done = std::function<void(Result<Reply>)>;  // never hears of an error reply as a Reply

  std::string bytes;                  // the formatted command; freed with the answer
  const char* what = "";              // the command's name, for messages
  std::optional<std::uint16_t> slot;  // none: for the node it was sent to and no other
  Done done;                          // empty once it was called
  int redirects = 0;
  bool retried = false;  // was sent again after a connection was lost

  void finish(Result<Reply> result);  // does nothing the second time
};
using RequestPtr = std::shared_ptr<Request>;

// Connects as soon as it is started, logs in, and after every loss connects again, at once or, when
// that fails, after a pause that grows from 50 ms to a second, with jitter. Commands are pipelined:
// those of one turn of the loop leave with one write, answers come in the order of the commands. A
// command whose deadline has passed stays in that order, and its late answer is dropped.
//
// Lives on one io_context with one thread; all is called there, and calls its owner there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Any reply, error replies too, to a request that waits for one.
    virtual void on_reply(Connection& connection, const RequestPtr& request, Reply reply) = 0;
    // closed: the request may have reached the server; unreachable: it did not.
    virtual void on_failure(Connection& connection, const RequestPtr& request,
                            const Error& error) = 0;
    // After each loss and each failed attempt to connect, before on_failure().
    virtual void on_down(Connection& connection, const Error& error) = 0;
  };
  // What all connections of a store have in common.
  struct Settings {
    std::string user, password;  // empty password: no login
    std::uint32_t database = 0;
    std::shared_ptr<net::ssl::context> tls;  // null: plain
    // An attempt to connect that takes longer makes the node one that is away.
    std::chrono::milliseconds patience{100};
    std::chrono::milliseconds connect_timeout{2000};
    // Nothing heard for so long while an answer is due: the connection is dead.
    std::chrono::milliseconds silence{500};
  };

  // `settings` and `owner` outlive the connection's last handler on `context`.
  Connection(net::io_context& context, const Settings& settings, Owner& owner, Address address);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  // Fails at once while the node is away. `asking`: with ASKING before it.
  void send(const RequestPtr& request, bool asking = false);
  // Drops the connection and makes a new one, if this one is older than five seconds.
  void renew();
  // For good. Waiting requests fail as closed.
  void close();

  const Address& address() const { return address_; }
  bool ready() const { return ready_; }
  bool idle() const { return waiting_.empty(); }  // no answer is due
  // The last attempt failed, or the present one takes too long.
  bool away() const {
    return away_ || (!ready_ && Clock::now() - attempt_began_ > settings_.patience);
  }

 private:
  struct Link;  // what one attempt to connect uses; handlers of an older one touch nothing else
  using LinkPtr = std::shared_ptr<Link>;

  static Task<void> run(std::shared_ptr<Connection> self);
  Task<Result<void>> open(LinkPtr link);
  Task<Result<void>> secure(LinkPtr link);
  Task<Result<void>> log_in(LinkPtr link);
  Task<Error> read_replies(LinkPtr link);
  Task<Result<void>> read_some(LinkPtr link);
  Result<void> take_reply(Reply reply);
  Error failure(const Link& link, const std::string& what, const error_code& ec) const;
  void arm(const LinkPtr& link, Clock::time_point deadline);
  void go_down(Error why, bool lasted);
  void schedule_flush();
  void flush();
  void watch();
  std::chrono::milliseconds pause();

  net::io_context& context_;
  const Settings& settings_;
  Owner& owner_;
  const Address address_;
  Timer timer_;  // of an attempt, or of the pause before one
  Timer silence_timer_;
  bool watching_ = false;
  Clock::time_point last_heard_{};  // or the first command that nothing was waiting before

  LinkPtr link_;
  bool ready_ = false, closed_ = false, away_ = false;
  Clock::time_point attempt_began_ = Clock::now(), ready_since_{};
  int failures_ = 0;
  Error last_error_{ErrorCode::unreachable, ""};
  std::minstd_rand jitter_{std::random_device{}()};

  std::deque<RequestPtr> waiting_;  // for replies, in order; null: the reply to ASKING
  std::string out_;                 // commands of waiting_ that were not handed to a write yet
  bool flush_scheduled_ = false;
};

}  // namespace fixpoint::redis
