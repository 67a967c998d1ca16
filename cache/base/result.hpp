// Errors as values, for whatever a peer, a disk or a clock can cause. Exceptions are for start-up
// and bugs.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fixpoint {

enum class ErrorCode {
  invalid,  // the input is malformed or beyond a limit
  not_found,
  io,           // disk or operating system
  corrupt,      // stored data fails its checksum or cannot be read back
  unreachable,  // a peer cannot be connected to, resolved or trusted
  timeout,
  protocol,    // a peer broke HTTP, SSE or JSON
  closed,      // a peer or client went away
  overloaded,  // a bounded queue or pool is full
};

struct Error {
  ErrorCode code;
  std::string message;  // one sentence that names the field and the limit
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message)});
}

}  // namespace fixpoint
