// The cost of a key, of a hit and a miss, and of what goes to disk. Run by hand.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/base/digest.hpp"
#include "cache/key.hpp"
#include "cache/store.hpp"
#include "cache/token_log.hpp"

namespace fixpoint {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fixpoint-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string chat_request(std::size_t bytes) {
  std::string text = R"({"model":"gpt-4o-mini","temperature":0,"max_tokens":256,"stream":true,)"
                     R"("messages":[{"role":"system","content":"You are a helpful assistant."},)"
                     R"({"role":"user","content":")";
  while (text.size() + 5 < bytes) text += "Why is the sky blue? ";
  return text + "\"}]}";
}

void body_key_of_request(benchmark::State& state) {
  const std::string request = chat_request(static_cast<std::size_t>(state.range(0)));
  const BodyKeyInput input{"",      "openai", "https://api.openai.com/v1", "chat.completions",
                           request, 0};
  for (auto _ : state) benchmark::DoNotOptimize(body_key(input));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(request.size()));
}
BENCHMARK(body_key_of_request)->Arg(1 << 10)->Arg(16 << 10)->Arg(256 << 10);

void prompt_key_of_tokens(benchmark::State& state) {
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(state.range(0)), 4711);
  for (auto _ : state) {
    benchmark::DoNotOptimize(prompt_key({"", "chat.completions", "fingerprint", tokens, "{}", 0}));
  }
}
BENCHMARK(prompt_key_of_tokens)->Arg(256)->Arg(8192);

constexpr int kEntries = 100'000;

EntryPtr entry_of(int number, std::size_t body_bytes) {
  auto entry = std::make_shared<Entry>();
  entry->key.material = "material of " + std::to_string(number) + std::string(600, 'm');
  entry->key.hex = sha256_hex(entry->key.material);
  entry->endpoint = "chat.completions";
  entry->model = "gpt-4o-mini-2024-07-18";
  entry->provider = "openai";
  entry->generation = "gen-0123456789abcdef01234567";
  entry->created_ms = 1'700'000'000'000 + number;
  entry->body = std::make_shared<const std::string>(body_bytes, 'x');
  return entry;
}

std::unique_ptr<Store> open_store(const Folder& folder) {
  SqliteStoreOptions options;
  options.path = folder.file("cache.db");
  options.max_queue_bytes = std::size_t{1} << 30;
  return std::move(open_sqlite_store(options).value());
}

std::unique_ptr<Store> open_memory(const Folder&) {
  return make_memory_store(std::uint64_t{1} << 30, std::chrono::minutes(10));
}

std::unique_ptr<Store> open_tiered(const Folder& folder) {
  return make_tiered_store(open_memory(folder), open_store(folder));
}

using Open = std::unique_ptr<Store> (*)(const Folder&);

// Random keys of 100,000 entries, in memory or in the page cache.
template <Open open>
void store_get(benchmark::State& state) {
  static const Folder folder;
  static Store* store = nullptr;
  static std::vector<CacheKey> keys;
  if (state.thread_index() == 0 && store == nullptr) {
    static const std::unique_ptr<Store> opened = open(folder);
    for (int i = 0; i < kEntries; ++i) {
      const EntryPtr entry = entry_of(i, 1024);
      if (i % 10 == 0) keys.push_back(entry->key);
      opened->put(entry);
    }
    opened->flush();
    store = opened.get();
  }
  std::mt19937 random(static_cast<unsigned>(state.thread_index()));
  const bool hit = state.range(0) != 0;
  const CacheKey missing = entry_of(-1, 0)->key;
  for (auto _ : state) {
    bool right = false;
    store->get(hit ? keys[random() % keys.size()] : missing,
               [&](const Store::Found& found) { right = found && (*found != nullptr) == hit; });
    if (!right) state.SkipWithError("wrong answer");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(store_get<open_store>)->ArgName("hit")->Arg(1)->Arg(0)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(store_get<open_memory>)->ArgName("hit")->Arg(1)->Arg(0)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(store_get<open_tiered>)->ArgName("hit")->Arg(1)->Arg(0)->ThreadRange(1, 2)->UseRealTime();

// Includes the wait until all is on disk.
void store_put(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<Store> store = open_store(folder);
  const auto body_bytes = static_cast<std::size_t>(state.range(0));
  int number = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<EntryPtr> entries;
    for (int i = 0; i < 5000; ++i) entries.push_back(entry_of(number++, body_bytes));
    state.ResumeTiming();
    for (EntryPtr& entry : entries) store->put(std::move(entry));
    store->flush();
  }
  if (store->failed_writes() > 0) state.SkipWithError("writes failed");
  state.SetItemsProcessed(state.iterations() * 5000);
}
BENCHMARK(store_put)->Arg(1024)->Arg(8192)->UseRealTime()->Unit(benchmark::kMillisecond);

// What put() costs the thread that calls it.
template <Open open>
void store_put_call(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<Store> store = open(folder);
  const EntryPtr entry = entry_of(0, 1024);
  for (auto _ : state) store->put(entry);
}
BENCHMARK(store_put_call<open_store>)->Iterations(20'000)->UseRealTime();
BENCHMARK(store_put_call<open_memory>)->Iterations(20'000)->UseRealTime();

void store_stats(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<Store> store = open_store(folder);
  for (int i = 0; i < kEntries; ++i) store->put(entry_of(i, 1024));
  store->flush();
  for (auto _ : state) benchmark::DoNotOptimize(store->stats());
}
BENCHMARK(store_stats)->UseRealTime()->Unit(benchmark::kMillisecond);

// Generations of 200 tokens with 5 alternatives each.
void log_append(benchmark::State& state) {
  const Folder folder;
  TokenLogOptions options;
  options.path = folder.file("log.db");
  options.max_queue_bytes = std::size_t{1} << 30;
  const std::unique_ptr<TokenLog> log = std::move(TokenLog::open(options).value());
  std::vector<LoggedToken> tokens;
  for (std::uint32_t i = 0; i < 200; ++i) {
    LoggedToken token;
    token.position = i;
    token.id = 100;
    token.bytes = " word";
    token.margin = 0.5f;
    token.top.assign(5, {100, " word", -0.5f});
    tokens.push_back(token);
  }
  int number = 0;
  for (auto _ : state) {
    for (int i = 0; i < 200; ++i) {
      GenerationRecord record;
      record.id = "gen-" + std::to_string(number++);
      record.created_ms = number;
      record.tokens = tokens;
      log->append(std::move(record));
    }
    log->flush();
  }
  if (log->failed_writes() > 0) state.SkipWithError("writes failed");
  state.counters["tokens/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 200 * 200, benchmark::Counter::kIsRate);
}
BENCHMARK(log_append)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fixpoint

BENCHMARK_MAIN();
