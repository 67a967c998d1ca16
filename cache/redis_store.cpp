// The response cache in Redis, shared by several gateways.
#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/base/digest.hpp"
#include "cache/redis/record.hpp"
#include "cache/redis/router.hpp"
#include "cache/redis/tls.hpp"
#include "cache/redis/url.hpp"
#include "cache/redis/walk.hpp"
#include "cache/store.hpp"

namespace fixpoint {
namespace {

namespace net = redis::net;
using std::chrono::milliseconds;

// Names in a tag have a limit of their own (redis/record.cpp); nobody's are that long.
constexpr std::size_t kMaxNames = 64 * 1024;
constexpr std::size_t kMaxPrefix = 256;
// An answer has this much around the value.
constexpr std::size_t kMaxValue = redis::ReplyReader::kMaxReply - 1024;

Store::Found compared(const CacheKey& key, EntryPtr entry) {
  if (!same_material(key, entry->key.material)) {
    return fail(ErrorCode::corrupt, key.name() + ": the stored key material is not the request's");
  }
  return entry;
}

// All but the members said to be for every thread belongs to the store's own thread, which runs the
// connections too; calls reach it as messages, in their order.
class RedisStore final : public Store {
 public:
  RedisStore(const RedisStoreOptions& options, redis::RouterOptions router)
      : limits_(options.limits),
        max_queue_bytes_(options.max_queue_bytes),
        prefix_(options.prefix),
        on_error_(options.on_error),
        work_(io_.get_executor()),
        waits_(io_, options.timeout),
        router_(io_, std::move(router)),
        walk_(io_, router_, prefix_),
        thread_([this] { io_.run(); }) {
    net::post(io_, [this] { router_.start(); });
  }

  // Waits for queued writes, which end within the timeouts; look-ups fail.
  ~RedisStore() override {
    flush();
    net::post(io_, [this] {
      waits_.clear();
      router_.close();
    });
    work_.reset();
    thread_.join();
  }

  void get(const CacheKey& key, GetDone done) override {
    net::post(io_, [this, key, done = std::move(done)]() mutable {
      look_up(std::move(key), std::move(done));
    });
  }
  void put(EntryPtr entry) override;
  Result<std::uint64_t> purge(const EntryFilter& filter) override {
    flush();
    return walk_.purge(filter);
  }
  Result<std::uint64_t> for_each(const EntryFilter& filter,
                                 const std::function<bool(const Entry&)>& visit) override {
    flush();
    return walk_.for_each(filter, visit);
  }
  Result<StoreStats> stats() override {
    flush();
    return walk_.stats();
  }
  void flush() override;
  std::uint64_t failed_writes() const override { return failed_; }
  bool shared() const override { return true; }

 private:
  // The puts of one key that were not answered yet: at most one is on its way, and of those that
  // came after it only the last is written. So look-ups see them, whatever connections do, and a
  // later one never loses to an earlier one.
  struct Pending {
    EntryPtr entry;                              // the last
    std::size_t writing_bytes = 0;               // of the queue's limit
    std::size_t next_bytes = 0;                  // 0: the last is on its way
    std::vector<std::shared_ptr<void>> flushes;  // released when nothing is pending
  };

  void look_up(CacheKey key, GetDone done);
  void answer(const CacheKey& key, const GetDone& done, const Result<redis::Reply>& reply);
  void keep(EntryPtr entry, std::size_t bytes);
  void write(const std::string& name, Pending& pending);
  void written(const std::string& name, const Result<redis::Reply>& reply);
  void refused(const Error& error);

  const StoreLimits limits_;
  const std::size_t max_queue_bytes_;
  const std::string prefix_;
  const std::function<void(const Error&)> on_error_;
  std::atomic<std::size_t> queued_bytes_ = 0;  // for every thread
  std::atomic<std::uint64_t> failed_ = 0;      // for every thread

  net::io_context io_{1};
  net::executor_work_guard<redis::Executor> work_;
  redis::Deadlines waits_;  // of look-ups that wait for a put
  redis::Router router_;
  redis::Walk walk_;                                  // for every thread
  std::unordered_map<std::string, Pending> pending_;  // by the key's name in Redis
  std::thread thread_;                                // last: it uses all of the above
};

void RedisStore::look_up(CacheKey key, GetDone done) {
  if (const Result<CacheKey> valid = parse_key_name(key.name()); !valid) {
    return done(tl::make_unexpected(valid.error()));
  }
  const std::string name = redis::record_key(prefix_, key);
  const auto found = pending_.find(name);
  if (found != pending_.end() && found->second.entry->keeps_first) {
    // Which answer the key has is known when that put is over; it has more time than a look-up.
    const auto wait = std::make_shared<redis::Request>();
    wait->what = "SET";
    wait->done = [done](const Result<redis::Reply>& late) {
      done(tl::make_unexpected(late.error()));
    };
    waits_.add(wait);
    const auto again = [this, wait, key = std::move(key), done = std::move(done)](void*) {
      net::post(io_, [this, wait, key, done] {
        if (std::exchange(wait->done, nullptr)) look_up(key, done);
      });
    };
    found->second.flushes.emplace_back(nullptr, again);
    return;
  }
  if (found != pending_.end()) return done(compared(key, found->second.entry));
  router_.send(redis::command({"GET", name}), "GET", redis::key_slot(name),
               redis::Router::Patience::lookup,
               [this, key = std::move(key), done = std::move(done)](Result<redis::Reply> reply) {
                 answer(key, done, reply);
               });
}

void RedisStore::answer(const CacheKey& key, const GetDone& done,
                        const Result<redis::Reply>& reply) {
  if (!reply) {
    Error error = reply.error();
    if (error.code == ErrorCode::closed) error.code = ErrorCode::unreachable;
    return done(tl::make_unexpected(std::move(error)));
  }
  if (redis::is_nil(**reply)) return done(EntryPtr());
  if (!redis::is_text(**reply)) {
    return done(fail(ErrorCode::protocol, "Redis's answer to GET is not a string"));
  }
  Result<Entry> entry = redis::decode_record(redis::text_of(**reply));
  if (!entry) {
    return done(fail(entry.error().code, key.name() + ": " + entry.error().message));
  }
  if (entry->key.kind != key.kind || entry->key.hex != key.hex) {
    return done(fail(ErrorCode::corrupt, key.name() + ": Redis has another key's entry there"));
  }
  done(compared(key, std::make_shared<const Entry>(std::move(*entry))));
}

void RedisStore::put(EntryPtr entry) {
  if (!entry || entry->body == nullptr) {
    throw std::invalid_argument("Store::put: entry without a body");
  }
  if (const Result<CacheKey> valid = parse_key_name(entry->key.name()); !valid) {
    throw std::invalid_argument("Store::put: " + valid.error().message);
  }
  const std::size_t bytes = size_in_queue(*entry);
  const bool fits = entry->model.size() <= kMaxNames && entry->tenant.size() <= kMaxNames;
  if (!fits || queued_bytes_.fetch_add(bytes) + bytes > max_queue_bytes_) {
    if (fits) queued_bytes_ -= bytes;
    ++failed_;
    return;
  }
  net::post(io_, [this, entry = std::move(entry), bytes] { keep(entry, bytes); });
}

void RedisStore::keep(EntryPtr entry, std::size_t bytes) {
  const std::string name = redis::record_key(prefix_, entry->key);
  Pending& pending = pending_[name];
  pending.entry = std::move(entry);
  if (pending.writing_bytes != 0) {
    queued_bytes_ -= std::exchange(pending.next_bytes, bytes);
    return;
  }
  pending.writing_bytes = bytes;
  write(name, pending);
}

void RedisStore::write(const std::string& name, Pending& pending) {
  const std::string value = redis::encode_record(*pending.entry, limits_.compress_above);
  if (value.size() > kMaxValue) {
    return written(name, fail(ErrorCode::invalid, "an entry is too large for Redis"));
  }
  const bool first = pending.entry->keeps_first;
  std::string bytes;
  if (limits_.ttl.count() > 0) {
    // By the entry's own age. One that is too old already replaces what is there, and goes.
    const auto now = std::chrono::duration_cast<milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const milliseconds age = now - milliseconds(pending.entry->created_ms);
    const auto left =
        std::to_string(std::clamp(limits_.ttl - age, milliseconds(1), limits_.ttl).count());
    bytes = first ? redis::command({"SET", name, value, "PX", left, "NX"})
                  : redis::command({"SET", name, value, "PX", left});
  } else {
    bytes =
        first ? redis::command({"SET", name, value, "NX"}) : redis::command({"SET", name, value});
  }
  router_.send(std::move(bytes), "SET", redis::key_slot(name), redis::Router::Patience::tool,
               [this, name](Result<redis::Reply> reply) { written(name, reply); });
}

void RedisStore::written(const std::string& name, const Result<redis::Reply>& reply) {
  if (!reply) refused(reply.error());
  const auto found = pending_.find(name);
  Pending& pending = found->second;
  queued_bytes_ -= pending.writing_bytes;
  pending.writing_bytes = std::exchange(pending.next_bytes, 0);
  if (pending.writing_bytes == 0) {
    pending_.erase(found);
  } else {
    write(name, pending);
  }
}

void RedisStore::refused(const Error& error) {
  ++failed_;
  if (on_error_) on_error_(error);
  // A replica now, perhaps: then the name may lead to the new master.
  if (error.code == ErrorCode::io) router_.renew();
}

void RedisStore::flush() {
  // Released by the last put that is pending now, or here.
  const auto promise = std::make_shared<std::promise<void>>();
  std::future<void> future = promise->get_future();
  std::shared_ptr<void> release(promise.get(), [promise](void*) { promise->set_value(); });
  net::post(io_, [this, release = std::move(release)] {
    for (auto& [name, pending] : pending_) pending.flushes.push_back(release);
  });
  future.wait();
}

}  // namespace

Result<std::unique_ptr<Store>> open_redis_store(const RedisStoreOptions& options) {
  const Result<redis::Url> url = redis::parse_url(options.url);
  if (!url) return tl::make_unexpected(url.error());
  if (options.cluster && url->database != 0) {
    return fail(ErrorCode::invalid, "redis url: a cluster has no databases but 0");
  }
  if (options.prefix.size() > kMaxPrefix ||
      options.prefix.find_first_of("{}") != std::string::npos) {
    return fail(ErrorCode::invalid, "redis prefix: at most 256 bytes, without \"{\" and \"}\"");
  }
  redis::RouterOptions router;
  router.server = url->address;
  router.cluster = options.cluster;
  router.timeout = options.timeout;
  router.tool_timeout = options.tool_timeout;
  router.on_error = options.on_error;
  router.connections.user = url->user;
  router.connections.password = url->password;
  router.connections.database = url->database;
  router.connections.patience = options.timeout;
  router.connections.silence = std::max(router.connections.silence, 3 * options.timeout);
  if (url->tls) {
    Result<std::shared_ptr<net::ssl::context>> context = redis::make_tls_context(options.ca_file);
    if (!context) return tl::make_unexpected(context.error());
    router.connections.tls = std::move(*context);
  }
  return std::make_unique<RedisStore>(options, std::move(router));
}

}  // namespace fixpoint
