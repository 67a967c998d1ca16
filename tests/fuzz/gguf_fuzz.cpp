// libFuzzer: any bytes as a GGUF file, through everything that reads the header.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "local_engine/gguf.hpp"
#include "local_engine/model_config.hpp"
#include "local_engine/model_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::engine;
  const auto header = parse_gguf(std::as_bytes(std::span(data, size)));
  if (!header) return 0;
  for (const GgufTensor& tensor : header->tensors) {
    if (header->data_offset + tensor.offset + tensor.bytes.value_or(0) > size &&
        tensor.bytes.value_or(0) > 0) {
      std::abort();  // a tensor outside the file
    }
    (void)tensor.type_name();
    (void)tensor.elements();
  }
  for (const auto& [key, value] : header->metadata) (void)value.to_text();
  (void)read_model_config(*header);
  (void)read_model_text(*header);
  return 0;
}
