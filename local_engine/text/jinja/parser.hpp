// From tokens to a tree.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "local_engine/text/jinja/ast.hpp"
#include "local_engine/text/jinja/lexer.hpp"

namespace fixpoint::engine::jinja {

// Throws TemplateError with the line: unsupported for what the language has and this does not,
// bad_model_file for a syntax error.
Body parse_template(std::string_view source);

// A cursor over the tokens that both halves of the parser share.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const {
    const std::size_t at = at_ + ahead;
    return at < tokens_.size() ? tokens_[at] : tokens_.back();
  }
  const Token& next() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_name(std::string_view name) const { return at(TokenKind::name) && peek().text == name; }
  bool at_symbol(std::string_view symbol) const {
    return at(TokenKind::symbol) && peek().text == symbol;
  }
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  void expect_symbol(std::string_view symbol);
  std::string expect_name();
  const Token& expect(TokenKind kind, std::string_view what);

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unsupported(const std::string& what) const;

  // Counts nesting while it lives; the stack of the parser is bounded by it.
  class Nesting {
   public:
    explicit Nesting(TokenStream& stream);
    ~Nesting() { --stream_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExpressionPtr expression();
  // `a, b` is a tuple. Without `conditional`, `a if b else c` is not taken in (as after `for x
  // in`).
  ExpressionPtr tuple_or_expression(bool with_conditional);
  // name(arguments) after a `|`.
  FilterUse filter(ExpressionPtr operand);

 private:
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr postfix(ExpressionPtr operand);
  ExpressionPtr filters_and_tests(ExpressionPtr operand);
  ExpressionPtr test(ExpressionPtr operand);
  ExpressionPtr access(ExpressionPtr object);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr call(ExpressionPtr callee);
  ExpressionPtr list_literal();
  ExpressionPtr dict_literal();
  ExpressionPtr parenthesized();
  ArgumentList arguments();
  bool at_tuple_end() const;
  // Computes the depth and checks it.
  template <class Node>
  ExpressionPtr make(int line, Node node);

  TokenStream& stream_;
};

}  // namespace fixpoint::engine::jinja
