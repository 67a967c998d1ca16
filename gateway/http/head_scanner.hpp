// Finds the end of an HTTP/1.1 message head and refuses what makes two parsers disagree about it.
#pragma once

#include <cstddef>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint {

// Incremental: each call sees the same bytes as the one before plus new ones, and looks at the new
// ones only. Beast alone would accept folded lines, and its limit holds per line, not per head.
class HeadScanner {
 public:
  // The size of the head including its blank line, or 0: not complete. Errors: protocol, for a line
  // that ends in a bare LF and for a line that begins with white space (a folded field).
  Result<std::size_t> scan(std::string_view bytes);
  std::size_t lines() const { return lines_; }                 // complete ones, start line included
  std::size_t first_line_size() const { return first_line_; }  // 0: not complete yet

 private:
  std::size_t seen_ = 0;
  std::size_t line_start_ = 0;
  std::size_t lines_ = 0;
  std::size_t first_line_ = 0;
};

}  // namespace fixpoint
