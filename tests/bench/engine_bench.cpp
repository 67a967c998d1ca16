// Tokens per second of the engine's forward pass on the default model, by hand:
//   engine_bench [--benchmark_filter=decode] [--benchmark_repetitions=5]
// The model is $FIXPOINT_TEST_MODEL (a GGUF file, or a folder such as local_engine/models/tiny) or
// the one that `fixpoint model pull smollm2-135m` keeps. Compare with
// tests/bench/llama_cpp_baseline.py on the same machine at the same time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "tests/unit/local_engine/model_support.hpp"

namespace {

using namespace fixpoint::engine;

constexpr std::size_t kMaxRows = 512;

std::unique_ptr<Llama> load(int threads) {
  return fixpoint::test::load_llama(fixpoint::test::smollm2_path(), threads, kMaxRows);
}

TokenId some_token(const Llama& model, std::size_t i) {
  return static_cast<TokenId>((1000 + i * 7919 % 40'000) % model.config().vocabulary);
}

// Prompt tokens first .. first + count of one sequence; logits for the last one only.
std::vector<ForwardRow> prompt_rows(const Llama& model, const KvSequence& kv, std::size_t first,
                                    std::size_t count) {
  std::vector<ForwardRow> rows;
  for (std::size_t i = first; i < first + count; ++i) {
    rows.push_back({some_token(model, i), i, &kv, i + 1 == first + count});
  }
  return rows;
}

void prefill(benchmark::State& state) {
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const auto model = load(static_cast<int>(state.range(1)));
  const auto pool = KvPool::create(model->config(), KvPool::pages_for(tokens)).value();
  const auto kv = pool->reserve(tokens).value();
  const auto rows = prompt_rows(*model, kv, 0, tokens);
  for (auto _ : state) benchmark::DoNotOptimize(model->forward(rows).data());
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(tokens),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

// One token for each of `batch` sequences, each of `context` tokens. The same position is computed
// in every iteration, so the context stays what it is.
void decode(benchmark::State& state) {
  const auto context = static_cast<std::size_t>(state.range(0));
  const auto batch = static_cast<std::size_t>(state.range(1));
  const auto model = load(static_cast<int>(state.range(2)));
  const auto pool = KvPool::create(model->config(), batch * KvPool::pages_for(context)).value();
  std::vector<KvSequence> sequences;
  for (std::size_t b = 0; b < batch; ++b) {
    sequences.push_back(pool->reserve(context).value());
    for (std::size_t at = 0; at + 1 < context; at += kMaxRows) {
      model->forward(prompt_rows(*model, sequences[b], at, std::min(kMaxRows, context - 1 - at)));
    }
  }
  std::vector<ForwardRow> rows;
  for (std::size_t b = 0; b < batch; ++b) {
    rows.push_back({some_token(*model, b), context - 1, &sequences[b], true});
  }
  for (auto _ : state) benchmark::DoNotOptimize(model->forward(rows).data());
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(batch), benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  if (fixpoint::test::smollm2_path().empty()) {
    std::cerr << "the default model is not here: `fixpoint model pull smollm2-135m`, or set "
                 "FIXPOINT_TEST_MODEL\n";
    return 1;
  }
  benchmark::RegisterBenchmark("prefill", prefill)
      ->ArgNames({"tokens", "threads"})
      ->ArgsProduct({{128, 512}, {1, 2}})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("decode", decode)
      ->ArgNames({"context", "batch", "threads"})
      ->ArgsProduct({{128, 1024}, {1, 8}, {1, 2}})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
