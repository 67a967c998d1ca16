// What the store makes of a server that misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "cache/redis/record.hpp"
#include "tests/unit/cache/redis/fake_redis.hpp"
#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class RedisConnectionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open(const std::string& url, milliseconds timeout = milliseconds(5000)) {
    RedisStoreOptions options;
    options.url = url;
    options.timeout = timeout;
    options.on_error = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(error.message);
    };
    Result<std::unique_ptr<Store>> store = open_redis_store(options);
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  std::vector<std::string> errors() {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  static ErrorCode code_of(Store& store, const std::string& material = "k") {
    const Store::Found found = get_and_wait(store, key_of(material));
    return found ? ErrorCode::not_found : found.error().code;
  }
  // Connected and logged in: from here on a short timeout is of look-ups alone. The fakes say
  // nothing of this key.
  static void warm_up(Store& store) {
    ASSERT_TRUE(eventually([&] { return body_of(store, key_of("warm")) == "none"; }));
  }
  static bool warms_up(FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    const bool warm =
        command.size() == 2 && command[1] == redis::record_key("fixpoint:", key_of("warm"));
    if (warm) peer.send("$-1\r\n");
    return warm;
  }
  // A miss is an answer.
  static bool recovers(Store& store) {
    return eventually([&] { return body_of(store, key_of("k")) == "none"; });
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> errors_;
};

// The fake keeps the first look-up's answer until it sees the second.
TEST_F(RedisConnectionTest, ALateAnswerIsDroppedAndTheConnectionStays) {
  int gets = 0;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (warms_up(peer, command)) return;
    if (++gets == 1) return;
    peer.send_string(redis::encode_record(entry_of("first", "of the first"), 4096));
    peer.send_string(redis::encode_record(entry_of("second", "of the second"), 4096));
  });
  const auto store = open(server.url(), milliseconds(1000));
  warm_up(*store);
  const int connections = server.connections();
  EXPECT_EQ(code_of(*store, "first"), ErrorCode::timeout);
  EXPECT_EQ(body_of(*store, key_of("second")), "of the second");
  EXPECT_EQ(server.connections(), connections);
}

TEST_F(RedisConnectionTest, ASilentServerIsLeftAndThenAway) {
  std::atomic<bool> silent = true;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (warms_up(peer, command)) return;
    if (!silent) peer.send("$-1\r\n");
  });
  const auto store = open(server.url(), milliseconds(100));
  warm_up(*store);
  EXPECT_EQ(code_of(*store), ErrorCode::timeout);
  const auto contains = ::testing::Contains(HasSubstr("no answer for 500 ms"));
  EXPECT_TRUE(eventually([&] { return ::testing::Matches(contains)(errors()); }));
  silent = false;
  EXPECT_TRUE(recovers(*store));
  EXPECT_GE(server.connections(), 2);
}

TEST_F(RedisConnectionTest, AHalfAnswerIsATimeoutAndDoesNotReachTheNext) {
  std::atomic<bool> half = true;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (warms_up(peer, command)) return;
    peer.send(half ? "$100\r\nhalf" : "$-1\r\n");
  });
  const auto store = open(server.url(), milliseconds(100));
  warm_up(*store);
  EXPECT_EQ(code_of(*store), ErrorCode::timeout);
  half = false;
  EXPECT_TRUE(recovers(*store));
}

struct BadAnswer {
  const char* bytes;
  const char* message;
};
class RedisBadAnswerTest : public RedisConnectionTest,
                           public ::testing::WithParamInterface<BadAnswer> {};

TEST_P(RedisBadAnswerTest, IsAnErrorAndTheNextConnectionIsGood) {
  std::atomic<bool> bad = true;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) {
    peer.send(bad ? GetParam().bytes : "$-1\r\n");
  });
  const auto store = open(server.url());
  const Store::Found found = get_and_wait(*store, key_of("k"));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::protocol) << found.error().message;
  EXPECT_THAT(found.error().message, HasSubstr(GetParam().message));
  bad = false;
  EXPECT_TRUE(recovers(*store));
}

INSTANTIATE_TEST_SUITE_P(
    All, RedisBadAnswerTest,
    ::testing::Values(BadAnswer{"HTTP/1.1 400 Bad Request\r\n\r\n", "cannot be read"},
                      BadAnswer{"$99999999999\r\n", "longer than"},
                      BadAnswer{"*2000000\r\n", "65536"},
                      BadAnswer{
                          "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
                          "cannot be read"},
                      BadAnswer{"$-5\r\n", "cannot be read"}, BadAnswer{":1\r\n", "not a string"},
                      BadAnswer{"-ERR a \x01 strange one\r\n", "ERR a ? strange one"},
                      BadAnswer{"*0\r\n", "not a string"}));

TEST_F(RedisConnectionTest, ForeignValuesAreCorrupt) {
  std::atomic<int> what = 0;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) {
    if (what == 0) peer.send("$5\r\nhello\r\n");
    if (what == 1) peer.send_string(redis::encode_record(entry_of("another", "x"), 4096));
    if (what == 2) peer.send_string(redis::encode_record(entry_of("k", "x"), 4096) + "x");
  });
  const auto store = open(server.url());
  for (what = 0; what < 3; ++what) EXPECT_EQ(code_of(*store), ErrorCode::corrupt) << what;
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(RedisConnectionTest, AnAnswerThatNobodyAskedForEndsTheConnection) {
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    peer.send("$-1\r\n");
    if (command.at(0) == "SET") peer.send("+OK\r\n+OK\r\n");
  });
  const auto store = open(server.url());
  EXPECT_TRUE(recovers(*store));
  put(*store, entry_of("x", "y"));
  EXPECT_TRUE(eventually([&] { return !errors().empty(); }));
  EXPECT_THAT(errors().front(), HasSubstr("nobody asked for"));
  EXPECT_TRUE(recovers(*store));
}

TEST_F(RedisConnectionTest, AServerThatDoesNotLogUsInIsAway) {
  for (const char* refusal : {"-LOADING Redis is loading the dataset in memory\r\n",
                              "-NOAUTH Authentication required.\r\n"}) {
    std::atomic<bool> refuse = true;
    FakeRedis server(
        [&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
          if (refuse) return peer.send(refusal);
          peer.send(command.at(0) == "PING" ? "+PONG\r\n" : "$-1\r\n");
        },
        false);
    const auto store = open(server.url());
    const Store::Found found = get_and_wait(*store, key_of("k"));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::unreachable);
    EXPECT_THAT(found.error().message, HasSubstr(std::string(refusal + 1).substr(0, 6)));
    refuse = false;
    EXPECT_TRUE(recovers(*store));
  }
}

TEST_F(RedisConnectionTest, AUserWhoMayNotPingIsAUser) {
  FakeRedis server(
      [&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
        peer.send(command.at(0) == "PING" ? "-NOPERM this user has no permissions\r\n" : "$-1\r\n");
      },
      false);
  const auto store = open(server.url());
  EXPECT_EQ(body_of(*store, key_of("k")), "none");
}

TEST_F(RedisConnectionTest, LogsInAndChoosesTheDatabase) {
  std::mutex mutex;
  std::vector<FakeRedis::Command> seen;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    const std::lock_guard lock(mutex);
    seen.push_back(command);
    peer.send(command.at(0) == "GET" ? "$-1\r\n" : "+OK\r\n");
  });
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(body_of(*open("redis://alice:p%40ss@" + host + "/7"), key_of("k")), "none");
  EXPECT_EQ(body_of(*open("redis://:secret@" + host), key_of("k")), "none");
  const std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0], (FakeRedis::Command{"AUTH", "alice", "p@ss"}));
  EXPECT_EQ(seen[1], (FakeRedis::Command{"SELECT", "7"}));
  EXPECT_EQ(seen[3], (FakeRedis::Command{"AUTH", "secret"}));
}

// A connection that lasted a second may have been closed for being idle: its commands are sent
// again. Each is sent twice at most.
TEST_F(RedisConnectionTest, CommandsOfAConnectionThatIsLostAreSentOnceMore) {
  int gets = 0;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) {
    if (++gets == 2) return peer.close();
    peer.send("$-1\r\n");
  });
  const auto store = open(server.url());
  EXPECT_EQ(body_of(*store, key_of("k")), "none");
  std::this_thread::sleep_for(milliseconds(1100));
  EXPECT_EQ(body_of(*store, key_of("k")), "none");
  EXPECT_EQ(gets, 3);
  EXPECT_EQ(server.connections(), 2);
  EXPECT_EQ(errors().size(), 1u);
}

TEST_F(RedisConnectionTest, AServerThatBreaksEveryConnectionIsAway) {
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) { peer.close(); });
  const auto store = open(server.url());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(code_of(*store), ErrorCode::unreachable);
  EXPECT_LT(server.connections(), 20);
}

TEST_F(RedisConnectionTest, RefusedWritesAreCountedAndReported) {
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) {
    peer.send("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  });
  const auto store = open(server.url());
  for (int i = 0; i < 3; ++i) put(*store, entry_of(std::to_string(i), "b"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 3u);
  ASSERT_EQ(errors().size(), 3u);
  EXPECT_THAT(errors()[0], HasSubstr("Redis refuses SET: OOM command not allowed"));
}

// While a write is on its way its key is answered from memory; of later ones only the last is sent.
TEST_F(RedisConnectionTest, PutsOfOneKeyDoNotOvertakeEachOther) {
  std::mutex mutex;
  std::vector<std::string> values;
  std::atomic<bool> hold = true;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) != "SET") return peer.send("$-1\r\n");
    {
      const std::lock_guard lock(mutex);
      values.push_back(*redis::decode_record(command.at(2))->body);
    }
    while (hold) std::this_thread::sleep_for(milliseconds(1));
    peer.send("+OK\r\n");
  });
  const auto store = open(server.url());
  for (const char* body : {"1", "2", "3"}) {
    put(*store, entry_of("k", body));
    EXPECT_EQ(body_of(*store, key_of("k")), body);
  }
  hold = false;
  store->flush();
  EXPECT_EQ(body_of(*store, key_of("k")), "none");  // nothing pending any more
  const std::lock_guard lock(mutex);
  EXPECT_EQ(values, (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(store->failed_writes(), 0u);
}

TEST_F(RedisConnectionTest, TheQueueOfWritesIsBounded) {
  std::atomic<bool> hold = true;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) {
    while (hold) std::this_thread::sleep_for(milliseconds(1));
    peer.send("+OK\r\n");
  });
  RedisStoreOptions options;
  options.url = server.url();
  options.timeout = milliseconds(5000);
  options.max_queue_bytes = 100'000;
  const auto store = std::move(*open_redis_store(options));
  for (int i = 0; i < 20; ++i) put(*store, entry_of(std::to_string(i), std::string(9000, 'x')));
  EXPECT_GE(store->failed_writes(), 10u);
  EXPECT_LE(store->failed_writes(), 11u);
  hold = false;
  store->flush();
  const std::uint64_t failed = store->failed_writes();
  put(*store, entry_of("later", std::string(9000, 'x')));
  store->flush();
  EXPECT_EQ(store->failed_writes(), failed);
}

// What waits when the store goes is answered.
TEST_F(RedisConnectionTest, DestructionAnswersEveryLookUp) {
  FakeRedis server([&](FakeRedis::Peer&, const FakeRedis::Command&) {});
  auto store = open(server.url());
  std::atomic<int> answers = 0;
  for (int i = 0; i < 50; ++i) {
    store->get(key_of(std::to_string(i)), [&](const Store::Found& found) {
      answers += found || found.error().code != ErrorCode::unreachable ? 1000 : 1;
    });
  }
  store.reset();
  EXPECT_EQ(answers, 50);
}

TEST_F(RedisConnectionTest, NobodyListens) {
  std::string url;
  {
    const FakeRedis server([](FakeRedis::Peer&, const FakeRedis::Command&) {});
    url = server.url();
  }
  const auto store = open(url);
  EXPECT_EQ(code_of(*store), ErrorCode::unreachable);
  put(*store, entry_of("k", "b"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_EQ(store->stats().error().code, ErrorCode::unreachable);
  EXPECT_EQ(store->purge({}).error().code, ErrorCode::unreachable);
  EXPECT_EQ(open("redis://no-such-host.invalid")->stats().error().code, ErrorCode::unreachable);
}

}  // namespace
}  // namespace fixpoint::test
