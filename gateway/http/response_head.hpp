// Writes the head of a response.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "gateway/http/types.hpp"

namespace fixpoint {

// The Date field's line, rendered once per second. One per core.
class DateLine {
 public:
  std::string_view get();  // "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"; valid until the next call

 private:
  std::time_t second_ = -1;
  std::string line_;
};

enum class Framing { length, chunked, until_close, none };

struct HeadOptions {
  Framing framing = Framing::length;
  std::size_t length = 0;  // with Framing::length
  bool close = false;
  bool http_1_0 = false;
};

std::string_view reason_phrase(int status);  // "" when unknown

// Replaces `out`. Framing fields among the response's headers are left out. Throws
// std::invalid_argument for a name or value that would break the head apart (a bug of the caller).
void render_head(std::string& out, const Response& response, const HeadOptions& options,
                 DateLine& date);

}  // namespace fixpoint
