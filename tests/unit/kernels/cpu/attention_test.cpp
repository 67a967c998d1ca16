#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "kernels/cpu/reference.hpp"
#include "tests/unit/kernels/support.hpp"

namespace fixpoint::kernels {
namespace {

using test::for_each_target;
using test::kUnset;
using test::random_floats;
using test::same_bits;

struct Heads {
  std::size_t heads, kv_heads, head_dim;
  std::size_t kv() const { return kv_heads * head_dim; }
  std::size_t all() const { return heads * head_dim; }
};

// A sequence's cache for one layer. Slots never written hold NaN.
class Sequence {
 public:
  Sequence(Heads heads, std::size_t tokens, unsigned seed) : heads_(heads) {
    const auto k = random_floats(tokens * heads.kv(), seed);
    const auto v = random_floats(tokens * heads.kv(), seed + 1);
    for (std::size_t t = 0; t < tokens; t++) {
      if (t % kLeafTokens == 0) {
        for (auto* leaves : {&keys_, &values_}) {
          leaves->emplace_back(kLeafTokens * heads.kv(), std::nanf(""));
        }
      }
      store_kv(k.data() + t * heads.kv(), v.data() + t * heads.kv(), keys_.back().data(),
               values_.back().data(), t, heads.kv_heads, heads.head_dim);
    }
    for (auto& leaf : keys_) key_leaves_.push_back(leaf.data());
    for (auto& leaf : values_) value_leaves_.push_back(leaf.data());
  }

  // Turns whatever stands behind `position` in its leaf into NaN.
  void forget_after(std::size_t position) {
    const std::size_t leaf = position / kLeafTokens;
    for (std::size_t slot = position % kLeafTokens + 1; slot < kLeafTokens; slot++) {
      for (std::size_t i = 0; i < heads_.kv(); i++) {
        keys_[leaf][i * kLeafTokens + slot] = std::nanf("");
      }
      for (std::size_t h = 0; h < heads_.kv_heads; h++) {
        for (std::size_t j = 0; j < heads_.head_dim; j++) {
          values_[leaf][(h * kLeafTokens + slot) * heads_.head_dim + j] = std::nanf("");
        }
      }
    }
  }

  AttentionRow row(const float* q, float* out, std::size_t position) const {
    return {q, out, key_leaves_.data(), value_leaves_.data(), position};
  }

 private:
  Heads heads_;
  std::deque<std::vector<float>> keys_, values_;
  std::vector<const float*> key_leaves_, value_leaves_;
};

// Rows at the given positions of one sequence, and their outputs.
struct Rows {
  Rows(const Sequence& sequence, Heads heads, const std::vector<std::size_t>& positions,
       unsigned seed)
      : q(random_floats(positions.size() * heads.all(), seed)),
        out(positions.size() * heads.all(), kUnset) {
    for (std::size_t i = 0; i < positions.size(); i++) {
      rows.push_back(
          sequence.row(q.data() + i * heads.all(), out.data() + i * heads.all(), positions[i]));
    }
  }
  std::vector<float> run(Heads h, int size = 1) {
    std::fill(out.begin(), out.end(), kUnset);
    for (int r = 0; r < size; r++)
      attention(rows, h.heads, h.kv_heads, h.head_dim, 0.125f, {r, size});
    return out;
  }
  std::vector<float> run_one_by_one(Heads h) {
    std::fill(out.begin(), out.end(), kUnset);
    for (const auto& row : rows) attention({&row, 1}, h.heads, h.kv_heads, h.head_dim, 0.125f, {});
    return out;
  }
  std::vector<float> expected(Heads h) {
    std::fill(out.begin(), out.end(), kUnset);
    reference::attention(rows, h.heads, h.kv_heads, h.head_dim, 0.125f);
    return out;
  }

  std::vector<float> q, out;
  std::vector<AttentionRow> rows;
};

std::vector<std::size_t> range(std::size_t first, std::size_t last) {
  std::vector<std::size_t> positions;
  for (std::size_t p = first; p <= last; p++) positions.push_back(p);
  return positions;
}

TEST(Attention, EqualsTheReferenceForAllHeadShapes) {
  for (const Heads h :
       {Heads{9, 3, 64}, {4, 4, 32}, {8, 1, 16}, {2, 1, 6}, {5, 1, 80}, {34, 2, 8}, {2, 2, 256}}) {
    SCOPED_TRACE(h.head_dim);
    const Sequence sequence(h, 140, 1);
    Rows rows(sequence, h, {0, 1, 15, 16, 17, 62, 63, 64, 65, 100, 127, 128, 139}, 2);
    const auto expected = rows.expected(h);
    for_each_target([&] {
      for (int size = 1; size <= 5; size++)
        EXPECT_TRUE(same_bits(rows.run(h, size), expected)) << size;
      EXPECT_TRUE(same_bits(rows.run_one_by_one(h), expected));
    });
  }
}

TEST(Attention, PrefillEqualsDecodeAcrossLeaves) {
  const Heads h{9, 3, 64};
  const Sequence sequence(h, 200, 3);
  Rows rows(sequence, h, range(40, 199), 4);
  const auto expected = rows.run_one_by_one(h);
  for_each_target([&] {
    EXPECT_TRUE(same_bits(rows.run(h), expected));
    EXPECT_TRUE(same_bits(rows.run(h, 3), expected));
  });
}

TEST(Attention, AcrossGroups) {
  const Heads h{2, 1, 16};
  const std::size_t group = kLeafTokens * kGroupLeaves;
  const Sequence sequence(h, 2101, 5);
  Rows rows(sequence, h, {group - 2, group - 1, group, group + 1, 2 * group - 1, 2 * group, 2100},
            6);
  const auto expected = rows.expected(h);
  for_each_target([&] {
    EXPECT_TRUE(same_bits(rows.run(h), expected));
    EXPECT_TRUE(same_bits(rows.run(h, 4), expected));
    EXPECT_TRUE(same_bits(rows.run_one_by_one(h), expected));
  });
}

TEST(Attention, UnseenSlotsDoNotMatter) {
  const Heads h{9, 3, 64};
  const Sequence full(h, 128, 7);
  Sequence cut(h, 128, 7);
  const std::size_t position = 85;
  cut.forget_after(position);
  Rows whole(full, h, {80, position}, 8), part(cut, h, {80, position}, 8);
  for_each_target([&] {
    const auto actual = part.run(h);
    EXPECT_TRUE(same_bits(actual, whole.run(h)));
    for (const float value : actual) EXPECT_TRUE(std::isfinite(value));
  });
}

TEST(Attention, BatchMatesDoNotMatter) {
  const Heads h{9, 3, 64};
  const Sequence a(h, 300, 9), b(h, 70, 11), c(h, 10, 13);
  Rows of_a(a, h, range(270, 299), 14), of_b(b, h, {69}, 15), of_c(c, h, {0, 9, 3}, 16);
  const auto alone_a = of_a.run(h), alone_b = of_b.run(h), alone_c = of_c.run(h);
  std::vector<AttentionRow> mixed = {of_b.rows[0], of_c.rows[2]};
  mixed.insert(mixed.end(), of_a.rows.begin(), of_a.rows.end());
  mixed.insert(mixed.begin() + 9, of_c.rows[0]);
  mixed.push_back(of_c.rows[1]);
  for_each_target([&] {
    for (int size = 1; size <= 4; size++) {
      for (auto* rows : {&of_a, &of_b, &of_c})
        std::fill(rows->out.begin(), rows->out.end(), kUnset);
      for (int r = 0; r < size; r++) attention(mixed, 9, 3, 64, 0.125f, {r, size});
      EXPECT_TRUE(same_bits(of_a.out, alone_a)) << size;
      EXPECT_TRUE(same_bits(of_b.out, alone_b)) << size;
      EXPECT_TRUE(same_bits(of_c.out, alone_c)) << size;
    }
  });
}

// Against softmax in long double: the folds are right, not only reproducible.
TEST(Attention, IsAttention) {
  const Heads h{1, 1, 8};
  const std::size_t last = 1500;
  const auto k = random_floats((last + 1) * 8, 17, 2.0f), v = random_floats((last + 1) * 8, 18);
  const Sequence sequence(h, 0, 0);
  std::deque<std::vector<float>> keys, values;
  std::vector<const float*> key_leaves, value_leaves;
  for (std::size_t t = 0; t <= last; t++) {
    if (t % kLeafTokens == 0) {
      keys.emplace_back(kLeafTokens * 8);
      values.emplace_back(kLeafTokens * 8);
      key_leaves.push_back(keys.back().data());
      value_leaves.push_back(values.back().data());
    }
    store_kv(&k[t * 8], &v[t * 8], keys.back().data(), values.back().data(), t, 1, 8);
  }
  const auto q = random_floats(8, 19, 2.0f);
  std::vector<float> out(8);
  const AttentionRow row{q.data(), out.data(), key_leaves.data(), value_leaves.data(), last};
  attention({&row, 1}, 1, 1, 8, 0.5f, {});
  long double sum = 0, expected[8] = {};
  for (std::size_t t = 0; t <= last; t++) {
    long double score = 0;
    for (std::size_t j = 0; j < 8; j++) score += static_cast<long double>(q[j]) * k[t * 8 + j];
    const long double p = std::exp(score * 0.5L);
    sum += p;
    for (std::size_t j = 0; j < 8; j++) expected[j] += p * v[t * 8 + j];
  }
  for (std::size_t j = 0; j < 8; j++) {
    EXPECT_NEAR(out[j], static_cast<double>(expected[j] / sum), 1e-5);
  }
}

}  // namespace
}  // namespace fixpoint::kernels
