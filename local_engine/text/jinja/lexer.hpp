// From template source to tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "local_engine/text/jinja/value.hpp"

namespace fixpoint::engine::jinja {

enum class TokenKind : std::uint8_t {
  text,            // template text, white-space control applied
  variable_begin,  // {{
  variable_end,
  block_begin,  // {%
  block_end,
  name,
  string,
  integer,
  real,
  symbol,  // operators and brackets, by spelling
  end,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // text, name, decoded string, symbol
  Value number{};    // integer, real
};

// Comments and raw blocks are resolved here. trim_blocks and lstrip_blocks are on, as in the
// templates' home: the first line end after a block tag goes, and so does white space between the
// start of a line and a block tag. Throws TemplateError (bad_model_file with the line). The last
// token is `end`.
std::vector<Token> tokenize(std::string_view source);

// Tokens of one expression or statement; ends before its closing delimiter.
class TagScanner {
 public:
  // `at` and `line` move on over what is read.
  TagScanner(std::string_view source, std::size_t& at, int& line, std::vector<Token>& out)
      : source_(source), at_(at), line_(line), out_(out) {}

  enum class Close { plain, minus, plus };
  // Reads to and over `close` ("}}" or "%}"), and says with which sign it was written.
  Close scan(std::string_view close);

 private:
  bool skip_space();
  void scan_name();
  void scan_number();
  void scan_string();
  void scan_symbol();
  void append_escape(std::string& out);
  [[noreturn]] void fail(const std::string& message) const;

  std::string_view source_;
  std::size_t& at_;
  int& line_;
  std::vector<Token>& out_;
  std::string brackets_;  // open ones: a closing delimiter inside them is not one
};

}  // namespace fixpoint::engine::jinja
