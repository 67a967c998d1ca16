// Expressions.
#include "local_engine/text/jinja/interpreter.hpp"
#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"

namespace fixpoint::engine::jinja {

Value Interpreter::evaluate(const Expression& expression) {
  const Depth depth(*this);
  try {
    runtime_.step();
    return std::visit([&](const auto& node) { return get(node); }, expression.node);
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = expression.line;
    throw;
  }
}

Value Interpreter::evaluate_or_none(const ExpressionPtr& expression) {
  return expression ? evaluate(*expression) : Value();
}

Arguments Interpreter::evaluate_arguments(const ArgumentList& list) {
  Arguments arguments;
  for (const ExpressionPtr& value : list.positional)
    arguments.positional.push_back(evaluate(*value));
  for (const auto& [name, value] : list.named) arguments.named.emplace_back(name, evaluate(*value));
  return arguments;
}

Value Interpreter::look_up(std::string_view name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    runtime_.charge_items(scope->variables.size() / 64);
    if (const Value* found = scope->find(name)) return *found;
  }
  if (const Function function = find_function(name)) {
    return Value(std::make_shared<const Callable>(Callable{function}));
  }
  return Value::undefined("'" + std::string(name) + "' is undefined");
}

Value Interpreter::get(const Literal& node) {
  return node.value;
}

Value Interpreter::get(const Name& node) {
  return look_up(node.name);
}

Value Interpreter::get(const ListLiteral& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExpressionPtr& item : node.items) items.push_back(evaluate(*item));
  return make_list(std::move(items), node.kind);
}

Value Interpreter::get(const DictLiteral& node) {
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [key_node, value_node] : node.items) {
    Value key = evaluate(*key_node);
    items.emplace_back(std::move(key), evaluate(*value_node));
  }
  return make_dict(std::move(items));
}

Value Interpreter::get(const AttributeAccess& node) {
  return get_attribute(evaluate(*node.object), node.name);
}

Value Interpreter::get(const ItemAccess& node) {
  const Value object = evaluate(*node.object);
  return get_item(runtime_, object, evaluate(*node.index));
}

Value Interpreter::get(const SliceAccess& node) {
  const Value object = evaluate(*node.object);
  const Value start = evaluate_or_none(node.start);
  const Value stop = evaluate_or_none(node.stop);
  return get_slice(runtime_, object, start, stop, evaluate_or_none(node.step));
}

Value Interpreter::get(const Call& node) {
  const Value callee = evaluate(*node.callee);
  require_defined(callee);
  if (!callee.is(Kind::callable)) {
    fail_render(std::string("'") + callee.type_name() + "' object is not callable");
  }
  const Arguments arguments = evaluate_arguments(node.arguments);
  const auto& target = callee.callable().target;
  if (const auto* function = std::get_if<Function>(&target))
    return (*function)(runtime_, arguments);
  if (const auto* macro = std::get_if<Macro>(&target)) return call_macro(*macro, arguments);
  const auto& method = std::get<Method>(target);
  return call_method(runtime_, method.self, method.name, arguments);
}

Value Interpreter::get(const FilterUse& node) {
  const Value operand = evaluate(*node.operand);
  return node.filter(runtime_, operand, evaluate_arguments(node.arguments));
}

Value Interpreter::get(const TestUse& node) {
  const Value operand = evaluate(*node.operand);
  return Value(node.test(runtime_, operand, evaluate_arguments(node.arguments)));
}

Value Interpreter::get(const Unary& node) {
  const Value operand = evaluate(*node.operand);
  switch (node.sign) {
    case Sign::negate:
      return negate(operand);
    case Sign::plus:
      return plus(operand);
    case Sign::logical_not:
      break;
  }
  return Value(!truth(operand));
}

Value Interpreter::get(const Arithmetic& node) {
  const Value left = evaluate(*node.left);
  return apply_arithmetic(runtime_, node.op, left, evaluate(*node.right));
}

Value Interpreter::get(const Comparison& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(*operand);
    if (!apply_comparison(runtime_, op, left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::get(const Logical& node) {
  Value left = evaluate(*node.left);
  return truth(left) == node.is_and ? evaluate(*node.right) : left;
}

Value Interpreter::get(const Concatenation& node) {
  std::string out;
  for (const ExpressionPtr& part : node.parts) append_str(runtime_, out, evaluate(*part));
  return runtime_.make_string(std::move(out));
}

Value Interpreter::get(const Conditional& node) {
  if (truth(evaluate(*node.condition))) return evaluate(*node.then);
  if (node.otherwise) return evaluate(*node.otherwise);
  return Value::undefined("an inline 'if' was false and has no 'else'");
}

}  // namespace fixpoint::engine::jinja
