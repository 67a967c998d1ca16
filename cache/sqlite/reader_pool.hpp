// Reader connections, kept open with their prepared statements.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint::sqlite {

// Thread-safe. Holds at most as many readers as there ever were callers at one time; must outlive
// every lease. Reader is a connection with its statements.
template <class Reader>
class ReaderPool {
 public:
  using Open = std::function<Result<std::unique_ptr<Reader>>()>;

  explicit ReaderPool(Open open) : open_(std::move(open)) {}

  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader)
        : pool_(&pool), reader_(std::move(reader)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (reader_) pool_->give_back(std::move(reader_));
    }
    Reader* operator->() const { return reader_.get(); }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  Result<Lease> acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Reader> reader = std::move(idle_.back());  // the one with the warmest cache
        idle_.pop_back();
        return Lease(*this, std::move(reader));
      }
    }
    Result<std::unique_ptr<Reader>> reader = open_();
    if (!reader) return tl::make_unexpected(std::move(reader.error()));
    return Lease(*this, std::move(*reader));
  }

 private:
  void give_back(std::unique_ptr<Reader> reader) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(reader));
  }

  Open open_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> idle_;
};

}  // namespace fixpoint::sqlite
