// The promise of the numerics contract, on whole forward passes: bits of every logit at every
// position, computed alone and then in every other way that a scheduler can think of.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "tests/unit/local_engine/model_support.hpp"

namespace fixpoint::engine {
namespace {

using test::TinyGgufOptions;

constexpr std::size_t kVocabulary = 300;
constexpr std::size_t kMaxRows = 2100;
constexpr std::size_t kGroup = kernels::kLeafTokens * kernels::kGroupLeaves;

// [sequence][position * vocabulary]
using Logits = std::vector<std::vector<float>>;
// Called after each step with its rows: the negative control's way in.
using AfterStep = std::function<void(std::span<const ForwardRow>)>;
// How many tokens of which sequence one step takes.
struct Part {
  std::size_t sequence, tokens;
};
using Step = std::vector<Part>;

std::vector<std::vector<TokenId>> random_sequences(const std::vector<std::size_t>& lengths) {
  std::mt19937 random(7);  // its numbers are fixed by the standard
  std::vector<std::vector<TokenId>> sequences;
  for (const std::size_t length : lengths) {
    auto& tokens = sequences.emplace_back(length);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % kVocabulary);
  }
  return sequences;
}

// One model and one set of sequences; runs plans and collects logits.
class Harness {
 public:
  Harness(const TinyGgufOptions& options, std::vector<std::vector<TokenId>> sequences)
      : sequences_(std::move(sequences)) {
    for (int threads = 1; threads <= 3; ++threads) {
      models_.push_back(test::tiny_llama(options, threads, kMaxRows));
    }
    std::size_t pages = 0;
    for (const auto& tokens : sequences_) pages += KvPool::pages_for(tokens.size());
    pool_ = KvPool::create(models_[0]->config(), pages).value();
  }

  std::size_t count() const { return sequences_.size(); }
  std::size_t length(std::size_t i) const { return sequences_[i].size(); }

  Logits run(const std::vector<Step>& plan, int threads = 1, const AfterStep& after_step = {}) {
    Llama& model = *models_[static_cast<std::size_t>(threads - 1)];
    std::vector<KvSequence> kv;
    for (const auto& tokens : sequences_) {
      kv.push_back(pool_->reserve(tokens.size()).value());
      fill_with_nan(kv.back(), model.config());
    }
    std::vector<std::size_t> stored(count(), 0);
    Logits logits(count());
    for (const Step& step : plan) {
      std::vector<ForwardRow> rows;
      for (const Part& part : step) {
        for (std::size_t i = 0; i < part.tokens && stored[part.sequence] < length(part.sequence);
             ++i) {
          const std::size_t position = stored[part.sequence]++;
          rows.push_back({sequences_[part.sequence][position], position, &kv[part.sequence], true});
        }
      }
      if (rows.empty()) continue;
      const auto out = model.forward(rows);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        auto& own = logits[static_cast<std::size_t>(rows[r].kv - kv.data())];
        const auto row = out.subspan(r * kVocabulary, kVocabulary);
        own.insert(own.end(), row.begin(), row.end());
      }
      if (after_step) after_step(rows);
    }
    return logits;
  }

  // Each sequence alone, its whole prompt in one step.
  std::vector<Step> alone() const {
    std::vector<Step> plan;
    for (std::size_t s = 0; s < count(); ++s) plan.push_back({{s, length(s)}});
    return plan;
  }
  std::vector<Step> alone_in_chunks(std::size_t chunk) const {
    std::vector<Step> plan;
    for (std::size_t s = 0; s < count(); ++s) {
      for (std::size_t at = 0; at < length(s); at += chunk) plan.push_back({{s, chunk}});
    }
    return plan;
  }
  // `mates` sequences at a time, in the given order; in each step each takes its next run of
  // tokens, of a length that differs by sequence and step: decode rows between prefill chunks.
  std::vector<Step> batches(std::size_t mates, const std::vector<std::size_t>& order) const {
    constexpr std::size_t kRuns[] = {1, 16, 1, 17, 64, 3, 1, 40};
    std::vector<Step> plan;
    for (std::size_t first = 0; first < count(); first += mates) {
      const std::size_t last = std::min(count(), first + mates);
      std::vector<std::size_t> left;
      for (std::size_t i = first; i < last; ++i) left.push_back(length(order[i]));
      for (std::size_t n = 0; std::any_of(left.begin(), left.end(), std::identity{}); ++n) {
        Step& step = plan.emplace_back();
        for (std::size_t i = first; i < last; ++i) {
          const std::size_t run = std::min(kRuns[(n + i * 3) % std::size(kRuns)], left[i - first]);
          left[i - first] -= run;
          step.push_back({order[i], run});
        }
      }
    }
    return plan;
  }
  std::vector<std::size_t> order(unsigned seed) const {
    std::vector<std::size_t> order(count());
    std::iota(order.begin(), order.end(), 0);
    if (seed != 0) std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    return order;
  }

 private:
  // What a slot held before must not matter, whatever it is.
  static void fill_with_nan(const KvSequence& kv, const ModelConfig& config) {
    const std::size_t floats = config.kv_width() * kernels::kLeafTokens;
    for (std::size_t layer = 0; layer < config.layers; ++layer) {
      for (float* leaf : kv.key_leaves(layer)) std::fill_n(leaf, floats, NAN);
      for (float* leaf : kv.value_leaves(layer)) std::fill_n(leaf, floats, NAN);
    }
  }

  std::vector<std::vector<TokenId>> sequences_;
  std::vector<std::unique_ptr<Llama>> models_;
  std::unique_ptr<KvPool> pool_;
};

// Logits whose bits differ, over all sequences.
std::size_t differing_bits(const Logits& a, const Logits& b) {
  EXPECT_EQ(a.size(), b.size());
  std::size_t differing = 0;
  for (std::size_t s = 0; s < a.size(); ++s) {
    EXPECT_EQ(a[s].size(), b[s].size());
    for (std::size_t i = 0; i < a[s].size(); ++i) {
      differing += std::bit_cast<std::uint32_t>(a[s][i]) != std::bit_cast<std::uint32_t>(b[s][i]);
    }
  }
  return differing;
}

void expect_usable(const Logits& logits) {
  for (const auto& sequence : logits) {
    ASSERT_FALSE(sequence.empty());
    ASSERT_TRUE(std::all_of(sequence.begin(), sequence.end(),
                            [](float logit) { return std::isfinite(logit); }));
    // Not all alike: equal constants would be invariant, too.
    ASSERT_NE(*std::max_element(sequence.begin(), sequence.end()),
              *std::min_element(sequence.begin(), sequence.end()));
  }
}

TinyGgufOptions options_of(kernels::DType matrices, kernels::DType embedding) {
  TinyGgufOptions options;
  options.matrices = matrices;
  options.embedding = embedding;
  options.context = 4096;
  if (matrices == kernels::DType::q6_k) {
    options.hidden = options.ffn = 256;
    options.layers = 1;
  }
  return options;
}

class Invariance : public ::testing::TestWithParam<std::pair<kernels::DType, kernels::DType>> {};

// Lengths around the leaf's.
TEST_P(Invariance, ChunksAndThreads) {
  Harness harness(options_of(GetParam().first, GetParam().second),
                  random_sequences({1, 5, 63, 64, 65, 130}));
  const Logits expected = harness.run(harness.alone());
  expect_usable(expected);
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(differing_bits(expected, harness.run(harness.alone(), threads)), 0U) << threads;
    for (const std::size_t chunk : {1, 16, 17, 64}) {
      EXPECT_EQ(differing_bits(expected, harness.run(harness.alone_in_chunks(chunk), threads)), 0U)
          << "chunk " << chunk << ", threads " << threads;
    }
  }
}

TEST(InvarianceLong, CrossesAGroupOfLeaves) {
  Harness harness(options_of(kernels::DType::q4_1, kernels::DType::q8_0),
                  random_sequences({kGroup + 77}));
  const Logits expected = harness.run(harness.alone());
  expect_usable(expected);
  EXPECT_EQ(differing_bits(expected, harness.run(harness.alone_in_chunks(1), 2)), 0U);
  EXPECT_EQ(differing_bits(expected, harness.run(harness.alone_in_chunks(17), 1)), 0U);
  EXPECT_EQ(differing_bits(expected, harness.run(harness.alone_in_chunks(64), 3)), 0U);
}

TEST_P(Invariance, BatchesAndOrder) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 33; ++i) lengths.push_back(1 + i * 37 % 150);
  lengths[4] = kGroup + 9;
  Harness harness(options_of(GetParam().first, GetParam().second), random_sequences(lengths));
  const Logits expected = harness.run(harness.alone());
  expect_usable(expected);
  for (const std::size_t mates : {2, 7, 16, 33}) {
    for (const unsigned seed : {0U, 1U}) {
      const int threads = static_cast<int>(1 + (mates + seed) % 3);
      const auto plan = harness.batches(mates, harness.order(seed));
      EXPECT_EQ(differing_bits(expected, harness.run(plan, threads)), 0U)
          << "mates " << mates << ", order " << seed << ", threads " << threads;
    }
  }
}

using kernels::DType;
INSTANTIATE_TEST_SUITE_P(Types, Invariance,
                         ::testing::Values(std::pair(DType::f32, DType::f32),
                                           std::pair(DType::q4_1, DType::q8_0),
                                           std::pair(DType::q6_k, DType::bf16)));

// The negative control: whenever a step has several rows, one key of one token ends up one unit in
// the last place away, as a batch-dependent sum would leave it. The harness must see it.
TEST(InvarianceControl, OneUlpInOneKeyIsCaught) {
  Harness harness(options_of(DType::f32, DType::f32), random_sequences({40, 70}));
  const Logits expected = harness.run(harness.alone_in_chunks(1));
  const auto perturb = [](std::span<const ForwardRow> rows) {
    if (rows.size() < 2) return;
    float* key = rows[0].kv->key_leaves(0)[0] + rows[0].position % kernels::kLeafTokens;
    *key = std::nextafter(*key, std::numeric_limits<float>::infinity());
  };
  const auto batched = harness.batches(2, harness.order(0));
  EXPECT_EQ(differing_bits(expected, harness.run(batched)), 0U);
  EXPECT_GT(differing_bits(expected, harness.run(batched, 1, perturb)), 0U);
}

}  // namespace
}  // namespace fixpoint::engine
