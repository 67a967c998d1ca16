#include "tests/support/mock_request.hpp"

#include <algorithm>
#include <cctype>

namespace fixpoint::test {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

bool parse_head(std::string_view head, MockRequest& request) {
  const std::size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const std::size_t a = line.find(' ');
  const std::size_t b = line.rfind(' ');
  if (a == std::string_view::npos || a == b) return false;
  request.method = line.substr(0, a);
  request.path = line.substr(a + 1, b - a - 1);
  request.path.resize(std::min(request.path.find('?'), request.path.size()));
  request.keep_alive = line.substr(b + 1) == "HTTP/1.1";
  request.headers.clear();
  std::size_t at = line_end + 2;
  while (at < head.size()) {
    const std::size_t end = head.find("\r\n", at);
    if (end == std::string_view::npos || end == at) break;
    const std::string_view field = head.substr(at, end - at);
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos) return false;
    std::string_view value = field.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    request.headers[lower(field.substr(0, colon))] = value;
    at = end + 2;
  }
  const auto connection = request.headers.find("connection");
  if (connection != request.headers.end() && lower(connection->second) == "close") {
    request.keep_alive = false;
  }
  return true;
}

}  // namespace fixpoint::test
