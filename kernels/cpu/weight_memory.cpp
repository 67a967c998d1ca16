#include "kernels/cpu/weight_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

namespace fixpoint::kernels {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSlabBytes = std::size_t{64} << 20;
// Smaller matrices take the heap, where tools such as AddressSanitizer see overruns.
constexpr std::size_t kSlabMinimum = std::size_t{64} << 10;

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Anonymous memory that starts on a huge page. Pages cost memory only once touched.
class Slab {
 public:
  explicit Slab(std::size_t bytes) : size_(round_up(bytes, kHugePage)) {
    mapped_ = size_ + kHugePage;
    void* p = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    map_ = p;
    start_ =
        static_cast<std::byte*>(p) + (round_up(reinterpret_cast<std::uintptr_t>(p), kHugePage) -
                                      reinterpret_cast<std::uintptr_t>(p));
    madvise(start_, size_, MADV_HUGEPAGE);  // a hint: without it everything works, slower
  }
  ~Slab() { munmap(map_, mapped_); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Null when the slab has no room left.
  std::byte* take(std::size_t bytes) {
    if (size_ - used_ < bytes) return nullptr;
    std::byte* p = start_ + used_;
    used_ += bytes;
    return p;
  }

 private:
  std::size_t size_, mapped_ = 0, used_ = 0;
  void* map_ = nullptr;
  std::byte* start_ = nullptr;
};

}  // namespace

std::shared_ptr<std::byte> allocate_weights(std::size_t bytes) {
  bytes = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  if (bytes < kSlabMinimum) {
    auto* p = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment}));
    std::memset(p, 0, bytes);
    return {p, [](std::byte* q) { ::operator delete(q, std::align_val_t{kAlignment}); }};
  }
  static std::mutex mutex;
  static std::weak_ptr<Slab> current;  // owned by the matrices in it
  const std::lock_guard lock(mutex);
  std::shared_ptr<Slab> slab = current.lock();
  std::byte* p = slab ? slab->take(bytes) : nullptr;
  if (!p) {
    slab = std::make_shared<Slab>(std::max(bytes, kSlabBytes));
    current = slab;
    p = slab->take(bytes);
  }
  return {slab, p};
}

}  // namespace fixpoint::kernels
