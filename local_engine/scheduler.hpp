// Continuous batching: one thread owns the model, the KV pool and all generations.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "local_engine/generation.hpp"
#include "local_engine/llama.hpp"

namespace fixpoint::engine {

struct SchedulerOptions {
  std::size_t context = 0;        // tokens per sequence
  std::size_t max_batch = 0;      // sequences that run together
  std::size_t prefill_chunk = 0;  // prompt tokens per step, of all sequences together
  std::size_t max_queue = 0;      // requests that wait
  std::size_t scoring_rows = 0;   // of the prefill_chunk, how many at most are scored prompts'
};

// submit() and cancel() are messages to the thread and safe from any other; everything else is the
// thread's alone. A step runs one forward pass: the next token of every sequence that has its
// prompt behind it, and a chunk of prompts. Requests are admitted in the order in which they came,
// each with pages for all the tokens it may reach, so one that runs never lacks memory.
//
// A scored prompt needs a row of logits, the vocabulary's size, for each of its tokens; so it takes
// smaller chunks, and a step's logits stay bounded whatever is scored.
class Scheduler {
 public:
  // `model` can take max_batch + prefill_chunk rows with max_batch + scoring_rows rows of logits;
  // `pool` has pages for at least one sequence of `context` tokens. scoring_rows >= 1.
  Scheduler(std::unique_ptr<Llama> model, std::unique_ptr<KvPool> pool, Vocabulary vocabulary,
            SchedulerOptions options);
  // Ends what still waits or runs with Error cancelled.
  ~Scheduler();

  // Precondition: the request passed check_request(). Errors: overloaded.
  Result<std::uint64_t> submit(GenerateRequest request, GenerateCallback callback);
  void cancel(std::uint64_t id);

 private:
  struct Running {
    std::unique_ptr<Generation> generation;
    KvSequence kv;
    std::size_t stored = 0;  // positions whose keys and values are in kv
  };

  // A row of logits: what it stands behind.
  struct LogitsRow {
    Generation* generation = nullptr;
    std::size_t position = 0;
  };
  struct Plan {
    std::vector<ForwardRow> rows;
    std::vector<LogitsRow> logits;  // in the order of the rows that want them
  };

  void loop();
  bool take_messages();  // false: stop
  void cancel_all(const std::unordered_set<std::uint64_t>& ids);
  void admit();
  void step();
  Plan plan();
  void read(std::span<float> logits, const std::vector<LogitsRow>& rows);

  const SchedulerOptions options_;
  const Vocabulary vocabulary_;

  // The engine thread's own.
  std::unique_ptr<Llama> model_;
  std::unique_ptr<KvPool> pool_;
  std::deque<std::unique_ptr<Generation>> waiting_;
  std::vector<Running> running_;

  // The inbox, under the mutex.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Generation>> submitted_;
  std::unordered_set<std::uint64_t> cancelled_;
  std::size_t queued_ = 0;  // submitted, but not running yet
  std::uint64_t next_id_ = 1;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace fixpoint::engine
