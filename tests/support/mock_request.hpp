// A request as the mock upstream reads it: no checks, it serves friends only.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fixpoint::test {

struct MockRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool keep_alive = true;
};

// `head` ends with its blank line. False: malformed.
bool parse_head(std::string_view head, MockRequest& request);

}  // namespace fixpoint::test
