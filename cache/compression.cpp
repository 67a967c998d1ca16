#include "cache/compression.hpp"

#include <zstd.h>

#include <memory>
#include <new>

namespace fixpoint {
namespace {

// 1 compresses JSON answers to within a few per cent of 3 at about twice its speed.
constexpr int kLevel = 1;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// A context is some hundred KiB and slow to make: one for each thread that needs it.
ZSTD_CCtx* compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

ZSTD_DCtx* decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

}  // namespace

std::optional<std::string> compress(std::string_view bytes) {
  std::string compressed(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compressCCtx(compressor(), compressed.data(), compressed.size(),
                                             bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) || size >= bytes.size()) return std::nullopt;
  compressed.resize(size);
  compressed.shrink_to_fit();
  return compressed;
}

Result<std::string> decompress(std::string_view bytes, std::size_t size) {
  // Before the memory is asked for: compress() writes the length into every frame.
  if (ZSTD_getFrameContentSize(bytes.data(), bytes.size()) != size) {
    return fail(ErrorCode::corrupt, "a compressed body has another length than its entry says");
  }
  std::string text(size, '\0');
  const std::size_t written =
      ZSTD_decompressDCtx(decompressor(), text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(written) || written != size) {
    return fail(ErrorCode::corrupt, "a compressed body does not decompress");
  }
  return text;
}

}  // namespace fixpoint
