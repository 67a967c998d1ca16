// Memory for keys and values: pages of kLeafTokens tokens out of one fixed pool.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu.hpp"
#include "local_engine/model_config.hpp"
#include "local_engine/result.hpp"

namespace fixpoint::engine {

class KvPool;

// The pages of one sequence. Gives them back when it dies; must not outlive its pool.
class KvSequence {
 public:
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;
  ~KvSequence();

  // Leaf i of a layer covers positions [i * kLeafTokens, (i + 1) * kLeafTokens).
  std::span<float* const> key_leaves(std::size_t layer) const;
  std::span<float* const> value_leaves(std::size_t layer) const;
  std::size_t capacity() const { return pages_.size() * kernels::kLeafTokens; }  // tokens

 private:
  friend class KvPool;
  KvSequence(KvPool& pool, std::vector<std::size_t> pages);

  KvPool* pool_;
  std::vector<std::size_t> pages_;
  std::vector<float*> leaves_;  // [layer][keys | values][page]
};

// A page holds the leaves of every layer: [layer][keys | values][kv_width * kLeafTokens] floats.
// The pool's address space is reserved at once; the system gives memory to a page when it is first
// written. One thread at a time.
class KvPool {
 public:
  static std::size_t page_bytes(const ModelConfig& config);
  static std::size_t pages_for(std::size_t tokens);
  // Errors: overloaded if the address space cannot be had.
  static Result<std::unique_ptr<KvPool>> create(const ModelConfig& config, std::size_t pages);
  ~KvPool();
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  // Room for `tokens` positions, or none if fewer pages are free. Pages are not cleared.
  std::optional<KvSequence> reserve(std::size_t tokens);
  std::size_t pages() const { return total_; }
  std::size_t free_pages() const { return free_.size(); }

 private:
  friend class KvSequence;
  KvPool(const ModelConfig& config, std::size_t pages, float* memory);

  float* memory_;
  std::size_t layers_, leaf_floats_, total_;
  std::vector<std::size_t> free_;
};

}  // namespace fixpoint::engine
