#include "local_engine/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace fixpoint::engine {

Scheduler::Scheduler(std::unique_ptr<Llama> model, std::unique_ptr<KvPool> pool,
                     Vocabulary vocabulary, SchedulerOptions options)
    : options_(options),
      vocabulary_(std::move(vocabulary)),
      model_(std::move(model)),
      pool_(std::move(pool)),
      thread_([this] { loop(); }) {}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<std::uint64_t> Scheduler::submit(GenerateRequest request, GenerateCallback callback) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (queued_ >= options_.max_queue) {
      return fail(ErrorCode::overloaded, "the engine has " + std::to_string(queued_) +
                                             " requests waiting, the limit (max_queue) is " +
                                             std::to_string(options_.max_queue));
    }
    id = next_id_++;
    ++queued_;
    submitted_.push_back(std::make_unique<Generation>(id, std::move(request), std::move(callback),
                                                      options_.context, vocabulary_));
  }
  wake_.notify_one();
  return id;
}

void Scheduler::cancel(std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.insert(id);
  }
  wake_.notify_one();
}

void Scheduler::loop() {
  while (take_messages()) {
    admit();
    if (!running_.empty()) step();
  }
}

// Sleeps while there is nothing to do. Callbacks are called without the lock: they may cancel().
bool Scheduler::take_messages() {
  std::unordered_set<std::uint64_t> cancelled;
  bool stop = false;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] {
      return stop_ || !submitted_.empty() || !cancelled_.empty() || !running_.empty() ||
             !waiting_.empty();
    });
    for (auto& generation : submitted_) waiting_.push_back(std::move(generation));
    submitted_.clear();
    cancelled = std::exchange(cancelled_, {});
    stop = stop_;
  }
  if (stop) {
    for (const Running& r : running_) cancelled.insert(r.generation->id());
    for (const auto& generation : waiting_) cancelled.insert(generation->id());
  }
  if (!cancelled.empty()) cancel_all(cancelled);
  return !stop;
}

// Ids of generations that have ended already are ignored.
void Scheduler::cancel_all(const std::unordered_set<std::uint64_t>& ids) {
  const Error error{ErrorCode::cancelled, "the generation was cancelled"};
  for (const Running& r : running_) {
    if (ids.contains(r.generation->id())) r.generation->fail_with(error);
  }
  std::erase_if(running_, [&](const Running& r) { return ids.contains(r.generation->id()); });
  for (const auto& generation : waiting_) {
    if (ids.contains(generation->id())) generation->fail_with(error);
  }
  const std::size_t removed = std::erase_if(
      waiting_, [&](const auto& generation) { return ids.contains(generation->id()); });
  const std::lock_guard lock(mutex_);
  queued_ -= removed;
}

// Strictly in order: a large request is not overtaken by small ones for ever.
void Scheduler::admit() {
  std::size_t admitted = 0;
  while (!waiting_.empty() && running_.size() < options_.max_batch) {
    auto kv = pool_->reserve(waiting_.front()->most_tokens());
    if (!kv) break;
    running_.push_back({std::move(waiting_.front()), *std::move(kv)});
    waiting_.pop_front();
    ++admitted;
  }
  if (admitted == 0) return;
  const std::lock_guard lock(mutex_);
  queued_ -= admitted;
}

// The rows of one step. A sequence with one token to store gets its row at once; longer rests share
// prefill_chunk rows, the oldest first.
Scheduler::Plan Scheduler::plan() {
  Plan plan;
  std::size_t chunk = options_.prefill_chunk, scoring = options_.scoring_rows;
  for (Running& r : running_) {
    const Generation& generation = *r.generation;
    const auto tokens = generation.tokens();
    std::size_t count = tokens.size() - r.stored;
    if (count > 1) {
      count = std::min(count, chunk);
      if (generation.scores_prompt()) {
        count = std::min(count, scoring);
        scoring -= count;
      }
      chunk -= count;
    }
    for (; count > 0; --count, ++r.stored) {
      const bool wanted = generation.wants_logits(r.stored);
      plan.rows.push_back({tokens[r.stored], r.stored, &r.kv, wanted});
      if (wanted) plan.logits.push_back({r.generation.get(), r.stored});
    }
  }
  return plan;
}

void Scheduler::step() {
  const Plan plan = this->plan();
  read(model_->forward(plan.rows), plan.logits);

  std::unordered_set<std::uint64_t> ended;
  for (Running& r : running_) {
    const bool ready = r.stored == r.generation->tokens().size();
    if (ready && !r.generation->advance()) ended.insert(r.generation->id());
  }
  std::erase_if(running_, [&](const Running& r) { return ended.contains(r.generation->id()); });
}

void Scheduler::read(std::span<float> logits, const std::vector<LogitsRow>& rows) {
  const std::size_t width = model_->config().vocabulary;
  std::vector<Result<GeneratedToken>> tokens(rows.size());
  const auto read_one = [&](std::size_t i) {
    tokens[i] = rows[i].generation->read(logits.subspan(i * width, width), rows[i].position);
  };
  if (rows.size() == 1) {  // not worth waking the team
    read_one(0);
  } else if (!rows.empty()) {
    model_->team().run([&](kernels::Share share) {
      for (auto i = static_cast<std::size_t>(share.rank); i < rows.size();
           i += static_cast<std::size_t>(share.size)) {
        read_one(i);
      }
    });
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].generation->take(std::move(tokens[i]), rows[i].position);
  }
}

}  // namespace fixpoint::engine
