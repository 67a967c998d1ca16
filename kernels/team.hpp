// A fixed group of threads that run one function together, with a barrier for its stages.
#pragma once

#include <functional>
#include <memory>

#include "kernels/cpu.hpp"

namespace fixpoint::kernels {

// The caller of run() is rank 0; size - 1 threads are owned and sleep between runs.
// One run at a time; run() and barrier() are not reentrant. A size below 1 counts as 1, which owns
// no thread and never waits. Starting threads may throw std::system_error.
class Team {
 public:
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const;
  // Calls f(share) on every thread of the team and returns when all have returned. An exception
  // that leaves f ends the program in a team of two or more: the others would wait for that thread.
  void run(const std::function<void(Share)>& f);
  // Called by every thread inside run(); none passes before all have come. Spins briefly, then
  // sleeps, so that a busy machine does not burn the core that the slowest member needs.
  void barrier();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::kernels
