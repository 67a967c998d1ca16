// What the mock upstream answers: a pure function of the request and of the number of the call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fixpoint::test {

struct MockAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  bool streamed = false;                 // chunked, one chunk per piece; otherwise Content-Length
  std::vector<std::string> pieces;       // of the body
  std::chrono::milliseconds delay{0};    // before the head
  std::chrono::milliseconds between{0};  // between pieces
  std::optional<std::size_t> cut;        // the connection ends after so many bytes of the body
  bool reset = false;                    // the connection is reset instead of an answer
  bool split = false;                    // one byte of the body per write
};

// The "model" member, found without parsing the rest; empty when there is none.
std::string mock_model(std::string_view body);

// `path` without query. `call` is the number of the generation, from 1; both it and a hash of the
// body stand in the content, so that a test can tell a new generation from a stored one.
MockAnswer mock_answer(std::string_view method, std::string_view path, const std::string& body,
                       std::uint64_t call);

// The whole response to a plain request for the model "mock", rendered ahead but for the hash and
// the call: fast enough to keep a gateway busy. Null when the request asks for anything more.
bool mock_fast_answer(std::string_view path, std::string_view body, std::uint64_t call,
                      std::string& response);

std::uint64_t mock_hash(std::string_view body);  // FNV-1a

}  // namespace fixpoint::test
