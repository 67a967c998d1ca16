#include "local_engine/kv_cache.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace fixpoint::engine {

KvSequence::KvSequence(KvPool& pool, std::vector<std::size_t> pages)
    : pool_(&pool), pages_(std::move(pages)) {
  leaves_.reserve(pool.layers_ * 2 * pages_.size());
  for (std::size_t layer = 0; layer < pool.layers_; ++layer) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (const std::size_t page : pages_) {
        leaves_.push_back(pool.memory_ +
                          ((page * pool.layers_ + layer) * 2 + half) * pool.leaf_floats_);
      }
    }
  }
}

KvSequence::KvSequence(KvSequence&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      pages_(std::move(other.pages_)),
      leaves_(std::move(other.leaves_)) {}

KvSequence& KvSequence::operator=(KvSequence&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pages_, other.pages_);
  std::swap(leaves_, other.leaves_);
  return *this;
}

KvSequence::~KvSequence() {
  if (pool_) pool_->free_.insert(pool_->free_.end(), pages_.begin(), pages_.end());
}

std::span<float* const> KvSequence::key_leaves(std::size_t layer) const {
  return std::span(leaves_).subspan(layer * 2 * pages_.size(), pages_.size());
}

std::span<float* const> KvSequence::value_leaves(std::size_t layer) const {
  return std::span(leaves_).subspan((layer * 2 + 1) * pages_.size(), pages_.size());
}

std::size_t KvPool::page_bytes(const ModelConfig& config) {
  return config.layers * 2 * config.kv_width() * kernels::kLeafTokens * sizeof(float);
}

std::size_t KvPool::pages_for(std::size_t tokens) {
  return (tokens + kernels::kLeafTokens - 1) / kernels::kLeafTokens;
}

Result<std::unique_ptr<KvPool>> KvPool::create(const ModelConfig& config, std::size_t pages) {
  const std::size_t bytes = pages * page_bytes(config);
  // MAP_NORESERVE: pages that are never written cost nothing, whatever the overcommit setting.
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::overloaded, "cannot reserve " + std::to_string(bytes) +
                                           " bytes (kv_bytes) for keys and values: " +
                                           std::system_category().message(errno));
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // best effort: fewer address translations
  return std::unique_ptr<KvPool>(new KvPool(config, pages, static_cast<float*>(memory)));
}

KvPool::KvPool(const ModelConfig& config, std::size_t pages, float* memory)
    : memory_(memory),
      layers_(config.layers),
      leaf_floats_(config.kv_width() * kernels::kLeafTokens),
      total_(pages) {
  free_.reserve(pages);
  for (std::size_t page = pages; page > 0; --page) free_.push_back(page - 1);
}

KvPool::~KvPool() {
  ::munmap(memory_, total_ * layers_ * 2 * leaf_floats_ * sizeof(float));
}

std::optional<KvSequence> KvPool::reserve(std::size_t tokens) {
  const std::size_t count = pages_for(tokens);
  if (count > free_.size()) return std::nullopt;
  std::vector<std::size_t> pages(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end());
  free_.resize(free_.size() - count);
  return KvSequence(*this, std::move(pages));
}

}  // namespace fixpoint::engine
