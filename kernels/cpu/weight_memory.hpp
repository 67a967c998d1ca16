// Memory for packed weights: 64-byte aligned, zeroed, in huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <memory>

namespace fixpoint::kernels {

// Thread-safe. Large matrices share slabs of huge pages, because one matrix of a small model fills
// less than a page of 2 MiB; a slab is unmapped with the last matrix in it. Throws std::bad_alloc.
std::shared_ptr<std::byte> allocate_weights(std::size_t bytes);

}  // namespace fixpoint::kernels
