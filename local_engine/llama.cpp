#include "local_engine/llama.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "local_engine/aligned_floats.hpp"

namespace fixpoint::engine {

using kernels::Share;

namespace {

// Up to this many rows, every thread computes the elementwise work of all rows for itself, in its
// own buffers: a row takes less time than the barrier that sharing it would need. The bits are
// those of the shared way, because every operation works on one row at a time.
constexpr std::size_t kPrivateRows = 2;

struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

Range part_of(std::size_t count, Share share) {
  const auto rank = static_cast<std::size_t>(share.rank);
  const auto size = static_cast<std::size_t>(share.size);
  return {count * rank / size, count * (rank + 1) / size};
}

constexpr Share kAlone{0, 1};

}  // namespace

struct Llama::Buffers {
  Buffers(const ModelConfig& c, std::size_t rows, std::size_t logit_rows)
      : x(rows * c.hidden),
        normed(rows * c.hidden),
        y(rows * c.hidden),
        q(rows * c.q_width()),
        k(rows * c.kv_width()),
        v(rows * c.kv_width()),
        attention(rows * c.q_width()),
        gate(rows * c.ffn),
        up(rows * c.ffn),
        tables(rows * c.rotary_dim),
        table_of(rows),
        attention_rows(rows),
        last(logit_rows * c.hidden),
        logits(logit_rows * c.vocabulary) {
    for (std::size_t i = 0; i < rows; ++i) table_of[i] = tables.row(i, c.rotary_dim);
  }

  AlignedFloats x;       // [rows, hidden] residual stream
  AlignedFloats normed;  // [rows, hidden]
  AlignedFloats y;       // [rows, hidden] what a block adds to the stream
  AlignedFloats q, k, v, attention;
  AlignedFloats gate, up;
  AlignedFloats tables;  // [rows, rotary_dim]
  std::vector<const float*> table_of;
  std::vector<kernels::AttentionRow> attention_rows;
  AlignedFloats last;    // [logit rows, hidden]
  AlignedFloats logits;  // [logit rows, vocabulary]
};

struct Llama::Lane {
  Lane(const ModelConfig& c, Share own_share)
      : share(own_share),
        own_x(kPrivateRows * c.hidden),
        own_normed(kPrivateRows * c.hidden),
        own_gate(kPrivateRows * c.ffn) {}

  Share share;
  AlignedFloats own_x, own_normed, own_gate;

  // Set for one forward pass: whether elementwise work is private, the rows that this lane does of
  // it, and the buffers that it uses for it.
  bool is_private = false;
  Range mine;
  float* x = nullptr;
  float* normed = nullptr;
};

Llama::Llama(ModelConfig config, Weights weights, int threads, std::size_t max_rows,
             std::size_t max_logit_rows)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      frequency_(rope_frequencies(config_, weights_.rope_factors)),
      max_rows_(max_rows),
      max_logit_rows_(max_logit_rows),
      team_(threads),
      buffers_(std::make_unique<Buffers>(config_, max_rows, max_logit_rows)) {
  for (int rank = 0; rank < team_.size(); ++rank) {
    lanes_.push_back(std::make_unique<Lane>(config_, Share{rank, team_.size()}));
  }
}

Llama::~Llama() = default;

std::span<float> Llama::forward(std::span<const ForwardRow> rows) {
  const auto wanting = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const ForwardRow& r) { return r.wants_logits; }));
  if (rows.empty() || rows.size() > max_rows_ || wanting > max_logit_rows_) {
    throw std::logic_error("forward pass of " + std::to_string(rows.size()) + " rows, " +
                           std::to_string(wanting) + " with logits");
  }
  for (const ForwardRow& row : rows) {
    if (row.position >= row.kv->capacity()) throw std::logic_error("row beyond its pages");
  }
  team_.run([&](Share share) { run(*lanes_[static_cast<std::size_t>(share.rank)], rows); });
  return {buffers_->logits.data(), wanting * config_.vocabulary};
}

void Llama::run(Lane& lane, std::span<const ForwardRow> rows) {
  const std::size_t count = rows.size();
  lane.is_private = count <= kPrivateRows;
  lane.mine = lane.is_private ? Range{0, count} : part_of(count, lane.share);
  lane.x = lane.is_private ? lane.own_x.data() : buffers_->x.data();
  lane.normed = lane.is_private ? lane.own_normed.data() : buffers_->normed.data();

  embed(lane, rows);
  for (std::size_t layer = 0; layer < config_.layers; ++layer) {
    attend(lane, rows, layer);
    add_and_norm(lane, weights_.layers[layer].ffn_norm);
    feed_forward(lane, count, layer);
    const bool last = layer + 1 == config_.layers;
    add_and_norm(lane, last ? weights_.output_norm : weights_.layers[layer + 1].attention_norm);
  }
  project(lane, rows);
}

// Embeddings, the first norm and the rotation tables. The tables need no barrier of their own: a
// lane rotates the rows whose tables it made.
void Llama::embed(Lane& lane, std::span<const ForwardRow> rows) {
  const EmbeddingTable& table = weights_.embedding;
  const std::size_t stride = kernels::row_bytes(table.type, config_.hidden);
  for (std::size_t i = lane.mine.begin; i < lane.mine.end; ++i) {
    const auto token = static_cast<std::size_t>(rows[i].token);
    kernels::dequantise_row(table.type, table.rows.data() + token * stride, config_.hidden,
                            lane.x + i * config_.hidden);
  }
  const Range rotated = part_of(rows.size(), lane.share);
  for (std::size_t i = rotated.begin; i < rotated.end; ++i) {
    kernels::rope_table(rows[i].position, frequency_, buffers_->tables.row(i, config_.rotary_dim));
  }
  const std::size_t at = lane.mine.begin * config_.hidden;
  kernels::rms_norm(lane.x + at, weights_.layers[0].attention_norm.data(), config_.rms_eps,
                    lane.normed + at, lane.mine.size(), config_.hidden, kAlone);
  if (!lane.is_private) team_.barrier();
}

// x += y, and the next block's norm of x. `y` is complete: a barrier stands before.
void Llama::add_and_norm(Lane& lane, const std::vector<float>& weight) {
  const std::size_t at = lane.mine.begin * config_.hidden;
  kernels::add(lane.x + at, buffers_->y.data() + at, lane.mine.size() * config_.hidden, kAlone);
  kernels::rms_norm(lane.x + at, weight.data(), config_.rms_eps, lane.normed + at, lane.mine.size(),
                    config_.hidden, kAlone);
  if (!lane.is_private) team_.barrier();
}

void Llama::attend(Lane& lane, std::span<const ForwardRow> rows, std::size_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  Buffers& b = *buffers_;
  const std::size_t count = rows.size();
  kernels::linear(w.q, lane.normed, b.q.data(), count, lane.share);
  kernels::linear(w.k, lane.normed, b.k.data(), count, lane.share);
  kernels::linear(w.v, lane.normed, b.v.data(), count, lane.share);
  team_.barrier();

  const Range rotated = part_of(count, lane.share);
  const std::size_t at = rotated.begin;
  kernels::rope(b.q.row(at, config_.q_width()), b.table_of.data() + at, rotated.size(),
                config_.heads, config_.head_dim, config_.rotary_dim, config_.rope_pairing, kAlone);
  kernels::rope(b.k.row(at, config_.kv_width()), b.table_of.data() + at, rotated.size(),
                config_.kv_heads, config_.head_dim, config_.rotary_dim, config_.rope_pairing,
                kAlone);
  for (std::size_t i = at; i < rotated.end; ++i) {
    const ForwardRow& row = rows[i];
    const auto keys = row.kv->key_leaves(layer);
    const auto values = row.kv->value_leaves(layer);
    const std::size_t leaf = row.position / kernels::kLeafTokens;
    kernels::store_kv(b.k.row(i, config_.kv_width()), b.v.row(i, config_.kv_width()), keys[leaf],
                      values[leaf], row.position, config_.kv_heads, config_.head_dim);
    b.attention_rows[i] = {b.q.row(i, config_.q_width()), b.attention.row(i, config_.q_width()),
                           keys.data(), values.data(), row.position};
  }
  team_.barrier();

  const float scale = 1 / std::sqrt(static_cast<float>(config_.head_dim));
  kernels::attention({b.attention_rows.data(), count}, config_.heads, config_.kv_heads,
                     config_.head_dim, scale, lane.share);
  team_.barrier();
  kernels::linear(w.o, b.attention.data(), b.y.data(), count, lane.share);
  team_.barrier();
}

void Llama::feed_forward(Lane& lane, std::size_t rows, std::size_t layer) {
  const LayerWeights& w = weights_.layers[layer];
  Buffers& b = *buffers_;
  kernels::linear(w.gate, lane.normed, b.gate.data(), rows, lane.share);
  kernels::linear(w.up, lane.normed, b.up.data(), rows, lane.share);
  team_.barrier();

  float* gate = b.gate.data();
  const std::size_t at = lane.mine.begin * config_.ffn;
  const std::size_t count = lane.mine.size() * config_.ffn;
  if (lane.is_private) {
    std::memcpy(lane.own_gate.data(), gate, count * sizeof(float));
    gate = lane.own_gate.data();
  }
  kernels::silu_mul(gate + at, b.up.data() + at, count, kAlone);
  if (!lane.is_private) team_.barrier();
  kernels::linear(w.down, gate, b.y.data(), rows, lane.share);
  team_.barrier();
}

// Logits of the rows that want them. Where only some do, they are gathered first; in private mode
// each lane has the same rows, so rank 0 gathers for all.
void Llama::project(Lane& lane, std::span<const ForwardRow> rows) {
  Buffers& b = *buffers_;
  std::size_t wanting = 0;
  for (const ForwardRow& row : rows) wanting += row.wants_logits;
  if (wanting == 0) return;
  const float* last = lane.normed;
  if (wanting < rows.size()) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < rows.size() && lane.share.rank == 0; ++i) {
      if (!rows[i].wants_logits) continue;
      std::memcpy(b.last.row(next++, config_.hidden), lane.normed + i * config_.hidden,
                  config_.hidden * sizeof(float));
    }
    last = b.last.data();
    team_.barrier();
  }
  kernels::linear(weights_.head, last, b.logits.data(), wanting, lane.share);
}

}  // namespace fixpoint::engine
