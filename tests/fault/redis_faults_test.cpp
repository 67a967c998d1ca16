// Real servers that are killed, stopped, emptied, full, demoted: look-ups go on, with quick errors,
// and everything works again afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "cache/redis/record.hpp"
#include "tests/unit/cache/redis/redis_cluster.hpp"
#include "tests/unit/cache/redis/redis_server.hpp"
#include "tests/unit/cache/redis/skip_without_redis.hpp"
#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {

// Of the suite's header only the helpers are used here.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PersistentStoreConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CheckedStoreConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CompressingStoreConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExpiringStoreConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BoundedStoreConformance);

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr milliseconds kTimeout{200};
// Whatever the server does, a look-up ends within its timeout; a busy machine may be this late.
constexpr milliseconds kLate{2000};

class RedisFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (skip_without_redis()) return;
  }
  std::unique_ptr<Store> open(const std::string& url, bool cluster = false) {
    RedisStoreOptions options;
    options.url = url;
    options.cluster = cluster;
    options.timeout = kTimeout;
    options.on_error = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      last_error_ = error.message;
    };
    Result<std::unique_ptr<Store>> store = open_redis_store(options);
    if (!store) throw std::runtime_error(store.error().message);
    // Connected: with so short a timeout a busy machine could begin with an error.
    if (!eventually([&] { return body_of(**store, key_of("ready")) == "none"; })) {
      throw std::runtime_error("the store does not connect");
    }
    return std::move(*store);
  }
  std::string last_error() {
    const std::lock_guard lock(mutex_);
    return last_error_;
  }

  // Looks up again and again, as a gateway under load would, until the answer is `expected`; no
  // look-up may be late, and none may give another body.
  static bool answers(Store& store, const std::string& material, const std::string& expected,
                      const std::string& also = "none") {
    return eventually([&] {
      const auto begin = steady_clock::now();
      const std::string body = body_of(store, key_of(material));
      EXPECT_LT(steady_clock::now() - begin, kTimeout + kLate) << body;
      EXPECT_TRUE(body == expected || body == also || body.starts_with("error: ")) << body;
      return body == expected;
    });
  }
  // True when look-ups fail without waiting: fifty of them within one timeout's time.
  static bool fails_at_once(Store& store, const std::string& material = "k") {
    return eventually([&] {
      const auto begin = steady_clock::now();
      for (int i = 0; i < 50; ++i) {
        const Store::Found found = get_and_wait(store, key_of(material));
        if (found || found.error().code != ErrorCode::unreachable) return false;
      }
      return steady_clock::now() - begin < kTimeout;
    });
  }

 private:
  std::mutex mutex_;
  std::string last_error_;
};

TEST_F(RedisFaultsTest, KilledAndStartedAgainEmpty) {
  RedisServer server;
  const auto store = open(server.url());
  put(*store, entry_of("k", "b"));
  store->flush();
  server.kill();
  EXPECT_TRUE(fails_at_once(*store));
  EXPECT_FALSE(last_error().empty());
  put(*store, entry_of("lost", "b"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
  server.start();
  EXPECT_TRUE(answers(*store, "k", "none"));
  put(*store, entry_of("k", "again"));
  store->flush();
  EXPECT_TRUE(answers(*store, "k", "again"));
  EXPECT_EQ(store->stats()->entries, 1u);
}

// A stopped process still accepts connections and never answers.
TEST_F(RedisFaultsTest, StoppedAndContinued) {
  RedisServer server;
  const auto store = open(server.url());
  put(*store, entry_of("k", "b"));
  store->flush();
  server.pause();
  EXPECT_EQ(get_and_wait(*store, key_of("k")).error().code, ErrorCode::timeout);
  EXPECT_TRUE(fails_at_once(*store));
  put(*store, entry_of("lost", "b"));
  store->flush();  // does not wait for the server
  EXPECT_EQ(store->failed_writes(), 1u);
  server.resume();
  EXPECT_TRUE(answers(*store, "k", "b"));
  put(*store, entry_of("k", "again"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
}

TEST_F(RedisFaultsTest, OutOfMemory) {
  RedisServer server({"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"});
  const auto store = open(server.url());
  put(*store, entry_of("k", "b"));
  store->flush();
  std::string noise;
  for (int i = 0; i < 4000; ++i) noise += sha256_hex(std::to_string(i));
  for (int i = 0; i < 100; ++i) put(*store, entry_of("n" + std::to_string(i), noise));
  store->flush();
  EXPECT_GT(store->failed_writes(), 50u);
  EXPECT_THAT(last_error(), HasSubstr("OOM"));
  EXPECT_EQ(body_of(*store, key_of("k")), "b");
  EXPECT_EQ(body_of(*store, key_of("n99")), "none");
  EXPECT_GT(*store->purge({}), 1u);  // makes room
  const std::uint64_t failed = store->failed_writes();
  EXPECT_TRUE(eventually([&] {  // memory is given back by a thread of the server
    put(*store, entry_of("k", "again"));
    store->flush();
    return body_of(*store, key_of("k")) == "again";
  }));
  EXPECT_LE(store->failed_writes(), failed + 100);
}

TEST_F(RedisFaultsTest, DemotedToAReplicaAndPromotedAgain) {
  RedisServer server;
  RedisServer other({"--repl-diskless-sync-delay", "0"});
  const auto store = open(server.url());
  put(*store, entry_of("k", "b"));
  store->flush();
  ASSERT_EQ(server.text({"REPLICAOF", "127.0.0.1", std::to_string(other.port())}), "OK");
  put(*store, entry_of("lost", "b"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_THAT(last_error(), HasSubstr("READONLY"));
  EXPECT_TRUE(answers(*store, "k", "none", "b"));  // it takes over what the other one has
  ASSERT_EQ(server.text({"REPLICAOF", "NO", "ONE"}), "OK");
  put(*store, entry_of("k", "again"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_TRUE(answers(*store, "k", "again"));
}

TEST_F(RedisFaultsTest, ClientsAreDisconnected) {
  RedisServer server;
  const auto store = open(server.url());
  put(*store, entry_of("k", "b"));
  store->flush();
  for (int i = 0; i < 5; ++i) {
    server.call({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_TRUE(answers(*store, "k", "b"));
  }
}

TEST_F(RedisFaultsTest, UnderLoadNoAnswerIsWrongOrLate) {
  RedisServer server;
  const auto store = open(server.url());
  std::atomic<bool> stop = false;
  std::atomic<int> answered = 0, wrong = 0, late = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const std::string material = std::to_string(t) + "/" + std::to_string(i % 50);
        put(*store, entry_of(material, "body of " + material));
        const auto begin = steady_clock::now();
        const std::string body = body_of(*store, key_of(material));
        if (steady_clock::now() - begin > kTimeout + kLate) ++late;
        if (body != "body of " + material && body != "none" && !body.starts_with("error: "))
          ++wrong;
        ++answered;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  const auto progress = [&] {
    const int before = answered;
    return eventually([&] { return answered > before + 200; });
  };
  EXPECT_TRUE(progress());
  server.call({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(progress());
  server.kill();
  EXPECT_TRUE(progress());
  server.start();
  EXPECT_TRUE(progress());
  server.pause();
  EXPECT_TRUE(progress());
  server.resume();
  EXPECT_TRUE(progress());
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(late, 0);
  EXPECT_TRUE(answers(*store, "missing", "none"));
}

// Without replicas: the node's slots fail, those of the others go on.
TEST_F(RedisFaultsTest, AClustersNodeIsKilledAndComesBack) {
  RedisCluster cluster;
  const auto store = open(cluster.url(), true);
  std::array<std::string, 3> materials;  // one of each node
  for (int i = 0; i < 100; ++i) put(*store, entry_of(std::to_string(i), "b"));
  store->flush();
  for (int i = 0; i < 100; ++i) {
    const std::string name = redis::record_key("fixpoint:", key_of(std::to_string(i)));
    for (std::size_t n = 0; n < 3; ++n) {
      if (redis::is_integer(*cluster.node(n).call({"STRLEN", name}))) {
        materials[n] = std::to_string(i);
      }
    }
  }
  cluster.node(0).kill();  // the one of the configuration
  EXPECT_TRUE(fails_at_once(*store, materials[0]));
  EXPECT_TRUE(answers(*store, materials[1], "b"));
  EXPECT_TRUE(answers(*store, materials[2], "b"));
  EXPECT_FALSE(store->purge({}));
  cluster.node(0).start();
  EXPECT_TRUE(answers(*store, materials[0], "none"));
}

// A replica takes over: the map is fetched again, from a node that is still there.
TEST_F(RedisFaultsTest, AClustersReplicaTakesOver) {
  RedisCluster cluster(3, 1);
  const auto store = open(cluster.url(), true);
  for (int i = 0; i < 60; ++i) put(*store, entry_of(std::to_string(i), "b"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 0u);
  cluster.wait_for_replicas();
  cluster.node(0).kill();
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(answers(*store, std::to_string(i), "b", "")) << i;
  EXPECT_TRUE(eventually([&] {
    const auto stats = store->stats();
    return stats && stats->entries == 60u;
  }));
  const std::uint64_t failed = store->failed_writes();
  for (int i = 0; i < 60; ++i) put(*store, entry_of(std::to_string(i), "again"));
  store->flush();
  EXPECT_EQ(store->failed_writes(), failed);
}

}  // namespace
}  // namespace fixpoint::test
