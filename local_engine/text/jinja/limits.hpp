// What one template may cost. A template comes with a model file and its input from a client, so
// neither is trusted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fixpoint::engine::jinja {

// Bytes of template source; the longest published chat templates have about 30 KB.
inline constexpr std::size_t kMaxSource = std::size_t{1} << 20;
// Nesting of syntax: parentheses, blocks, operator chains. Also bounds the C++ stack of the parser.
inline constexpr int kMaxSyntaxDepth = 200;
// Nesting of values: lists in lists, from the client or built by the template.
inline constexpr int kMaxValueDepth = 200;
inline constexpr int kMaxMacroDepth = 200;
// Nodes being evaluated at once. Bounds the C++ stack of the interpreter: about 1 KiB each, several
// times that under AddressSanitizer.
inline constexpr int kMaxEvaluationDepth = 1000;
// Nodes evaluated, list elements touched, KiB of text made or searched.
inline constexpr std::int64_t kMaxSteps = 1'000'000;
// Bytes of the rendered text and of every string on the way.
inline constexpr std::size_t kMaxText = std::size_t{16} << 20;

}  // namespace fixpoint::engine::jinja
