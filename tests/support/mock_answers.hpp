// What the mock upstream answers: a pure function of the request, the number of the call and how
// often this request came before. The behaviours are listed in mock_upstream.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/mock_request.hpp"

namespace fixpoint::test {

struct MockAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  bool streamed = false;                 // chunked, one chunk per piece; otherwise Content-Length
  std::vector<std::string> pieces;       // of the body
  std::chrono::milliseconds delay{0};    // before the head
  std::chrono::milliseconds between{0};  // between pieces
  std::chrono::milliseconds hold{0};     // after the last piece, before the end of the body
  std::optional<std::size_t> cut;        // the body ends after so many bytes, and
  bool whole = false;                    //   with a proper end of the body (else: none)
  bool reset_cut = false;                //   or the connection is reset
  bool reset = false;                    // the connection is reset instead of an answer
  bool split = false;                    // one byte of the body per write
};

// The "model" member, found without parsing the rest; empty when there is none.
std::string mock_model(std::string_view body);

// Whether this path asks for a generation, an embedding or a count of tokens.
bool mock_generates(std::string_view path);

// `call` is the number of the call, from 1; both it and a hash of the body stand in the content, so
// that a test can tell a new generation from a stored one. `attempt` counts equal requests, from 1.
MockAnswer mock_answer(const MockRequest& request, std::uint64_t call, std::uint64_t attempt);

// The whole response to a plain request for the model "mock", rendered ahead but for the hash and
// the call: fast enough to keep a gateway busy. False when the request asks for anything more.
bool mock_fast_answer(const MockRequest& request, std::uint64_t call, std::string& response);

std::uint64_t mock_hash(std::string_view body);  // FNV-1a

}  // namespace fixpoint::test
