// Redis Cluster's redirections, by servers that say what a test wants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "cache/redis/record.hpp"
#include "cache/redis/slots.hpp"
#include "tests/unit/cache/redis/fake_redis.hpp"
#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string all_slots(const std::string& host, std::uint16_t port) {
  return "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$" + std::to_string(host.size()) + "\r\n" + host +
         "\r\n:" + std::to_string(port) + "\r\n$2\r\nid\r\n";
}

std::unique_ptr<Store> open_cluster(const std::string& url) {
  RedisStoreOptions options;
  options.url = url;
  options.cluster = true;
  options.timeout = milliseconds(5000);
  Result<std::unique_ptr<Store>> store = open_redis_store(options);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

std::string slot_text() {
  return std::to_string(redis::key_slot(redis::record_key("fixpoint:", key_of("k"))));
}

std::size_t count(const FakeRedis& server, const std::string& command) {
  const std::vector<std::string> all = server.commands();
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), command));
}

TEST(RedisRouterTest, FollowsMovedAndAsksForTheMapAgain) {
  const std::string value = redis::encode_record(entry_of("k", "at its new place"), 4096);
  FakeRedis second([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") return peer.send(all_slots("", second.port()));
    peer.send_string(value);
  });
  bool moved = false;
  FakeRedis first([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") {
      return peer.send(all_slots("127.0.0.1", moved ? second.port() : first.port()));
    }
    moved = true;
    peer.send("-MOVED " + slot_text() + " 127.0.0.1:" + std::to_string(second.port()) + "\r\n");
  });
  const auto store = open_cluster(first.url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(*store, key_of("k")), "at its new place");
  EXPECT_EQ(count(first, "GET"), 1u);
  EXPECT_EQ(count(second, "GET"), 3u);
  EXPECT_TRUE(eventually([&] { return count(first, "CLUSTER") + count(second, "CLUSTER") >= 2; }));
}

// The map that is fetched after the MOVED still has the old node: what was sent to the new one is
// answered all the same.
TEST(RedisRouterTest, AnOldMapDropsNoRequest) {
  const std::string value = redis::encode_record(entry_of("k", "at its new place"), 4096);
  FakeRedis second([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") return peer.send("-ERR not yet\r\n");
    std::this_thread::sleep_for(milliseconds(400));  // longer than the pause between two maps
    peer.send_string(value);
  });
  FakeRedis first([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") return peer.send(all_slots("", first.port()));
    peer.send("-MOVED " + slot_text() + " :" + std::to_string(second.port()) + "\r\n");
  });
  const auto store = open_cluster(first.url());
  EXPECT_EQ(body_of(*store, key_of("k")), "at its new place");
  EXPECT_EQ(count(second, "GET"), 1u);
}

TEST(RedisRouterTest, FollowsAskOnce) {
  const std::string value = redis::encode_record(entry_of("k", "on its way"), 4096);
  bool asking = false;
  FakeRedis second([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "ASKING") {
      asking = true;
      return peer.send("+OK\r\n");
    }
    if (!asking) return peer.send("-ERR not asking\r\n");
    asking = false;
    peer.send_string(value);
  });
  FakeRedis first([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") return peer.send(all_slots("", first.port()));
    peer.send("-ASK " + slot_text() + " :" + std::to_string(second.port()) + "\r\n");
  });
  const auto store = open_cluster(first.url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(*store, key_of("k")), "on its way");
  EXPECT_EQ(count(first, "GET"), 3u);
  EXPECT_EQ(count(second, "ASKING"), 3u);
}

TEST(RedisRouterTest, RedirectionsAreBounded) {
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") return peer.send(all_slots("", server.port()));
    peer.send("-MOVED " + slot_text() + " :" + std::to_string(server.port()) + "\r\n");
  });
  const auto store = open_cluster(server.url());
  const Store::Found found = get_and_wait(*store, key_of("k"));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::protocol);
  EXPECT_THAT(found.error().message, HasSubstr("more than 5 times"));
  EXPECT_EQ(count(server, "GET"), 6u);
}

TEST(RedisRouterTest, AMapThatIsNoneIsAnErrorUntilThereIsOne) {
  std::atomic<int> state = 0;
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) != "CLUSTER") return peer.send("$-1\r\n");
    if (state == 0) return peer.send("-ERR This instance has cluster support disabled\r\n");
    if (state == 1) return peer.send("*0\r\n");
    if (state == 2) return peer.send("*1\r\n:1\r\n");
    if (state == 3) return peer.send("*1\r\n*3\r\n:0\r\n:0\r\n*2\r\n$0\r\n\r\n:1\r\n");
    peer.send(all_slots("", server.port()));
  });
  const auto store = open_cluster(server.url());
  for (; state < 4; ++state) {
    EXPECT_FALSE(get_and_wait(*store, key_of("k"))) << state;
    if (state < 3) {
      EXPECT_FALSE(store->stats()) << state;
    }
  }
  EXPECT_TRUE(eventually([&] { return body_of(*store, key_of("k")) == "none"; }));
}

TEST(RedisRouterTest, AMalformedMovedIsAnErrorOfTheServer) {
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "CLUSTER") return peer.send(all_slots("", server.port()));
    peer.send("-MOVED to somewhere\r\n");
  });
  const auto store = open_cluster(server.url());
  EXPECT_EQ(get_and_wait(*store, key_of("k")).error().code, ErrorCode::protocol);
}

// A server that is no cluster has no business to redirect.
TEST(RedisRouterTest, StandaloneFollowsNothing) {
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command&) {
    peer.send("-MOVED 1 127.0.0.1:1\r\n");
  });
  RedisStoreOptions options;
  options.url = server.url();
  options.timeout = milliseconds(5000);
  const auto store = std::move(*open_redis_store(options));
  const Store::Found found = get_and_wait(*store, key_of("k"));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("MOVED"));
}

// SCAN may repeat keys, and show some that are gone.
TEST(RedisRouterTest, AWalkSeesEachEntryOnce) {
  const std::string name = redis::record_key("fixpoint:", key_of("k"));
  const std::string gone = redis::record_key("fixpoint:", key_of("gone"));
  const std::string value = redis::encode_record(entry_of("k", "b"), 4096);
  FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command.at(0) == "SCAN") {
      peer.send(command.at(1) == "0" ? "*2\r\n$1\r\n7\r\n" : "*2\r\n$1\r\n0\r\n");
      peer.send("*3\r\n");
      peer.send_string(name);
      peer.send_string("fixpoint:e:{not a key}");
      return peer.send_string(gone);
    }
    if (command.at(1) == gone) return peer.send(command[0] == "GET" ? "$-1\r\n" : "$0\r\n\r\n");
    peer.send_string(command[0] == "GET" ? value : value.substr(0, 256));
  });
  RedisStoreOptions options;
  options.url = server.url();
  options.timeout = milliseconds(5000);
  const auto store = std::move(*open_redis_store(options));
  EXPECT_EQ(names_in(*store, {}), std::set<std::string>{key_of("k").name()});
  EXPECT_EQ(store->stats()->entries, 1u);
}

}  // namespace
}  // namespace fixpoint::test
