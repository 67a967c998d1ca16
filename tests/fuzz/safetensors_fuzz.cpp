// libFuzzer: any bytes as a safetensors file; what is read lies inside it and nowhere twice.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "local_engine/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::engine;
  const auto header = parse_safetensors(std::as_bytes(std::span(data, size)));
  if (!header) return 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, tensor] : *header) {
    const std::uint64_t bytes = tensor.elements() * fixpoint::kernels::row_bytes(tensor.type, 1);
    if (tensor.begin > tensor.end || tensor.end > size || tensor.end - tensor.begin != bytes) {
      std::abort();
    }
    if (bytes > 0) ranges.emplace_back(tensor.begin, tensor.end);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) std::abort();
  }
  return 0;
}
