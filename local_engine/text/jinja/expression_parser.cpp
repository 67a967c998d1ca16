// Expressions, in the order of their binding strength.
#include <algorithm>

#include "local_engine/text/jinja/error.hpp"
#include "local_engine/text/jinja/parser.hpp"

namespace fixpoint::engine::jinja {

template <class Node>
ExpressionPtr ExpressionParser::make(int line, Node node) {
  ExpressionNode wrapped(std::move(node));
  const int depth = 1 + depth_below(wrapped);
  if (depth > kMaxSyntaxDepth) {
    stream_.fail("expression nested deeper than " + std::to_string(kMaxSyntaxDepth));
  }
  return std::make_unique<Expression>(Expression{line, depth, std::move(wrapped)});
}

ExpressionPtr ExpressionParser::expression() {
  const TokenStream::Nesting nesting(stream_);
  ExpressionPtr value = logical_or();
  while (stream_.at_name("if")) {
    const int line = stream_.next().line;
    ExpressionPtr condition = logical_or();
    ExpressionPtr otherwise;
    if (stream_.skip_name("else")) otherwise = expression();
    value = make(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

bool ExpressionParser::at_tuple_end() const {
  return stream_.at(TokenKind::variable_end) || stream_.at(TokenKind::block_end) ||
         stream_.at_symbol(")") || stream_.at_name("recursive");
}

ExpressionPtr ExpressionParser::tuple_or_expression(bool with_conditional) {
  const int line = stream_.peek().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (is_tuple && at_tuple_end()) break;
    items.push_back(with_conditional ? expression() : logical_or());
    if (!stream_.skip_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) return std::move(items.front());
  return make(line, ListLiteral{std::move(items), ListKind::tuple});
}

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (stream_.at_name("or")) {
    const int line = stream_.next().line;
    ExpressionPtr right = logical_and();
    left = make(line, Logical{false, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (stream_.at_name("and")) {
    const int line = stream_.next().line;
    ExpressionPtr right = logical_not();
    left = make(line, Logical{true, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!stream_.at_name("not")) return comparison();
  const TokenStream::Nesting nesting(stream_);
  const int line = stream_.next().line;
  return make(line, Unary{Sign::logical_not, logical_not()});
}

ExpressionPtr ExpressionParser::comparison() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"==", Operator::equal},      {"!=", Operator::not_equal}, {"<", Operator::less},
      {"<=", Operator::less_equal}, {">", Operator::greater},    {">=", Operator::greater_equal}};
  const int line = stream_.peek().line;
  Comparison node;
  node.first = sum();
  for (;;) {
    const auto* found =
        std::find_if(std::begin(kOperators), std::end(kOperators),
                     [&](const auto& entry) { return stream_.at_symbol(entry.first); });
    Operator op;
    if (found != std::end(kOperators)) {
      stream_.next();
      op = found->second;
    } else if (stream_.skip_name("in")) {
      op = Operator::in;
    } else if (stream_.at_name("not") && stream_.peek(1).kind == TokenKind::name &&
               stream_.peek(1).text == "in") {
      stream_.next();
      stream_.next();
      op = Operator::not_in;
    } else {
      break;
    }
    node.rest.emplace_back(op, sum());
  }
  if (node.rest.empty()) return std::move(node.first);
  return make(line, std::move(node));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (stream_.at_symbol("+") || stream_.at_symbol("-")) {
    const Token& token = stream_.next();
    const Operator op = token.text == "+" ? Operator::add : Operator::subtract;
    ExpressionPtr right = concatenation();
    left = make(token.line, Arithmetic{op, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = stream_.peek().line;
  Concatenation node;
  node.parts.push_back(product());
  while (stream_.skip_symbol("~")) node.parts.push_back(product());
  if (node.parts.size() == 1) return std::move(node.parts.front());
  return make(line, std::move(node));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  for (;;) {
    const Operator op = stream_.at_symbol("*")    ? Operator::multiply
                        : stream_.at_symbol("/")  ? Operator::divide
                        : stream_.at_symbol("//") ? Operator::floor_divide
                        : stream_.at_symbol("%")  ? Operator::modulo
                                                  : Operator::add;
    if (op == Operator::add) return left;
    const auto* literal = std::get_if<Literal>(&left->node);
    if (op == Operator::modulo && literal != nullptr && literal->value.is(Kind::string)) {
      stream_.fail_unsupported("formatting a string with %");
    }
    const int line = stream_.next().line;
    ExpressionPtr right = power();
    left = make(line, Arithmetic{op, std::move(left), std::move(right)});
  }
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (stream_.at_symbol("**")) {
    const int line = stream_.next().line;
    ExpressionPtr right = unary(true);
    left = make(line, Arithmetic{Operator::power, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr value;
  if (stream_.at_symbol("-") || stream_.at_symbol("+")) {
    const TokenStream::Nesting nesting(stream_);
    const Token& token = stream_.next();
    const Sign sign = token.text == "-" ? Sign::negate : Sign::plus;
    value = make(token.line, Unary{sign, unary(false)});
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = stream_.next();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::name:
      if (token.text == "true" || token.text == "True") return make(line, Literal{Value(true)});
      if (token.text == "false" || token.text == "False") return make(line, Literal{Value(false)});
      if (token.text == "none" || token.text == "None") return make(line, Literal{Value()});
      for (const std::string_view hidden : {"varargs", "kwargs", "caller"}) {
        if (token.text == hidden) stream_.fail_unsupported("the variable '" + token.text + "'");
      }
      return make(line, Name{token.text});
    case TokenKind::integer:
    case TokenKind::real:
      return make(line, Literal{token.number});
    case TokenKind::string: {
      std::string text = token.text;
      while (stream_.at(TokenKind::string)) text += stream_.next().text;
      return make(line, Literal{Value(std::move(text))});
    }
    case TokenKind::symbol:
      if (token.text == "(") return parenthesized();
      if (token.text == "[") return list_literal();
      if (token.text == "{") return dict_literal();
      break;
    default:
      break;
  }
  stream_.fail(token.text.empty() ? "expression ends too early"
                                  : "unexpected '" + token.text + "'");
}

ExpressionPtr ExpressionParser::parenthesized() {
  const int line = stream_.peek().line;
  if (stream_.skip_symbol(")")) return make(line, ListLiteral{{}, ListKind::tuple});
  ExpressionPtr value = tuple_or_expression(true);
  stream_.expect_symbol(")");
  return value;
}

ExpressionPtr ExpressionParser::list_literal() {
  const int line = stream_.peek().line;
  ListLiteral node{{}, ListKind::list};
  while (!stream_.skip_symbol("]")) {
    if (!node.items.empty()) {
      stream_.expect_symbol(",");
      if (stream_.skip_symbol("]")) break;
    }
    node.items.push_back(expression());
  }
  return make(line, std::move(node));
}

ExpressionPtr ExpressionParser::dict_literal() {
  const int line = stream_.peek().line;
  DictLiteral node;
  while (!stream_.skip_symbol("}")) {
    if (!node.items.empty()) {
      stream_.expect_symbol(",");
      if (stream_.skip_symbol("}")) break;
    }
    ExpressionPtr key = expression();
    stream_.expect_symbol(":");
    node.items.emplace_back(std::move(key), expression());
  }
  return make(line, std::move(node));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr operand) {
  for (;;) {
    if (stream_.at_symbol(".") || stream_.at_symbol("[")) {
      operand = access(std::move(operand));
    } else if (stream_.at_symbol("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr operand) {
  for (;;) {
    if (stream_.at_symbol("|")) {
      const int line = stream_.next().line;
      operand = make(line, filter(std::move(operand)));
    } else if (stream_.at_name("is")) {
      operand = test(std::move(operand));
    } else if (stream_.at_symbol("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

FilterUse ExpressionParser::filter(ExpressionPtr operand) {
  std::string name = stream_.expect_name();
  while (stream_.skip_symbol(".")) name.append(1, '.').append(stream_.expect_name());
  const Filter found = find_filter(name);
  if (found == nullptr) stream_.fail_unsupported("filter '" + name + "'");
  FilterUse use{std::move(operand), found, {}};
  if (stream_.at_symbol("(")) use.arguments = arguments();
  return use;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr operand) {
  const int line = stream_.next().line;
  const bool negated = stream_.skip_name("not");
  std::string name = stream_.expect_name();
  while (stream_.skip_symbol(".")) name.append(1, '.').append(stream_.expect_name());
  const Test found = find_test(name);
  if (found == nullptr) stream_.fail_unsupported("test '" + name + "'");
  TestUse use{std::move(operand), found, {}};
  const Token& token = stream_.peek();
  const bool begins_operand = token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                              token.kind == TokenKind::real ||
                              (token.kind == TokenKind::name && token.text != "else" &&
                               token.text != "or" && token.text != "and") ||
                              stream_.at_symbol("[") || stream_.at_symbol("{");
  if (stream_.at_symbol("(")) {
    use.arguments = arguments();
  } else if (begins_operand) {
    if (stream_.at_name("is")) stream_.fail("tests cannot be chained with 'is'");
    use.arguments.positional.push_back(postfix(primary()));
  }
  ExpressionPtr node = make(line, std::move(use));
  return negated ? make(line, Unary{Sign::logical_not, std::move(node)}) : std::move(node);
}

ExpressionPtr ExpressionParser::access(ExpressionPtr object) {
  const int line = stream_.peek().line;
  if (stream_.skip_symbol("[")) return subscript(std::move(object));
  stream_.expect_symbol(".");
  const Token& token = stream_.next();
  if (token.kind == TokenKind::integer) {
    ExpressionPtr index = make(line, Literal{token.number});
    return make(line, ItemAccess{std::move(object), std::move(index)});
  }
  if (token.kind != TokenKind::name) stream_.fail("a name must follow '.'");
  return make(line, AttributeAccess{std::move(object), token.text});
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const int line = stream_.peek().line;
  ExpressionPtr start;
  if (!stream_.at_symbol(":")) start = expression();
  if (stream_.skip_symbol("]")) {
    return make(line, ItemAccess{std::move(object), std::move(start)});
  }
  if (stream_.at_symbol(",")) stream_.fail_unsupported("a subscript of several values");
  stream_.expect_symbol(":");
  SliceAccess node{std::move(object), std::move(start), nullptr, nullptr};
  if (!stream_.at_symbol(":") && !stream_.at_symbol("]")) node.stop = expression();
  if (stream_.skip_symbol(":") && !stream_.at_symbol("]")) node.step = expression();
  stream_.expect_symbol("]");
  return make(line, std::move(node));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
  const int line = stream_.peek().line;
  // A method that no type has can only be one that is not implemented: say so before anything runs.
  const auto* method = std::get_if<AttributeAccess>(&callee->node);
  if (method != nullptr && !is_known_method(method->name)) {
    stream_.fail_unsupported("method '" + method->name + "'");
  }
  const auto* name = std::get_if<Name>(&callee->node);
  if (name != nullptr) {
    for (const std::string_view global : {"cycler", "joiner", "lipsum"}) {
      if (name->name == global) stream_.fail_unsupported("function '" + name->name + "'");
    }
  }
  ArgumentList list = arguments();
  return make(line, Call{std::move(callee), std::move(list)});
}

ArgumentList ExpressionParser::arguments() {
  stream_.expect_symbol("(");
  ArgumentList list;
  bool first = true;
  while (!stream_.skip_symbol(")")) {
    if (!first) {
      stream_.expect_symbol(",");
      if (stream_.skip_symbol(")")) break;
    }
    first = false;
    if (stream_.at_symbol("*") || stream_.at_symbol("**")) {
      stream_.fail_unsupported("an argument with * or **");
    }
    if (stream_.at(TokenKind::name) && stream_.peek(1).kind == TokenKind::symbol &&
        stream_.peek(1).text == "=") {
      std::string name = stream_.next().text;
      stream_.next();
      list.named.emplace_back(std::move(name), expression());
    } else {
      if (!list.named.empty()) stream_.fail("a positional argument follows a named one");
      list.positional.push_back(expression());
    }
  }
  return list;
}

}  // namespace fixpoint::engine::jinja
