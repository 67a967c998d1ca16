#include "cache/sqlite/writer.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <utility>

namespace fixpoint::sqlite {
namespace {

constexpr std::size_t kGroupJobs = 512;  // larger groups gain nothing measurable
constexpr std::chrono::milliseconds kGroupTime{5};
constexpr int kCheckpointPages = 1024;  // 16 MiB of 16 KiB pages
// After so long without work the log is emptied, so that a file at rest is one file, and upkeep is
// looked at.
constexpr std::chrono::seconds kIdle{1};

}  // namespace

Writer::Writer(Database& database, std::size_t max_queue_bytes, OnError on_error, Upkeep upkeep)
    : database_(database),
      max_queue_bytes_(max_queue_bytes),
      on_error_(std::move(on_error)),
      upkeep_(std::move(upkeep)) {
  sqlite3_wal_hook(
      database_.handle(),
      [](void* pages_of_log, sqlite3*, const char*, int pages) {
        *static_cast<int*>(pages_of_log) = pages;
        return SQLITE_OK;
      },
      &log_pages_);
  thread_ = std::thread([this] { loop(); });
}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Writer::submit(std::size_t bytes, Work work, Done done) {
  return enqueue({bytes, std::move(work), std::move(done), true}, false);
}

Result<void> Writer::run(Work work, Done done) {
  std::promise<Result<void>> promise;
  std::future<Result<void>> outcome = promise.get_future();
  const auto tell = [&](const Result<void>& result) {
    if (done) done(result);
    promise.set_value(result);
  };
  enqueue({0, std::move(work), tell, false}, true);
  return outcome.get();
}

bool Writer::enqueue(Job job, bool urgent) {
  bool wake = urgent;
  {
    const std::lock_guard lock(mutex_);
    if (!urgent && job.bytes > max_queue_bytes_ - std::min(queued_bytes_, max_queue_bytes_)) {
      ++failed_;
      return false;
    }
    queued_bytes_ += job.bytes;
    ++submitted_;
    queue_.push_back(std::move(job));
    if (urgent) hurry_until_ = submitted_;
    // Between the first job and a full group the thread has nothing to decide: let it sleep.
    wake = wake || queue_.size() == 1 || queue_.size() == kGroupJobs;
  }
  if (wake) wake_.notify_one();
  return true;
}

void Writer::empty_log() {
  enqueue({0, [] { return Result<void>(); }, nullptr, false, true}, true);
  flush();
}

void Writer::flush() {
  std::unique_lock lock(mutex_);
  const std::uint64_t target = submitted_;
  hurry_until_ = target;
  wake_.notify_one();
  flushed_.wait(lock, [&] { return finished_ >= target; });
}

std::uint64_t Writer::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void Writer::loop() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return !queue_.empty() || stopping_; };
  bool more_upkeep = upkeep_.due != nullptr;  // the first look does not wait
  for (;;) {
    if (more_upkeep && !has_work()) {
      lock.unlock();
      more_upkeep = upkeep_step();
      lock.lock();
      continue;
    }
    if (log_pages_ == 0 && !upkeep_.due) {
      wake_.wait(lock, has_work);
    } else if (!wake_.wait_for(lock, kIdle, has_work)) {
      lock.unlock();
      more_upkeep = upkeep_step();
      if (!more_upkeep && log_pages_ > 0) {
        checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
        log_pages_ = 0;  // also when it failed: the next commit brings the next try
      }
      lock.lock();
      continue;
    }
    if (queue_.empty()) break;  // stopping, and nothing is left
    std::vector<Job> group = next_group(lock);
    lock.unlock();
    commit(group);
    more_upkeep = upkeep_step();
    if (std::any_of(group.begin(), group.end(), [](const Job& job) { return job.empties_log; })) {
      checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
    } else if (log_pages_ >= kCheckpointPages) {
      checkpoint(SQLITE_CHECKPOINT_PASSIVE);
    }
    std::size_t bytes = 0;
    for (const Job& job : group) bytes += job.bytes;
    const std::size_t jobs = group.size();
    group.clear();  // frees the bodies outside of the lock
    lock.lock();
    queued_bytes_ -= bytes;
    finished_ += jobs;
    flushed_.notify_all();
  }
  lock.unlock();
  checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
}

std::vector<Writer::Job> Writer::next_group(std::unique_lock<std::mutex>& lock) {
  wake_.wait_for(lock, kGroupTime, [&] {
    return queue_.size() >= kGroupJobs || hurry_until_ > finished_ || stopping_;
  });
  const auto count = static_cast<std::ptrdiff_t>(std::min(queue_.size(), kGroupJobs));
  std::vector<Job> group(std::make_move_iterator(queue_.begin()),
                         std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return group;
}

void Writer::commit(std::span<const Job> group) {
  const Result<void> together = transact(group);
  std::uint64_t kept = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const bool again = !together && group.size() > 1;
    const Result<void> outcome = again ? transact(group.subspan(i, 1)) : together;
    finish(group[i], outcome);
    if (outcome && group[i].counted) ++kept;
  }
  if (!database_.is_in_place()) note_moved(kept);
}

// Such a file is of use to this process until it ends: jobs are done as ever. Then all is lost that
// was written into it, so they count as failed.
void Writer::note_moved(std::uint64_t jobs) {
  {
    const std::lock_guard lock(mutex_);
    failed_ += jobs;
  }
  if (!on_error_) return;
  on_error_({ErrorCode::io, database_.path() +
                                ": was removed or replaced while it was in use; what is written "
                                "is lost until a restart begins a new one"});
}

Result<void> Writer::transact(std::span<const Job> group) {
  // IMMEDIATE takes the write lock now: a deferred transaction that finds another writer fails at
  // its first write without waiting for busy_timeout.
  Result<void> outcome = database_.execute("BEGIN IMMEDIATE");
  try {
    for (const Job& job : group) {
      if (outcome) outcome = job.work();
    }
  } catch (const std::exception& exception) {  // out of memory; a thread must not end the process
    outcome = fail(ErrorCode::io, std::string("writing: ") + exception.what());
  }
  if (outcome) outcome = database_.execute("COMMIT");
  // A full disk may have rolled back already.
  if (!outcome && sqlite3_get_autocommit(database_.handle()) == 0) {
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return outcome;
}

void Writer::finish(const Job& job, const Result<void>& outcome) {
  if (!outcome) {
    if (job.counted) {
      const std::lock_guard lock(mutex_);
      ++failed_;
    }
    if (on_error_) on_error_(outcome.error());
  }
  if (job.done) job.done(outcome);
}

bool Writer::upkeep_step() {
  if (!upkeep_.due || !upkeep_.due()) return false;
  const Job step{0, upkeep_.work, upkeep_.done, false};
  const Result<void> outcome = transact(std::span(&step, 1));
  finish(step, outcome);
  if (log_pages_ >= kCheckpointPages) checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  return outcome && upkeep_.due();  // what failed is tried again later
}

void Writer::checkpoint(int mode) {
  const int code = sqlite3_wal_checkpoint_v2(database_.handle(), nullptr, mode, nullptr, nullptr);
  // BUSY: a reader still needs the log; the next checkpoint takes it.
  if (code != SQLITE_OK && (code & 0xFF) != SQLITE_BUSY && on_error_) {
    on_error_(last_error(database_.handle(), "checkpoint"));
  }
}

}  // namespace fixpoint::sqlite
