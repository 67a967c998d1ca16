// Any bytes as a request: nothing breaks, limits hold, and where the body is cut changes nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/http/head_scanner.hpp"
#include "gateway/http/request_parser.hpp"

namespace {

using namespace fixpoint;

struct Outcome {
  int status = 0;  // of the refusal; 0: none
  bool done = false;
  std::size_t used = 0;
  Request request;
};

Outcome parse(std::string_view text, std::size_t step) {
  static const RequestLimits limits{4096, 32, 1024, 512};
  Outcome outcome;
  HeadScanner scanner;
  std::size_t head = 0;
  for (std::size_t size = std::min(step, text.size());;) {
    const Result<std::size_t> scanned = scanner.scan(text.substr(0, size));
    if (!scanned) {
      outcome.status = 400;
      return outcome;
    }
    head = *scanned;
    if (head != 0 || size == text.size()) break;
    size = std::min(size + step, text.size());
  }
  if (head == 0) return outcome;
  RequestParser parser(outcome.request, limits);
  if (const auto error = parser.put_head(text.substr(0, head))) {
    outcome.status = error->status;
    return outcome;
  }
  outcome.used = head;
  std::size_t offered = std::min(head + step, text.size());
  while (!parser.done() && outcome.used < text.size()) {
    std::size_t used = 0;
    const auto error = parser.put_body(text.substr(outcome.used, offered - outcome.used), used);
    if (error) {
      outcome.status = error->status;
      return outcome;
    }
    outcome.used += used;
    if (parser.done() || offered == text.size()) break;
    offered = std::min(offered + step, text.size());
  }
  outcome.done = parser.done();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = 1 + data[0] % 16;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = parse(text, text.size() + 1);
  const Outcome pieces = parse(text, step);
  // Beast takes a chunk's size from the limit each time it looks at the chunk's line. One whose
  // extension is a quoted string that does not end there is looked at with each piece, and never
  // accepted: it may be "too large" before it is malformed.
  const bool counted_again = pieces.status == 413 && !whole.done;
  if (!counted_again && (whole.status != pieces.status || whole.done != pieces.done)) std::abort();
  if (whole.request.body.size() > 4096 || whole.request.headers.size() > 32) std::abort();
  if (!whole.done) return 0;
  if (whole.used != pieces.used || whole.request.body != pieces.request.body) std::abort();
  // What every accepted request promises to the rest of the program.
  const Request& request = whole.request;
  if (request.path.empty() || request.headers.count("Content-Length") > 1) std::abort();
  if (request.headers.count("Transfer-Encoding") + request.headers.count("Content-Length") > 1) {
    std::abort();
  }
  return 0;
}
