#include "kernels/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace fixpoint::kernels {
namespace {

using Clock = std::chrono::steady_clock;

// A sleeping thread costs its waker a system call and itself some 5 to 50 us until it runs again,
// so spinning for about that long costs at most twice the best choice. Where spinning keeps failing
// (members share a core, or the machine is busy) the thread that is waited for needs the core more:
// each failure halves a thread's spin, each success doubles it.
constexpr Clock::duration kLongestSpin = std::chrono::microseconds(40);
constexpr Clock::duration kShortestSpin = std::chrono::microseconds(2);
constexpr int kPausesPerLook = 16;  // at the clock

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` is no longer `old`. `spin` is the calling thread's own.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old, Clock::duration& spin) {
  const auto changed = [&] {
    for (int i = 0; i < kPausesPerLook; i++) {
      if (value.load(std::memory_order_acquire) != old) return true;
      pause();
    }
    return false;
  };
  if (changed()) return;  // no clock for the usual short wait
  const Clock::time_point deadline = Clock::now() + spin;
  do {
    if (changed()) {
      spin = std::min(spin * 2, kLongestSpin);
      return;
    }
  } while (Clock::now() < deadline);
  spin = std::max(spin / 2, kShortestSpin);
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

struct Team::Impl {
  explicit Impl(int threads) : size(std::max(threads, 1)) {
    for (int rank = 1; rank < size; rank++) {
      workers.emplace_back([this, rank] { work(rank); });
    }
  }

  ~Impl() {
    function = nullptr;  // the order to end
    start();
    for (std::thread& worker : workers) worker.join();
  }

  void start() {
    run.fetch_add(1, std::memory_order_release);
    run.notify_all();
  }

  // noexcept: an exception that left a thread early would leave the others at a barrier for ever.
  void work(int rank) noexcept {
    Clock::duration spin = kLongestSpin;
    for (std::uint32_t seen = 0;; seen++) {
      wait_while(run, seen, spin);
      if (!function) return;
      (*function)(Share{rank, size});
      barrier();
    }
  }

  // The last to come opens the next phase. A phase's counter is reset before the phase opens, so
  // nobody can meet the old count.
  void barrier() {
    if (size == 1) return;
    const std::uint32_t old = phase.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
      arrived.store(0, std::memory_order_relaxed);
      phase.store(old + 1, std::memory_order_release);
      phase.notify_all();
    } else {
      thread_local Clock::duration spin = kLongestSpin;
      wait_while(phase, old, spin);
    }
  }

  const int size;
  const std::function<void(Share)>* function = nullptr;  // published by `run`
  // Each on a cache line of its own: threads spin on `phase` while others write `arrived`.
  alignas(64) std::atomic<std::uint32_t> run{0};
  alignas(64) std::atomic<std::uint32_t> phase{0};
  alignas(64) std::atomic<int> arrived{0};
  std::vector<std::thread> workers;  // last: they use the members above
};

Team::Team(int size) : impl_(std::make_unique<Impl>(size)) {}
Team::~Team() = default;

int Team::size() const {
  return impl_->size;
}

void Team::run(const std::function<void(Share)>& f) {
  if (impl_->size == 1) return f(Share{0, 1});
  impl_->function = &f;
  impl_->start();
  const auto own_part = [&]() noexcept { f(Share{0, impl_->size}); };
  own_part();
  impl_->barrier();
}

void Team::barrier() {
  impl_->barrier();
}

}  // namespace fixpoint::kernels
