// How template code reports failure inside this folder.
#pragma once

#include <stdexcept>
#include <string>

#include "local_engine/result.hpp"

namespace fixpoint::engine::jinja {

// Thrown from deep inside parsing and evaluation and turned into an Error by ChatTemplate: it never
// leaves the library. `line` is 0 until somebody who knows it fills it in.
class TemplateError : public std::runtime_error {
 public:
  TemplateError(ErrorCode error_code, const std::string& message, int at_line = 0)
      : std::runtime_error(message), code(error_code), line(at_line) {}
  ErrorCode code;
  int line;
};

// raise_exception(): the words are the template's own and are passed on as they are.
class RaisedByTemplate : public TemplateError {
 public:
  explicit RaisedByTemplate(const std::string& message)
      : TemplateError(ErrorCode::bad_request, message) {}
};

// The operation is not defined for these values.
[[noreturn]] inline void fail_render(const std::string& message) {
  throw TemplateError(ErrorCode::bad_request, message);
}

}  // namespace fixpoint::engine::jinja
