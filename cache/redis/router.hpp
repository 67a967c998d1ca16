// Sends each command to the node that has its key.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/redis/connection.hpp"
#include "cache/redis/slots.hpp"

namespace fixpoint::redis {

// Ends requests that were not answered within a time that is the same for all of them.
class Deadlines {
 public:
  Deadlines(net::io_context& context, std::chrono::milliseconds time)
      : time_(time), timer_(context.get_executor()) {}

  void add(RequestPtr request);
  void clear();

 private:
  struct Item {
    Clock::time_point at;
    RequestPtr request;
  };
  void arm();

  const std::chrono::milliseconds time_;
  Timer timer_;
  std::deque<Item> items_;  // in the order of their deadlines, answered ones too
  bool armed_ = false;
};

struct RouterOptions {
  Address server;  // of a cluster: any node
  bool cluster = false;
  std::chrono::milliseconds timeout, tool_timeout;
  Connection::Settings connections;
  std::function<void(const Error&)> on_error;
};

// The connections to one server, or to all masters of a cluster whose map it keeps: it asks for the
// map at the start, after a MOVED and when a node fails, follows at most five redirections of a
// command, and sends a command once more when a connection is lost (all commands that a store sends
// can be repeated). Lives on the io_context's one thread; all is called there, and so are
// callbacks.
class Router : private Connection::Owner {
 public:
  enum class Patience { lookup, tool };  // which of the two timeouts

  Router(net::io_context& context, RouterOptions options);

  void start();
  // Every request that was not answered fails as closed. Nothing may be sent afterwards.
  void close();

  // `bytes` is a formatted command about the one key that has this slot; `what` its name.
  void send(std::string bytes, const char* what, std::uint16_t slot, Patience patience,
            Request::Done done);
  // To this master and no other, not repeated. With the tools' patience.
  void send_to(const Address& master, std::string bytes, const char* what, Request::Done done);
  // The masters that serve slots; a cluster is asked anew.
  void masters(std::function<void(Result<std::vector<Address>>)> done);
  // Of a server that is no cluster: connects again, in case its name has moved to another machine.
  void renew();

 private:
  void on_reply(Connection& connection, const RequestPtr& request, Reply reply) override;
  void on_failure(Connection& connection, const RequestPtr& request, const Error& error) override;
  void on_down(Connection& connection, const Error& error) override;

  void dispatch(const RequestPtr& request);
  void redirect(const RequestPtr& request, const Redirect& to);
  std::shared_ptr<Connection> connect(const Address& address);
  void refresh_soon();
  void refresh();
  void ask_for_map(std::vector<Address> nodes, Error last);
  void take_map(SlotMap map);
  void refresh_failed(const Error& error);

  net::io_context& context_;
  const RouterOptions options_;
  Deadlines lookups_, tools_;
  std::map<Address, std::shared_ptr<Connection>> connections_;
  bool closed_ = false;

  // Of a cluster.
  std::optional<SlotMap> map_;
  bool refreshing_ = false, refresh_scheduled_ = false;
  Clock::time_point refreshed_{};       // when the last refresh ended
  std::optional<Error> refresh_error_;  // of the last refresh
  Timer refresh_timer_;
  std::vector<RequestPtr> without_map_;
  std::vector<std::function<void(Result<std::vector<Address>>)>> masters_wanted_;
};

}  // namespace fixpoint::redis
