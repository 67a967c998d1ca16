// Errors of the engine as values. Anything that a file or a request can cause is an Error;
// exceptions are for bugs only.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fixpoint::engine {

enum class ErrorCode {
  bad_request,       // the request asks for something that the model or engine does not do
  context_exceeded,  // prompt (+ max_tokens) does not fit the context
  bad_model_file,    // cut, corrupt or absurd model file
  unsupported,       // a well-formed file or template that this engine does not implement
  io,                // the operating system refused
  overloaded,        // queue or KV memory is full
  cancelled,
};

struct Error {
  ErrorCode code;
  std::string message;     // one sentence that names the field and the limit
  std::string field = {};  // the request's field, for bad_request; empty: the prompt or no field
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::make_unexpected(Error{code, std::move(message), {}});
}

}  // namespace fixpoint::engine
