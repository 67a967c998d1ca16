// What the parser makes of a template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
  ListKind kind;  // list or tuple
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};
struct AttributeAccess {
  ExpressionPtr object;
  std::string name;
};
struct ItemAccess {
  ExpressionPtr object, index;
};
struct SliceAccess {
  ExpressionPtr object, start, stop, step;  // null for a part that was left out
};
struct Call {
  ExpressionPtr callee;
  ArgumentList arguments;
};
struct FilterUse {
  ExpressionPtr operand;  // null in {% set x | filter %}: the block's text
  Filter filter;
  ArgumentList arguments;
};
struct TestUse {
  ExpressionPtr operand;
  Test test;
  ArgumentList arguments;
};
enum class Sign : std::uint8_t { negate, plus, logical_not };
struct Unary {
  Sign sign;
  ExpressionPtr operand;
};
struct Arithmetic {
  Operator op;
  ExpressionPtr left, right;
};
struct Comparison {  // a < b < c: each operand is evaluated once
  ExpressionPtr first;
  std::vector<std::pair<Operator, ExpressionPtr>> rest;
};
struct Logical {
  bool is_and;
  ExpressionPtr left, right;
};
struct Concatenation {  // a ~ b ~ c
  std::vector<ExpressionPtr> parts;
};
struct Conditional {                         // then if condition else otherwise
  ExpressionPtr condition, then, otherwise;  // `otherwise` may be null
};

using ExpressionNode = std::variant<Literal, Name, ListLiteral, DictLiteral, AttributeAccess,
                                    ItemAccess, SliceAccess, Call, FilterUse, TestUse, Unary,
                                    Arithmetic, Comparison, Logical, Concatenation, Conditional>;
// The greatest depth among the expressions in `node`, 0 if there are none.
int depth_below(const ExpressionNode& node);

struct Expression {
  int line;
  int depth;  // of the tree from here down, for kMaxSyntaxDepth
  ExpressionNode node;
};

struct Statement;
using Body = std::vector<Statement>;

// x; x.y (of a namespace); a, (b, c)
struct Target {
  std::string name;
  std::string attribute;      // empty: the name itself
  std::vector<Target> tuple;  // not empty: unpacking, and the other fields unused
};

struct Text {
  std::string text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable;
  ExpressionPtr condition;  // may be null
  Body body, otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  std::vector<FilterUse> filters;
  Body body;
};
struct MacroDefinition {
  struct Parameter {
    std::string name;
    ExpressionPtr otherwise;  // null: none given
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
};
struct FilterBlock {  // {% filter name %}
  std::vector<FilterUse> filters;
  Body body;
};
struct Scoped {  // {% with a = 1, b = 2 %} and, without variables, {% generation %}
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line;
  std::variant<Text, Print, If, For, Set, SetBlock, MacroDefinition, FilterBlock, Scoped, Break,
               Continue>
      node;
};

}  // namespace fixpoint::engine::jinja
