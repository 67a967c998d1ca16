// The forward pass of the llama architecture under the profile cpu-v1.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/team.hpp"
#include "local_engine/kv_cache.hpp"
#include "local_engine/model_config.hpp"
#include "local_engine/text/tokenizer.hpp"
#include "local_engine/weights.hpp"

namespace fixpoint::engine {

// One token at one position of one sequence.
struct ForwardRow {
  TokenId token = 0;
  std::size_t position = 0;
  const KvSequence* kv = nullptr;  // capacity() > position
  bool wants_logits = false;
};

// Owns the weights and the team. The logits of a row are a pure function of the weights, the tokens
// at positions 0 .. position of its sequence and the position; other rows, chunks and threads
// change no bit. One forward() at a time.
class Llama {
 public:
  // Rows a call may have at most, and how many of them may want logits.
  Llama(ModelConfig config, Weights weights, int threads, std::size_t max_rows,
        std::size_t max_logit_rows);
  ~Llama();

  // Runs the rows, storing their keys and values. Rows of one sequence stand next to each other in
  // ascending position, and all positions before the first of them are stored or among them.
  // Returns [rows that want logits, vocabulary], in the order of the rows, valid and writable until
  // the next call.
  std::span<float> forward(std::span<const ForwardRow> rows);

  const ModelConfig& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  kernels::Team& team() { return team_; }

 private:
  struct Buffers;  // activations of all rows
  struct Lane;     // one thread's view of a forward pass

  void run(Lane& lane, std::span<const ForwardRow> rows);
  void embed(Lane& lane, std::span<const ForwardRow> rows);
  void attend(Lane& lane, std::span<const ForwardRow> rows, std::size_t layer);
  void feed_forward(Lane& lane, std::size_t rows, std::size_t layer);
  void add_and_norm(Lane& lane, const std::vector<float>& weight);
  void project(Lane& lane, std::span<const ForwardRow> rows);

  ModelConfig config_;
  Weights weights_;
  std::vector<float> frequency_;  // [rotary_dim / 2]
  std::size_t max_rows_, max_logit_rows_;
  kernels::Team team_;
  std::unique_ptr<Buffers> buffers_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by rank
};

}  // namespace fixpoint::engine
