// What one answer may grow to while its stream is put together. Inside this folder.
#pragma once

#include <cstddef>

namespace fixpoint::dialects {

constexpr std::size_t kMaxChoices = 128;  // OpenAI's limit of n
constexpr std::size_t kMaxMerged = 1024;  // members of an object; tool calls, blocks, output items

}  // namespace fixpoint::dialects
