// The token log: what logging costs the thread that answers, and the machine.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/token_log.hpp"

namespace fixpoint {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fixpoint-bench-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Nothing, three patterns that find an address in one generation of ten, and no text at all.
enum Redaction { kNone, kPatterns, kTextOff };

std::unique_ptr<TokenLog> open_log(const Folder& folder, int redaction) {
  TokenLogOptions options;
  options.path = folder.file("log.db");
  options.max_queue_bytes = std::size_t{2} << 30;
#ifndef FIXPOINT_TOKEN_LOG_VERSION_1
  options.keep_text = redaction != kTextOff;
  if (redaction == kPatterns) {
    options.redact = {R"([\w.+-]+@[\w-]+\.[\w.]+)", R"(\bsk-[A-Za-z0-9]{20,})",
                      R"(\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b)"};
  }
#else
  static_cast<void>(redaction);
#endif
  return std::move(TokenLog::open(options).value());
}

// A chat answer of 64 tokens with 5 alternatives each.
GenerationRecord record_of(int number) {
  static const std::vector<std::string> words = {" the",   " answer", " is", " that", " a",
                                                 " model", " of",     ",",   " and",  " nothing"};
  GenerationRecord record;
  record.id = "gen-" + std::to_string(100'000'000'000 + number * 7919LL);
  record.created_ms = 1'700'000'000'000 + number;
  record.key = "body:" + std::string(52, 'a') + std::to_string(100'000'000'000 + number * 104729LL);
  record.prompt_hash = std::string(64, 'b');
  record.endpoint = "chat.completions";
  record.model = record.requested_model = "gpt-4o-mini";
  record.provider = "openai";
  record.route = "gpt-*";
  record.fingerprint = "fp_0123456789";
  record.finish_reason = "stop";
  record.logprobs_status = "captured";
  for (std::uint32_t i = 0; i < 64; ++i) {
    LoggedToken token;
    token.position = i;
    token.bytes = words[i % words.size()];
    if (number % 10 == 0 && i >= 20 && i < 24)
      token.bytes = i == 21 ? "@" : i == 23 ? ".org" : "ab";
    token.logprob = -0.25f;
    token.margin = 0.5f;
    for (std::size_t k = 0; k < 5; ++k) {
      token.top.push_back({std::nullopt, words[(i + k) % words.size()], -0.25f - float(k)});
    }
    record.tokens.push_back(std::move(token));
  }
  return record;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What append() costs its caller: records that were just made, 16 at a time, while the writer is at
// work on those before.
void log_append_call(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<TokenLog> log = open_log(folder, static_cast<int>(state.range(0)));
  constexpr int kAtOnce = 16;
  int number = 0;
  for (auto _ : state) {
    std::vector<GenerationRecord> records;
    for (int i = 0; i < kAtOnce; ++i) records.push_back(record_of(number++));
    timespec begin{}, end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (GenerationRecord& record : records) log->append(std::move(record));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    state.SetIterationTime(static_cast<double>(end.tv_sec - begin.tv_sec) +
                           static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9);
  }
  state.SetItemsProcessed(state.iterations() * kAtOnce);
  log->flush();
  if (log->failed_writes() > 0) state.SkipWithError("writes failed");
}
BENCHMARK(log_append_call)
    ->ArgName("redaction")
    ->Arg(kNone)
    ->Arg(kPatterns)
    ->Iterations(1000)
    ->UseManualTime();

// CPU time of all other threads per generation, checkpoints and the last flush included; `at_once`
// generations come together, then the log is left alone until they are on disk.
void log_write(benchmark::State& state) {
  const auto at_once = static_cast<int>(state.range(1));
  int number = 0;
  double others = 0;
  std::uintmax_t bytes = 0;
  const Folder folder;
  {
    const std::unique_ptr<TokenLog> log = open_log(folder, static_cast<int>(state.range(0)));
    for (auto _ : state) {
      state.PauseTiming();
      std::vector<GenerationRecord> records;
      for (int i = 0; i < at_once; ++i) records.push_back(record_of(number++));
      const double before = cpu_seconds(RUSAGE_SELF) - cpu_seconds(RUSAGE_THREAD);
      state.ResumeTiming();
      for (GenerationRecord& record : records) log->append(std::move(record));
      log->flush();
      state.PauseTiming();
      others += cpu_seconds(RUSAGE_SELF) - cpu_seconds(RUSAGE_THREAD) - before;
      state.ResumeTiming();
    }
    if (log->failed_writes() > 0) state.SkipWithError("writes failed");
  }
  bytes = std::filesystem::file_size(folder.file("log.db"));
  state.counters["writer_cpu_us"] = others * 1e6 / number;
  state.counters["file_bytes"] = static_cast<double>(bytes) / number;
}
BENCHMARK(log_write)
    ->ArgNames({"redaction", "at_once"})
    ->ArgsProduct({{kNone, kPatterns, kTextOff}, {500}})
    ->Iterations(40)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(log_write)
    ->ArgNames({"redaction", "at_once"})
    ->ArgsProduct({{kNone, kPatterns}, {1, 8}})
    ->Iterations(1000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

#ifndef FIXPOINT_TOKEN_LOG_VERSION_1
// Over 20,000 generations (1.3 million tokens).
void log_margin_report(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<TokenLog> log = open_log(folder, kNone);
  for (int i = 0; i < 20'000; ++i) log->append(record_of(i));
  log->flush();
  for (auto _ : state) benchmark::DoNotOptimize(log->margin_report({}));
}
BENCHMARK(log_margin_report)->UseRealTime()->Unit(benchmark::kMillisecond);

void log_walk(benchmark::State& state) {
  const Folder folder;
  const std::unique_ptr<TokenLog> log = open_log(folder, kNone);
  for (int i = 0; i < 20'000; ++i) log->append(record_of(i));
  log->flush();
  std::size_t tokens = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(log->for_each({}, true, [&](const GenerationRecord& record) {
      tokens += record.tokens.size();
      return true;
    }));
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}
BENCHMARK(log_walk)->UseRealTime()->Unit(benchmark::kMillisecond);
#endif

}  // namespace
}  // namespace fixpoint

BENCHMARK_MAIN();
