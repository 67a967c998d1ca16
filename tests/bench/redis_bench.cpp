// Look-ups per second of the Redis store against redis-benchmark: one server, one connection each,
// the same key, taking turns. usage: redis_bench [ROUNDS] [BODY_BYTES]; needs redis-server and
// redis-benchmark on the PATH.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/base/digest.hpp"
#include "cache/redis/record.hpp"
#include "cache/store.hpp"
#include "tests/unit/cache/redis/redis_server.hpp"

namespace fixpoint {
namespace {

using std::chrono::steady_clock;

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Each answer starts the next look-up, so that `in_flight` are on their way all the time.
double store_rate(Store& store, const CacheKey& key, int in_flight, int count) {
  std::atomic<int> started = 0, ended = 0;
  std::promise<void> done;
  std::function<void()> next = [&] {
    if (started++ >= count) return;
    store.get(key, [&](const Store::Found& found) {
      if (!found || !*found) throw std::runtime_error("a look-up failed");
      next();
      if (++ended == count) done.set_value();
    });
  };
  const auto begin = steady_clock::now();
  for (int i = 0; i < in_flight; ++i) next();
  done.get_future().wait();
  const double rate = count / seconds_since(begin);
  get_and_wait(store, key);  // the last callback has returned
  return rate;
}

double benchmark_rate(const test::RedisServer& server, const std::string& name, int in_flight,
                      int count) {
  const std::string run = "redis-benchmark -p " + std::to_string(server.port()) + " -c 1 -P " +
                          std::to_string(in_flight) + " -n " + std::to_string(count) +
                          " --csv GET '" + name + "' | tail -1 | cut -d, -f2 | tr -d '\"'";
  std::FILE* pipe = ::popen(run.c_str(), "r");
  double rate = 0;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &rate) != 1) {
    throw std::runtime_error("redis-benchmark says nothing");
  }
  ::pclose(pipe);
  return rate;
}

int run(int rounds, std::size_t body_bytes) {
  const test::RedisServer server;
  RedisStoreOptions options;
  options.url = server.url();
  options.timeout = std::chrono::seconds(5);
  const auto store = std::move(*open_redis_store(options));
  const auto entry = std::make_shared<Entry>();
  entry->key = {KeyKind::body, sha256_hex("m"), "m"};
  entry->body = std::make_shared<const std::string>(body_bytes, 'x');
  store->put(entry);
  store->flush();
  const std::string name = redis::record_key(options.prefix, entry->key);
  std::printf("%10s %14s %18s %8s\n", "in flight", "store gets/s", "redis-benchmark/s", "ratio");
  for (const int in_flight : {1, 16, 64}) {
    const int count = in_flight == 1 ? 20'000 : 200'000;
    std::vector<double> ours, theirs, ratios;
    for (int i = 0; i < rounds; ++i) {
      ours.push_back(store_rate(*store, entry->key, in_flight, count));
      theirs.push_back(benchmark_rate(server, name, in_flight, count));
      ratios.push_back(ours.back() / theirs.back());
    }
    std::printf("%10d %14.0f %18.0f %8.2f\n", in_flight, median(ours), median(theirs),
                median(ratios));
  }
  return 0;
}

}  // namespace
}  // namespace fixpoint

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const int body_bytes = argc > 2 ? std::atoi(argv[2]) : 1024;
  return fixpoint::run(std::max(rounds, 1), static_cast<std::size_t>(std::max(body_bytes, 0)));
}
