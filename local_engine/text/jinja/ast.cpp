#include "local_engine/text/jinja/ast.hpp"

#include <algorithm>

namespace fixpoint::engine::jinja {

namespace {

int depth_of(const ExpressionPtr& expression) {
  return expression ? expression->depth : 0;
}

int depth_of(const std::vector<ExpressionPtr>& list) {
  int depth = 0;
  for (const ExpressionPtr& item : list) depth = std::max(depth, depth_of(item));
  return depth;
}

int depth_of(const ArgumentList& arguments) {
  int depth = depth_of(arguments.positional);
  for (const auto& argument : arguments.named) depth = std::max(depth, depth_of(argument.second));
  return depth;
}

int below(const Literal&) {
  return 0;
}
int below(const Name&) {
  return 0;
}
int below(const ListLiteral& node) {
  return depth_of(node.items);
}
int below(const DictLiteral& node) {
  int depth = 0;
  for (const auto& [key, value] : node.items) {
    depth = std::max({depth, depth_of(key), depth_of(value)});
  }
  return depth;
}
int below(const AttributeAccess& node) {
  return depth_of(node.object);
}
int below(const ItemAccess& node) {
  return std::max(depth_of(node.object), depth_of(node.index));
}
int below(const SliceAccess& node) {
  return std::max(
      {depth_of(node.object), depth_of(node.start), depth_of(node.stop), depth_of(node.step)});
}
int below(const Call& node) {
  return std::max(depth_of(node.callee), depth_of(node.arguments));
}
int below(const FilterUse& node) {
  return std::max(depth_of(node.operand), depth_of(node.arguments));
}
int below(const TestUse& node) {
  return std::max(depth_of(node.operand), depth_of(node.arguments));
}
int below(const Unary& node) {
  return depth_of(node.operand);
}
int below(const Arithmetic& node) {
  return std::max(depth_of(node.left), depth_of(node.right));
}
int below(const Comparison& node) {
  int depth = depth_of(node.first);
  for (const auto& operand : node.rest) depth = std::max(depth, depth_of(operand.second));
  return depth;
}
int below(const Logical& node) {
  return std::max(depth_of(node.left), depth_of(node.right));
}
int below(const Concatenation& node) {
  return depth_of(node.parts);
}
int below(const Conditional& node) {
  return std::max({depth_of(node.condition), depth_of(node.then), depth_of(node.otherwise)});
}

}  // namespace

int depth_below(const ExpressionNode& node) {
  return std::visit([](const auto& kind) { return below(kind); }, node);
}

}  // namespace fixpoint::engine::jinja
