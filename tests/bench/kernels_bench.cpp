// Speed of the CPU kernels, run by hand. One thread; weights rotate over copies larger than the
// caches where a model would read them from memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/cpu.hpp"
#include "kernels/team.hpp"

namespace {

namespace k = fixpoint::kernels;

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

// Finite small weights: random nibbles or bytes, scales near 2^-6.
std::vector<std::byte> random_rows(k::DType type, std::size_t n, std::size_t width) {
  std::mt19937 generator(2);
  std::vector<std::byte> rows(n * k::row_bytes(type, width));
  for (auto& byte : rows) byte = static_cast<std::byte>(generator());
  const std::size_t block = k::row_bytes(type, k::block_size(type));
  for (std::size_t at = 0; at < rows.size(); at += block) {
    rows[at + 1] = std::byte{0x24};
    if (type == k::DType::q4_1) rows[at + 3] = std::byte{0xa8};
  }
  return rows;
}

void linear(benchmark::State& state, k::DType type, std::size_t n, std::size_t width) {
  const auto m = static_cast<std::size_t>(state.range(0));
  const auto rows = random_rows(type, n, width);
  const std::size_t bytes = rows.size();
  // More than the last-level cache, as the weights of a whole model are.
  const std::size_t copies =
      m <= 16 ? std::max<std::size_t>(1, (std::size_t{160} << 20) / bytes) : 1;
  std::vector<k::PackedMatrix> w;
  for (std::size_t i = 0; i < copies; i++)
    w.push_back(k::PackedMatrix::pack(type, rows.data(), n, width));
  const auto x = random_floats(m * width);
  std::vector<float> y(m * n);
  k::Team team(static_cast<int>(state.range(1)));
  std::size_t at = 0;
  for (auto _ : state) {
    team.run([&](k::Share share) {
      for (std::size_t i = 0; i < std::min<std::size_t>(copies, 8); i++) {
        k::linear(w[(at + i) % copies], x.data(), y.data(), m, share);
        team.barrier();
      }
    });
    at = (at + 8) % copies;
  }
  const double calls = static_cast<double>(state.iterations()) *
                       static_cast<double>(std::min<std::size_t>(copies, 8));
  using Counter = benchmark::Counter;
  state.counters["GFLOP/s"] =
      Counter(2e-9 * calls * static_cast<double>(m * n * width), Counter::kIsRate);
  state.counters["GB/s"] = Counter(1e-9 * calls * static_cast<double>(bytes), Counter::kIsRate);
}

void attention(benchmark::State& state, std::size_t rows_count) {
  constexpr std::size_t kHeads = 9, kKvHeads = 3, kDim = 64;
  const auto context = static_cast<std::size_t>(state.range(0));
  const std::size_t leaves = (context + k::kLeafTokens - 1) / k::kLeafTokens;
  const std::size_t leaf_size = k::kLeafTokens * kKvHeads * kDim;
  // As many layers as a model has, so that decode reads its cache from memory.
  const std::size_t layers = rows_count == 1 ? 30 : 1;
  auto kv = random_floats(2 * layers * leaves * leaf_size);
  std::vector<const float*> keys, values;
  for (std::size_t i = 0; i < layers * leaves; i++) {
    keys.push_back(kv.data() + 2 * i * leaf_size);
    values.push_back(kv.data() + (2 * i + 1) * leaf_size);
  }
  const auto q = random_floats(rows_count * kHeads * kDim);
  std::vector<float> out(q.size());
  k::Team team(static_cast<int>(state.range(1)));
  std::size_t layer = 0;
  double visible = 0;
  for (std::size_t r = 0; r < rows_count; r++)
    visible += static_cast<double>(context - rows_count + r + 1);
  for (auto _ : state) {
    std::vector<k::AttentionRow> rows;
    for (std::size_t r = 0; r < rows_count; r++) {
      rows.push_back({q.data() + r * kHeads * kDim, out.data() + r * kHeads * kDim,
                      keys.data() + layer * leaves, values.data() + layer * leaves,
                      context - rows_count + r});
    }
    team.run([&](k::Share share) { k::attention(rows, kHeads, kKvHeads, kDim, 0.125f, share); });
    layer = (layer + 1) % layers;
  }
  using Counter = benchmark::Counter;
  const double calls = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = Counter(4e-9 * calls * visible * kHeads * kDim, Counter::kIsRate);
  if (rows_count == 1) {
    state.counters["GB/s"] =
        Counter(8e-9 * calls * static_cast<double>(context * kKvHeads * kDim), Counter::kIsRate);
  }
}

void barrier(benchmark::State& state) {
  k::Team team(static_cast<int>(state.range(0)));
  constexpr int kBarriers = 1000;
  for (auto _ : state) {
    team.run([&](k::Share) {
      for (int i = 0; i < kBarriers; i++) team.barrier();
    });
  }
  state.SetItemsProcessed(state.iterations() * kBarriers);
}

void small(benchmark::State& state) {
  const auto x = random_floats(1536), w = random_floats(1536);
  auto y = x;
  for (auto _ : state) {
    k::rms_norm(x.data(), w.data(), 1e-5f, y.data(), 1, 576, {});
    benchmark::DoNotOptimize(y.data());
  }
}

void silu(benchmark::State& state) {
  auto x = random_floats(1536);
  const auto w = random_floats(1536);
  for (auto _ : state) {
    auto y = x;
    k::silu_mul(y.data(), w.data(), 1536, {});
    benchmark::DoNotOptimize(y.data());
  }
}

void log_softmax(benchmark::State& state) {
  const auto x = random_floats(49152);
  auto y = x;
  for (auto _ : state) {
    k::log_softmax(x.data(), y.data(), x.size());
    benchmark::DoNotOptimize(y.data());
  }
}

void rows_and_threads(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "threads"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  for (const int threads : {1, 2}) {
    for (const int rows : {1, 2, 4, 8, 16, 64, 512}) b->Args({rows, threads});
  }
}

void contexts(benchmark::internal::Benchmark* b) {
  b->ArgNames({"context", "threads"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  for (const int threads : {1, 2}) {
    for (const int context : {128, 1024}) b->Args({context, threads});
  }
}

BENCHMARK_CAPTURE(linear, q4_1_1536x576, k::DType::q4_1, 1536, 576)->Apply(rows_and_threads);
BENCHMARK_CAPTURE(linear, q4_1_576x1536, k::DType::q4_1, 576, 1536)->Apply(rows_and_threads);
BENCHMARK_CAPTURE(linear, q8_0_49152x576, k::DType::q8_0, 49152, 576)->Apply(rows_and_threads);
BENCHMARK_CAPTURE(attention, decode, 1)->Apply(contexts);
BENCHMARK_CAPTURE(attention, prefill_128, 128)->Apply(contexts);
BENCHMARK(barrier)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(small)->Name("rms_norm/576");
BENCHMARK(silu)->Name("silu_mul/1536");
BENCHMARK(log_softmax)->Name("log_softmax/49152");

}  // namespace

BENCHMARK_MAIN();
