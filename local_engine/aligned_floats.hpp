// A fixed array of floats on a cache-line boundary.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace fixpoint::engine {

class AlignedFloats {
 public:
  explicit AlignedFloats(std::size_t count)
      : data_(static_cast<float*>(::operator new(count * sizeof(float), kAlignment))) {}

  float* data() const { return data_.get(); }
  // Row `i` of rows of `width` values.
  float* row(std::size_t i, std::size_t width) const { return data_.get() + i * width; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };
  std::unique_ptr<float, Free> data_;
};

}  // namespace fixpoint::engine
