// Statements.
#include "local_engine/text/jinja/parser.hpp"

#include <algorithm>

#include "local_engine/text/jinja/error.hpp"

namespace fixpoint::engine::jinja {

bool TokenStream::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

bool TokenStream::skip_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

void TokenStream::expect_symbol(std::string_view symbol) {
  if (skip_symbol(symbol)) return;
  const std::string found = peek().text.empty() ? "the end of the tag" : "'" + peek().text + "'";
  fail("expected '" + std::string(symbol) + "' and found " + found);
}

std::string TokenStream::expect_name() {
  return expect(TokenKind::name, "a name").text;
}

const Token& TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!at(kind)) {
    const std::string found = peek().text.empty() ? "something else" : "'" + peek().text + "'";
    fail("expected " + std::string(what) + " and found " + found);
  }
  return next();
}

void TokenStream::fail(const std::string& message) const {
  throw TemplateError(ErrorCode::bad_model_file, message, peek().line);
}

void TokenStream::fail_unsupported(const std::string& what) const {
  throw TemplateError(ErrorCode::unsupported, what + " is not implemented", peek().line);
}

TokenStream::Nesting::Nesting(TokenStream& stream) : stream_(stream) {
  if (++stream_.depth_ > kMaxSyntaxDepth) {
    --stream_.depth_;  // the destructor does not run
    stream_.fail("syntax nested deeper than " + std::to_string(kMaxSyntaxDepth));
  }
}

namespace {

class StatementParser {
 public:
  explicit StatementParser(TokenStream& stream) : stream_(stream), expressions_(stream) {}

  Body whole() {
    Body body = until({});
    if (!stream_.at(TokenKind::end)) stream_.fail("unexpected end of a block");
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Statements up to a block tag that begins with one of `ends`; that tag's name is the next token.
  Body until(Ends ends) {
    const TokenStream::Nesting nesting(stream_);
    Body body;
    for (;;) {
      const int line = stream_.peek().line;
      switch (stream_.peek().kind) {
        case TokenKind::text:
          body.push_back({line, Text{stream_.next().text}});
          break;
        case TokenKind::variable_begin: {
          stream_.next();
          ExpressionPtr value = expressions_.tuple_or_expression(true);
          stream_.expect(TokenKind::variable_end, "'}}'");
          body.push_back({line, Print{std::move(value)}});
          break;
        }
        case TokenKind::block_begin: {
          stream_.next();
          const bool ended = std::any_of(
              ends.begin(), ends.end(), [&](std::string_view end) { return stream_.at_name(end); });
          if (ended) return body;
          body.push_back(statement(line));
          break;
        }
        default:
          if (ends.size() > 0) {
            stream_.fail("template ends inside a block that '" + std::string(*(ends.end() - 1)) +
                         "' would end");
          }
          return body;
      }
    }
  }

  void close_block() { stream_.expect(TokenKind::block_end, "'%}'"); }

  // Body of a block with one possible end.
  Body block(std::string_view end) {
    close_block();
    Body body = until({end});
    stream_.next();
    close_block();
    return body;
  }

  Statement statement(int line) {
    const std::string name = stream_.expect_name();
    if (name == "if") return {line, parse_if()};
    if (name == "for") return {line, parse_for()};
    if (name == "set") return parse_set(line);
    if (name == "macro") return {line, parse_macro()};
    if (name == "filter") {
      FilterBlock node;
      do {
        node.filters.push_back(expressions_.filter(nullptr));
      } while (stream_.skip_symbol("|"));
      node.body = separate_block("endfilter");
      return {line, std::move(node)};
    }
    if (name == "generation") return {line, Scoped{{}, block("endgeneration")}};
    if (name == "with") return {line, parse_with()};
    if (name == "break" || name == "continue") {
      if (loops_ == 0) stream_.fail("'" + name + "' outside a loop");
      close_block();
      if (name == "break") return {line, Break{}};
      return {line, Continue{}};
    }
    if (name.starts_with("end") || name == "else" || name == "elif") {
      stream_.fail("unexpected '" + name + "'");
    }
    stream_.fail_unsupported("statement '" + name + "'");
  }

  If parse_if() {
    If node;
    for (;;) {
      ExpressionPtr condition = expressions_.tuple_or_expression(false);
      close_block();
      node.branches.emplace_back(std::move(condition), until({"elif", "else", "endif"}));
      if (!stream_.skip_name("elif")) break;
    }
    if (stream_.skip_name("else")) {
      close_block();
      node.otherwise = until({"endif"});
    }
    stream_.next();
    close_block();
    return node;
  }

  For parse_for() {
    For node;
    node.target = target(false);
    if (!stream_.skip_name("in")) stream_.fail("expected 'in'");
    node.iterable = expressions_.tuple_or_expression(false);
    if (stream_.skip_name("if")) node.condition = expressions_.expression();
    if (stream_.at_name("recursive")) stream_.fail_unsupported("a recursive loop");
    close_block();
    ++loops_;
    node.body = until({"else", "endfor"});
    --loops_;
    if (stream_.skip_name("else")) {
      close_block();
      node.otherwise = until({"endfor"});
    }
    stream_.next();
    close_block();
    return node;
  }

  Statement parse_set(int line) {
    Target to = target(true);
    if (stream_.skip_symbol("=")) {
      ExpressionPtr value = expressions_.tuple_or_expression(true);
      close_block();
      return {line, Set{std::move(to), std::move(value)}};
    }
    SetBlock node{std::move(to), {}, {}};
    while (stream_.skip_symbol("|")) node.filters.push_back(expressions_.filter(nullptr));
    node.body = separate_block("endset");
    return {line, std::move(node)};
  }

  Scoped parse_with() {
    Scoped node;
    while (!stream_.at(TokenKind::block_end)) {
      if (!node.variables.empty()) stream_.expect_symbol(",");
      Target to = target(false);
      stream_.expect_symbol("=");
      node.variables.emplace_back(std::move(to), expressions_.expression());
    }
    node.body = block("endwith");
    return node;
  }

  MacroDefinition parse_macro() {
    MacroDefinition node;
    node.name = stream_.expect_name();
    stream_.expect_symbol("(");
    while (!stream_.skip_symbol(")")) {
      if (!node.parameters.empty()) stream_.expect_symbol(",");
      MacroDefinition::Parameter parameter{assignable_name(), nullptr};
      if (stream_.skip_symbol("=")) {
        parameter.otherwise = expressions_.expression();
      } else if (!node.parameters.empty() && node.parameters.back().otherwise) {
        stream_.fail("a parameter without default follows one with default");
      }
      node.parameters.push_back(std::move(parameter));
    }
    node.body = separate_block("endmacro");
    return node;
  }

  // A body that break and continue cannot leave.
  Body separate_block(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = block(end);
    loops_ = loops;
    return body;
  }

  std::string assignable_name() {
    std::string name = stream_.expect_name();
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (name == constant) stream_.fail("cannot assign to '" + name + "'");
    }
    return name;
  }

  Target target(bool with_attribute) {
    const TokenStream::Nesting nesting(stream_);
    std::vector<Target> parts;
    bool is_tuple = false;
    for (;;) {
      if (is_tuple && !stream_.at(TokenKind::name) && !stream_.at_symbol("(")) break;
      if (is_tuple && stream_.at_name("in")) break;
      if (stream_.skip_symbol("(")) {
        parts.push_back(target(with_attribute));
        stream_.expect_symbol(")");
      } else {
        Target part{assignable_name(), {}, {}};
        if (with_attribute && stream_.skip_symbol(".")) part.attribute = stream_.expect_name();
        parts.push_back(std::move(part));
      }
      if (!stream_.skip_symbol(",")) break;
      is_tuple = true;
    }
    if (!is_tuple) return std::move(parts.front());
    return Target{{}, {}, std::move(parts)};
  }

  TokenStream& stream_;
  ExpressionParser expressions_;
  int loops_ = 0;  // loops around the current place, inside the same macro
};

}  // namespace

Body parse_template(std::string_view source) {
  if (source.size() > kMaxSource) {
    throw TemplateError(ErrorCode::bad_model_file,
                        "chat template is longer than " + std::to_string(kMaxSource) + " bytes");
  }
  TokenStream stream(tokenize(source));
  return StatementParser(stream).whole();
}

}  // namespace fixpoint::engine::jinja
