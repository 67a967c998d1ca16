// The Redis store on real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <climits>
#include <fstream>
#include <sstream>

#include "cache/redis/record.hpp"
#include "cache/redis/slots.hpp"
#include "cache/store.hpp"
#include "tests/unit/cache/redis/fake_redis.hpp"
#include "tests/unit/cache/redis/redis_cluster.hpp"
#include "tests/unit/cache/redis/redis_server.hpp"
#include "tests/unit/cache/redis/skip_without_redis.hpp"
#include "tests/unit/cache/store_conformance.hpp"

namespace fixpoint::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Time enough for a machine that is busy with other tests.
RedisStoreOptions options_for(const std::string& url) {
  RedisStoreOptions options;
  options.url = url;
  options.timeout = milliseconds(10'000);
  return options;
}

std::unique_ptr<Store> open_or_throw(const RedisStoreOptions& options) {
  Result<std::unique_ptr<Store>> store = open_redis_store(options);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

// Another bit in the middle of the value.
void damage_at(const RedisServer& server, const CacheKey& key) {
  const std::string name = redis::record_key("fixpoint:", key);
  const std::string at = std::to_string(server.call({"STRLEN", name})->integer / 2);
  const std::string byte = server.text({"GETRANGE", name, at, at});
  server.call({"SETRANGE", name, at, std::string(1, static_cast<char>(byte.at(0) ^ 1))});
}

// One server for all tests of a process.
struct StandaloneBackend {
  const bool skipped = skip_without_redis();
  static RedisServer& server() {
    static RedisServer one;
    return one;
  }
  StandaloneBackend() {
    if (!skipped) server().call({"FLUSHALL"});
  }
  std::unique_ptr<Store> open(const StoreLimits& limits = {}) {
    if (skipped) return nullptr;
    RedisStoreOptions options = options_for(server().url());
    options.limits = limits;
    return open_or_throw(options);
  }
  void damage(const CacheKey& key) { damage_at(server(), key); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, StoreConformance, StandaloneBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, PersistentStoreConformance, StandaloneBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, CheckedStoreConformance, StandaloneBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, CompressingStoreConformance, StandaloneBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Redis, ExpiringStoreConformance, StandaloneBackend);

// A server that speaks TLS too, with a certificate for "localhost" that signed itself.
class TlsServer {
 public:
  TlsServer() {
    const std::string make =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1"
        " -subj /CN=test -addext subjectAltName=DNS:localhost -keyout " +
        key_ + " -out " + certificate_ + " 2>/dev/null";
    if (std::system(make.c_str()) != 0) throw std::runtime_error("openssl made no certificate");
    plain = std::make_unique<RedisServer>(std::vector<std::string>{
        "--tls-port", std::to_string(tls_port_), "--tls-cert-file", certificate_, "--tls-key-file",
        key_, "--tls-ca-cert-file", certificate_, "--tls-auth-clients", "no"});
  }
  std::string url(const std::string& host) const {
    return "rediss://" + host + ":" + std::to_string(tls_port_);
  }
  const std::string& certificate() const { return certificate_; }

 private:
  TemporaryFolder folder_;
  const std::string certificate_ = folder_.file("server.crt"), key_ = folder_.file("server.key");
  const std::uint16_t tls_port_ = free_port();

 public:
  std::unique_ptr<RedisServer> plain;
};

struct TlsBackend {
  const bool skipped = skip_without_redis();
  static TlsServer& server() {
    static TlsServer one;
    return one;
  }
  TlsBackend() {
    if (!skipped) server().plain->call({"FLUSHALL"});
  }
  std::unique_ptr<Store> open(const StoreLimits& limits = {}) {
    if (skipped) return nullptr;
    RedisStoreOptions options = options_for(server().url("localhost"));
    options.ca_file = server().certificate();
    options.limits = limits;
    return open_or_throw(options);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(RedisTls, StoreConformance, TlsBackend);

TEST(RedisTlsTest, TrustsTheRightCertificateForTheRightHostOnly) {
  if (skip_without_redis()) return;
  const TlsServer& server = TlsBackend::server();
  const auto error_of_get = [](const std::string& url, const std::string& ca_file) {
    RedisStoreOptions options = options_for(url);
    options.ca_file = ca_file;
    const auto store = open_or_throw(options);
    const Store::Found found = get_and_wait(*store, key_of("k"));
    if (found) return std::string("none");
    EXPECT_EQ(found.error().code, ErrorCode::unreachable);
    return found.error().message;
  };
  EXPECT_EQ(error_of_get(server.url("localhost"), server.certificate()), "none");
  EXPECT_THAT(error_of_get(server.url("localhost"), ""), HasSubstr("self-signed"));
  EXPECT_THAT(error_of_get(server.url("127.0.0.1"), server.certificate()),
              HasSubstr("IP address mismatch"));
  const std::string plain_port = std::to_string(server.plain->port());
  EXPECT_THAT(error_of_get("rediss://localhost:" + plain_port, server.certificate()),
              HasSubstr("no TLS with"));
  RedisStoreOptions options = options_for(server.url("localhost"));
  options.ca_file = "/nonexistent.pem";
  const Result<std::unique_ptr<Store>> store = open_redis_store(options);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::invalid);
  EXPECT_THAT(store.error().message, HasSubstr("/nonexistent.pem"));
}

TEST(RedisStoreTest, RefusesWrongOptions) {
  const auto error_of_open = [](const RedisStoreOptions& options) {
    const Result<std::unique_ptr<Store>> store = open_redis_store(options);
    return store ? std::string("none") : store.error().message;
  };
  RedisStoreOptions options = options_for("redis://u:SECRET@host:x");
  EXPECT_THAT(error_of_open(options), HasSubstr("port"));
  options = options_for("redis://host/1");
  options.cluster = true;
  EXPECT_THAT(error_of_open(options), HasSubstr("cluster"));
  options = options_for("redis://host");
  options.prefix = "a{b}";
  EXPECT_THAT(error_of_open(options), HasSubstr("prefix"));
}

TEST(RedisStoreTest, LogsInAsAUserAndUsesItsDatabase) {
  if (skip_without_redis()) return;
  const RedisServer server({"--requirepass", "master"}, "master");
  server.call({"ACL", "SETUSER", "alice", "on", ">s3:cret", "~fixpoint:*", "+@all"});
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  {
    const auto store = open_or_throw(options_for("redis://alice:s3%3Acret@" + host + "/3"));
    put(*store, entry_of("k", "b"));
    store->flush();
    EXPECT_EQ(body_of(*store, key_of("k")), "b");
    EXPECT_EQ(store->stats()->entries, 1u);
    EXPECT_EQ(*store->purge({}), 1u);
    put(*store, entry_of("k", "b"));
  }
  EXPECT_THAT(server.text({"INFO", "keyspace"}), HasSubstr("db3:keys=1,"));
  EXPECT_EQ(body_of(*open_or_throw(options_for("redis://:master@" + host + "/3")), key_of("k")),
            "b");
  for (const std::string login : {"alice:wr0ng@", ":wr0ng@", ""}) {
    const auto store = open_or_throw(options_for("redis://" + login + host));
    const Store::Found found = get_and_wait(*store, key_of("k"));
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::unreachable);
    EXPECT_THAT(found.error().message, HasSubstr(login.empty() ? "NOAUTH" : "WRONGPASS"));
    EXPECT_EQ(found.error().message.find("wr0ng"), std::string::npos);
  }
}

TEST(RedisStoreTest, PrefixesAreApartAndOtherKeysStay) {
  StandaloneBackend backend;
  if (backend.skipped) return;
  backend.server().call({"SET", "other", "value"});
  backend.server().call({"SET", "fixpoint:other", "value"});
  RedisStoreOptions options = options_for(backend.server().url());
  const auto plain = open_or_throw(options);
  options.prefix = "fix*:";  // a pattern that must not match the plain one's
  const auto starred = open_or_throw(options);
  put(*plain, entry_of("k", "plain"));
  put(*starred, entry_of("k", "starred"));
  plain->flush();
  starred->flush();
  EXPECT_EQ(starred->stats()->entries, 1u);
  EXPECT_EQ(*starred->purge({}), 1u);
  EXPECT_EQ(body_of(*plain, key_of("k")), "plain");
  EXPECT_EQ(*plain->purge({}), 1u);
  EXPECT_EQ(backend.server().call({"DBSIZE"})->integer, 2);
}

// Two gateways miss at the same time and make two answers: the key gets one of them, everywhere.
TEST(RedisStoreTest, TheFirstAnswerOfAKeyStays) {
  if (skip_without_redis()) return;
  RedisServer server;
  const auto gateway = [&] {
    return make_tiered_store(make_memory_store(1 << 20), open_or_throw(options_for(server.url())));
  };
  const auto one = gateway(), other = gateway();
  const auto answer = [](const std::string& body, bool keeps_first) {
    Entry entry = entry_of("a", body);
    entry.keeps_first = keeps_first;
    return std::make_shared<const Entry>(std::move(entry));
  };
  one->put(answer("first", true));
  one->flush();
  other->put(answer("second", true));
  EXPECT_EQ(body_of(*other, key_of("a")), "first");
  EXPECT_EQ(body_of(*one, key_of("a")), "first");
  EXPECT_EQ(other->failed_writes(), 0u);
  other->put(answer("asked for anew", false));
  EXPECT_EQ(body_of(*other, key_of("a")), "asked for anew");
}

// It has the time of a look-up and not that of the put that it waits for.
TEST(RedisStoreTest, ALookUpDoesNotWaitLongForAPutOfItsKey) {
  std::atomic<bool> silent = true;
  const FakeRedis server([&](FakeRedis::Peer& peer, const FakeRedis::Command& command) {
    if (command[0] == "GET") peer.send("$-1\r\n");
    if (command[0] == "SET" && !silent) peer.send("+OK\r\n");
  });
  RedisStoreOptions options = options_for(server.url());
  options.timeout = milliseconds(50);
  const auto store = open_or_throw(options);
  ASSERT_TRUE(eventually([&] { return body_of(*store, key_of("k")) == "none"; }));
  Entry entry = entry_of("a", "b");
  entry.keeps_first = true;
  put(*store, entry);
  const Store::Found found = get_and_wait(*store, key_of("a"));
  silent = false;  // so that the store can be closed
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::timeout);
  EXPECT_THAT(found.error().message, HasSubstr("SET within 50 ms"));
}

TEST(RedisStoreTest, ATtlIsTheServersToKeep) {
  StandaloneBackend backend;
  if (backend.skipped) return;
  StoreLimits limits;
  limits.ttl = std::chrono::hours(1);
  const auto store = backend.open(limits);
  Entry entry = entry_of("k", "b");
  entry.created_ms = unix_ms() - 1'800'000;
  put(*store, entry);
  entry.key = key_of("future");
  entry.created_ms = unix_ms() + 7'200'000;
  put(*store, entry);
  store->flush();
  const auto ttl_of = [&](const std::string& material) {
    return backend.server()
        .call({"PTTL", redis::record_key("fixpoint:", key_of(material))})
        ->integer;
  };
  EXPECT_LE(ttl_of("k"), 1'800'000);
  EXPECT_GT(ttl_of("k"), 1'700'000);
  EXPECT_LE(ttl_of("future"), 3'600'000);
}

// A value of another type, or another program's, is an error of that entry alone.
TEST(RedisStoreTest, ForeignValuesUnderOurNamesDoNotStopAWalk) {
  StandaloneBackend backend;
  if (backend.skipped) return;
  const auto store = backend.open();
  backend.server().call({"LPUSH", redis::record_key("fixpoint:", key_of("list")), "x"});
  backend.server().call({"SET", redis::record_key("fixpoint:", key_of("text")), "x"});
  put(*store, entry_of("good", "b"));
  EXPECT_FALSE(get_and_wait(*store, key_of("list")));
  EXPECT_EQ(get_and_wait(*store, key_of("text")).error().code, ErrorCode::corrupt);
  int visited = 0;
  const auto corrupt = store->for_each({}, [&](const Entry&) { return ++visited > 0; });
  ASSERT_TRUE(corrupt) << corrupt.error().message;
  EXPECT_EQ(*corrupt, 2u);
  EXPECT_EQ(visited, 1);
  EXPECT_EQ(store->stats()->entries, 1u);
  EntryFilter filter;
  filter.model = "model-1";
  EXPECT_EQ(*store->purge(filter), 1u);
  EXPECT_EQ(*store->purge({}), 2u);
}

TEST(RedisStoreTest, LongNamesDoNotFitTheUsualTag) {
  StandaloneBackend backend;
  if (backend.skipped) return;
  const auto store = backend.open();
  Entry entry = entry_of("k", "b");
  entry.model = std::string(5000, 'm');
  entry.tenant = std::string(9000, 't');
  put(*store, entry);
  put(*store, entry_of("short", "b"));
  EntryFilter filter;
  filter.tenant = entry.tenant;
  filter.model = entry.model;
  EXPECT_EQ(names_in(*store, filter), std::set<std::string>{entry.key.name()});
  EXPECT_EQ(*store->purge(filter), 1u);
  EXPECT_EQ(store->stats()->entries, 1u);
}

// A cluster takes two seconds to come up, so this suite has one process of its own, started below.
struct ClusterBackend {
  static RedisCluster& cluster() {
    static RedisCluster one;
    return one;
  }
  ClusterBackend() {
    for (std::size_t i = 0; i < cluster().size(); ++i) cluster().node(i).call({"FLUSHALL"});
  }
  std::unique_ptr<Store> open(const StoreLimits& limits = {}) {
    RedisStoreOptions options = options_for(cluster().url());
    options.cluster = true;
    options.limits = limits;
    return open_or_throw(options);
  }
  void damage(const CacheKey& key) {
    for (std::size_t i = 0; i < cluster().size(); ++i) {
      const std::string name = redis::record_key("fixpoint:", key);
      if (redis::is_integer(*cluster().node(i).call({"STRLEN", name})))
        damage_at(cluster().node(i), key);
    }
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(DISABLED_Cluster, StoreConformance, ClusterBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(DISABLED_Cluster, PersistentStoreConformance, ClusterBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(DISABLED_Cluster, CheckedStoreConformance, ClusterBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(DISABLED_Cluster, ExpiringStoreConformance, ClusterBackend);

TEST(RedisClusterTest, MeetsTheStoresSuite) {
  if (skip_without_redis()) return;
  std::array<char, PATH_MAX> self{};
  ASSERT_GT(::readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
  const TemporaryFolder folder;
  const std::string run = std::string(self.data()) +
                          " --gtest_also_run_disabled_tests --gtest_filter='DISABLED_Cluster/*' >" +
                          folder.file("log") + " 2>&1";
  const int status = std::system(run.c_str());
  std::ostringstream log;
  log << std::ifstream(folder.file("log")).rdbuf();
  EXPECT_EQ(status, 0) << log.str();
  EXPECT_THAT(log.str(), HasSubstr("[  PASSED  ] "));
}

TEST(RedisClusterTest, SpreadsFollowsSlotsAndPurgesEverywhere) {
  if (skip_without_redis()) return;
  RedisCluster cluster;
  RedisStoreOptions options = options_for(cluster.url());
  options.cluster = true;
  const auto store = open_or_throw(options);
  for (int i = 0; i < 300; ++i) put(*store, entry_of(std::to_string(i), std::to_string(i)));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 0u);
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    EXPECT_GT(cluster.node(i).call({"DBSIZE"})->integer, 30);
  }

  // A slot moves: first its key alone (ASK), then the slot (MOVED).
  const std::string name = redis::record_key("fixpoint:", key_of("7"));
  const std::string slot = std::to_string(redis::key_slot(name));
  std::size_t from = 0;
  while (!redis::is_integer(*cluster.node(from).call({"STRLEN", name}))) ++from;
  RedisServer& source = cluster.node(from);
  RedisServer& target = cluster.node((from + 1) % cluster.size());
  const std::string source_id = source.text({"CLUSTER", "MYID"});
  const std::string target_id = target.text({"CLUSTER", "MYID"});
  ASSERT_EQ(target.text({"CLUSTER", "SETSLOT", slot, "IMPORTING", source_id}), "OK");
  ASSERT_EQ(source.text({"CLUSTER", "SETSLOT", slot, "MIGRATING", target_id}), "OK");
  ASSERT_EQ(source.text({"MIGRATE", "127.0.0.1", std::to_string(target.port()), name, "0", "2000"}),
            "OK");
  EXPECT_EQ(body_of(*store, key_of("7")), "7");
  put(*store, entry_of("7", "seven"));
  store->flush();
  EXPECT_EQ(body_of(*store, key_of("7")), "seven");
  for (RedisServer* node : {&target, &source}) {
    ASSERT_EQ(node->text({"CLUSTER", "SETSLOT", slot, "NODE", target_id}), "OK");
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(*store, key_of("7")), "seven");
  put(*store, entry_of("7", "VII"));
  store->flush();
  EXPECT_EQ(body_of(*store, key_of("7")), "VII");
  EXPECT_EQ(target.call({"EXISTS", name})->integer, 1);

  EXPECT_EQ(store->stats()->entries, 300u);
  EXPECT_EQ(names_in(*store, {}).size(), 300u);
  EXPECT_EQ(*store->purge({}), 300u);
  EXPECT_EQ(store->failed_writes(), 0u);
}

}  // namespace
}  // namespace fixpoint::test
