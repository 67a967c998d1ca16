// The one writing thread of a SQLite file.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "cache/base/result.hpp"
#include "cache/sqlite/database.hpp"

namespace fixpoint::sqlite {

// Everything that changes a file runs here, on one connection: SQLite before 3.51.3 (Debian 12 has
// 3.40.1) can lose commits when one connection writes while another one's checkpoint resets the log
// (sqlite.org/wal.html#walresetbug). With one connection that also makes the checkpoints, and
// readers that are read-only, the two never happen at once.
//
// Jobs are committed in groups, in the order in which they came: up to 512 rows or whatever came
// within 5 ms. When a group fails, its jobs are tried again one by one, so that a row which cannot
// be stored takes no other with it; after a failure the next job is tried as usual. Thread-safe.
class Writer {
 public:
  // Runs on the writer's thread inside a transaction; runs again if its group failed.
  using Work = std::function<Result<void>()>;
  // Runs on the writer's thread, after the commit or the failure, in the order of the jobs.
  using Done = std::function<void(const Result<void>&)>;
  using OnError = std::function<void(const Error&)>;
  // What a file needs beside the jobs, in small steps. All three run on the writer's thread. due()
  // is asked after each group, and every second while there are no jobs; after a step that did not
  // fail it is asked again, when the jobs that wait have had their turn.
  struct Upkeep {
    std::function<bool()> due;
    Work work;  // one step, in a transaction of its own
    Done done;
  };

  // `database` must outlive the writer and be used by nobody else, but by Work. `on_error` may be
  // empty; it hears of each job that failed, of failed checkpoints, and of groups that were written
  // into a file that is no longer at its path (their jobs are done, but count as failed), on the
  // writer's thread.
  Writer(Database& database, std::size_t max_queue_bytes, OnError on_error, Upkeep upkeep = {});
  // Finishes the queue, checkpoints, and stops.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // false: the queue is full, the job is dropped and counted as failed; neither function is called.
  bool submit(std::size_t bytes, Work work, Done done);
  // Waits for the job's end. Not bounded by the queue's limit; not counted. Never call it from
  // Work. `done` may be empty.
  Result<void> run(Work work, Done done = nullptr);
  // Empties the log after the jobs that were submitted before, and waits for it: what they removed
  // is in the log, too. A reader that needs the log for seconds leaves it to the next checkpoint.
  void empty_log();
  // Waits until every job that was submitted before is done, and a step of upkeep after it if one
  // was due.
  void flush();
  std::uint64_t failed() const;

 private:
  struct Job {
    std::size_t bytes;
    Work work;
    Done done;
    bool counted;  // in failed_
    bool empties_log = false;
  };

  bool enqueue(Job job, bool urgent);  // urgent: no limit, and no waiting for company
  void loop();
  std::vector<Job> next_group(std::unique_lock<std::mutex>& lock);
  void commit(std::span<const Job> group);
  Result<void> transact(std::span<const Job> group);
  void note_moved(std::uint64_t jobs);  // the file; so many were done
  void finish(const Job& job, const Result<void>& outcome);
  bool upkeep_step();  // true: another one is due
  void checkpoint(int mode);

  Database& database_;
  const std::size_t max_queue_bytes_;
  const OnError on_error_;
  const Upkeep upkeep_;
  int log_pages_ = 0;  // in the write-ahead log; the writer's thread only

  mutable std::mutex mutex_;
  std::condition_variable wake_, flushed_;
  std::deque<Job> queue_;
  std::size_t queued_bytes_ = 0;  // queued or being committed
  std::uint64_t submitted_ = 0, finished_ = 0;
  std::uint64_t hurry_until_ = 0;  // do not wait for company up to this job
  std::uint64_t failed_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace fixpoint::sqlite
