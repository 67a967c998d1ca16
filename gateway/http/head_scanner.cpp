#include "gateway/http/head_scanner.hpp"

namespace fixpoint {

Result<std::size_t> HeadScanner::scan(std::string_view bytes) {
  for (;;) {
    const std::size_t lf = bytes.find('\n', seen_);
    if (lf == std::string_view::npos) {
      seen_ = bytes.size();
      return std::size_t{0};
    }
    if (lf == 0 || bytes[lf - 1] != '\r') {
      return fail(ErrorCode::protocol, "a header line ends in LF without CR");
    }
    const std::string_view line = bytes.substr(line_start_, lf - 1 - line_start_);
    seen_ = line_start_ = lf + 1;
    if (line.empty()) return lf + 1;
    if (line.front() == ' ' || line.front() == '\t') {
      return fail(ErrorCode::protocol, "a header line begins with white space");
    }
    if (lines_++ == 0) first_line_ = line.size();
  }
}

}  // namespace fixpoint
