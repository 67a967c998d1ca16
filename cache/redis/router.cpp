#include "cache/redis/router.hpp"

#include <algorithm>
#include <utility>

namespace fixpoint::redis {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxRedirects = 5;
constexpr std::size_t kMaxConnections = 1100;  // the masters of the largest cluster, and some
// A failing node makes every look-up ask for the map; this is how often it is fetched.
constexpr milliseconds kRefreshPause{200};

}  // namespace

void Deadlines::add(RequestPtr request) {
  items_.push_back({Clock::now() + time_, std::move(request)});
  arm();
}

void Deadlines::clear() {
  items_.clear();
  timer_.cancel();
}

void Deadlines::arm() {
  if (armed_ || items_.empty()) return;
  armed_ = true;
  timer_.expires_at(items_.front().at);
  timer_.async_wait([this](const error_code& ec) {
    armed_ = false;
    if (ec) return;
    const Clock::time_point now = Clock::now();
    while (!items_.empty() && (items_.front().at <= now || !items_.front().request->done)) {
      const RequestPtr request = std::move(items_.front().request);
      items_.pop_front();
      request->finish(fail(ErrorCode::timeout, std::string("Redis did not answer ") +
                                                   request->what + " within " +
                                                   std::to_string(time_.count()) + " ms"));
    }
    arm();
  });
}

Router::Router(net::io_context& context, RouterOptions options)
    : context_(context),
      options_(std::move(options)),
      lookups_(context, options_.timeout),
      tools_(context, options_.tool_timeout),
      refresh_timer_(context.get_executor()) {}

void Router::start() {
  if (options_.cluster) {
    refresh();
  } else {
    connect(options_.server);
  }
}

void Router::close() {
  closed_ = true;
  lookups_.clear();
  tools_.clear();
  refresh_timer_.cancel();
  for (const auto& [address, connection] : std::exchange(connections_, {})) connection->close();
  const Error error{ErrorCode::closed, "the store was closed"};
  for (const RequestPtr& request : std::exchange(without_map_, {})) {
    request->finish(tl::make_unexpected(error));
  }
  for (const auto& done : std::exchange(masters_wanted_, {})) done(tl::make_unexpected(error));
}

std::shared_ptr<Connection> Router::connect(const Address& address) {
  std::shared_ptr<Connection>& known = connections_[address];
  if (!known) {
    Connection::Owner& owner = *this;
    known = std::make_shared<Connection>(context_, options_.connections, owner, address);
    known->start();
  }
  return known;
}

void Router::send(std::string bytes, const char* what, std::uint16_t slot, Patience patience,
                  Request::Done done) {
  const auto request = std::make_shared<Request>();
  request->bytes = std::move(bytes);
  request->what = what;
  request->slot = slot;
  request->done = std::move(done);
  dispatch(request);
  if (request->done) (patience == Patience::lookup ? lookups_ : tools_).add(request);
}

void Router::send_to(const Address& master, std::string bytes, const char* what,
                     Request::Done done) {
  const auto request = std::make_shared<Request>();
  request->bytes = std::move(bytes);
  request->what = what;
  request->done = std::move(done);
  connect(master)->send(request);
  if (request->done) tools_.add(request);
}

void Router::dispatch(const RequestPtr& request) {
  if (closed_) return request->finish(fail(ErrorCode::closed, "the store was closed"));
  if (!options_.cluster) return connect(options_.server)->send(request);
  if (!map_) {
    if (refresh_error_ && !refreshing_) {
      refresh_soon();
      return request->finish(tl::make_unexpected(*refresh_error_));
    }
    without_map_.push_back(request);
    return refresh();
  }
  const Address* master = map_->master_of(*request->slot);
  if (master != nullptr) return connect(*master)->send(request);
  refresh_soon();
  request->finish(fail(ErrorCode::unreachable, "no node of the Redis cluster serves slot " +
                                                   std::to_string(*request->slot)));
}

void Router::renew() {
  if (!options_.cluster) connect(options_.server)->renew();
}

void Router::on_reply(Connection& connection, const RequestPtr& request, Reply reply) {
  if (!is_error(*reply)) return request->finish(std::move(reply));
  if (options_.cluster) {
    if (const auto to = parse_redirect(text_of(*reply), connection.address())) {
      if (request->slot) return redirect(request, *to);
    }
    if (text_of(*reply).starts_with("CLUSTERDOWN")) refresh_soon();
  }
  request->finish(tl::make_unexpected(error_of(*reply, request->what)));
}

void Router::redirect(const RequestPtr& request, const Redirect& to) {
  if (++request->redirects > kMaxRedirects) {
    return request->finish(fail(ErrorCode::protocol, std::string("Redis redirected ") +
                                                         request->what + " more than 5 times"));
  }
  if (!to.ask) {
    if (map_) map_->set(to.slot, to.node);
    refresh_soon();
  }
  if (connections_.size() >= kMaxConnections && !connections_.contains(to.node)) {
    return request->finish(fail(ErrorCode::protocol, "Redis redirects to ever more nodes"));
  }
  connect(to.node)->send(request, to.ask);
}

void Router::on_failure(Connection&, const RequestPtr& request, const Error& error) {
  if (options_.cluster && request->slot) refresh_soon();
  if (error.code != ErrorCode::closed || request->retried || !request->slot || closed_) {
    return request->finish(tl::make_unexpected(error));
  }
  request->retried = true;
  dispatch(request);
}

void Router::on_down(Connection&, const Error& error) {
  if (options_.cluster) refresh_soon();
  if (options_.on_error) options_.on_error(error);
}

// At once, or when the pause since the last refresh is over.
void Router::refresh_soon() {
  if (refreshing_ || refresh_scheduled_ || closed_) return;
  refresh_scheduled_ = true;
  refresh_timer_.expires_at(refreshed_ + kRefreshPause);
  refresh_timer_.async_wait([this](const error_code& ec) {
    refresh_scheduled_ = false;
    if (!ec) refresh();
  });
}

void Router::refresh() {
  if (refreshing_ || closed_) return;
  refreshing_ = true;
  // The last first: those that are connected, then the one of the configuration, whose name may
  // lead to a node that was not there before.
  std::vector<Address> nodes{options_.server};
  for (const auto& [address, connection] : connections_) {
    if (connection->ready() && address != options_.server) nodes.push_back(address);
  }
  ask_for_map(std::move(nodes), {ErrorCode::unreachable, ""});
}

// The last of `nodes`, and when it fails those before it.
void Router::ask_for_map(std::vector<Address> nodes, Error last) {
  if (nodes.empty() || closed_) return refresh_failed(last);
  const Address asked = std::move(nodes.back());
  nodes.pop_back();
  const auto request = std::make_shared<Request>();
  request->bytes = command({"CLUSTER", "SLOTS"});
  request->what = "CLUSTER SLOTS";
  request->done = [this, asked, rest = std::move(nodes)](Result<Reply> reply) {
    if (!reply) return ask_for_map(rest, reply.error());
    Result<SlotMap> map = SlotMap::parse(**reply, asked);
    if (!map) return ask_for_map(rest, map.error());
    if (map->masters().empty()) {
      return ask_for_map(rest, {ErrorCode::unreachable,
                                "Redis " + asked.name() + " knows no master of the cluster"});
    }
    take_map(std::move(*map));
  };
  connect(asked)->send(request);
  if (request->done) lookups_.add(request);
}

void Router::take_map(SlotMap map) {
  refreshing_ = false;
  refreshed_ = Clock::now();
  refresh_error_.reset();
  map_ = std::move(map);
  const std::vector<Address>& masters = map_->masters();
  // Connections to nodes that have no slots. One that owes answers is kept: it may be the target of
  // an ASK or of a MOVED that this map, another node's, does not know of yet.
  std::vector<std::shared_ptr<Connection>> left;
  std::erase_if(connections_, [&](const auto& item) {
    const bool gone = item.second->idle() &&
                      std::find(masters.begin(), masters.end(), item.first) == masters.end();
    if (gone) left.push_back(item.second);
    return gone;
  });
  for (const Address& master : masters) connect(master);
  for (const auto& connection : left) connection->close();
  for (const RequestPtr& request : std::exchange(without_map_, {})) {
    if (request->done) dispatch(request);
  }
  for (const auto& done : std::exchange(masters_wanted_, {})) done(map_->masters());
}

void Router::refresh_failed(const Error& error) {
  refreshing_ = false;
  refreshed_ = Clock::now();
  refresh_error_ = error;
  for (const RequestPtr& request : std::exchange(without_map_, {})) {
    request->finish(tl::make_unexpected(error));
  }
  for (const auto& done : std::exchange(masters_wanted_, {})) done(tl::make_unexpected(error));
}

void Router::masters(std::function<void(Result<std::vector<Address>>)> done) {
  if (closed_) return done(fail(ErrorCode::closed, "the store was closed"));
  if (!options_.cluster) return done(std::vector<Address>{options_.server});
  masters_wanted_.push_back(std::move(done));
  refresh();
}

}  // namespace fixpoint::redis
