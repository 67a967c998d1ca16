#include "local_engine/text/jinja/interpreter.hpp"

#include <algorithm>
#include <utility>

#include "local_engine/text/jinja/operations.hpp"
#include "local_engine/text/jinja/print.hpp"

namespace fixpoint::engine::jinja {

const Value* Scope::find(std::string_view name) const {
  for (const auto& [key, value] : variables) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

Interpreter::Block::Block(Interpreter& owner, Scope* parent)
    : owner_(owner), outer_(owner.scope_), scope_(std::make_unique<Scope>()) {
  scope_->parent = parent;
  owner_.scope_ = scope_.get();
}

Interpreter::Block::~Block() {
  owner_.scope_ = outer_;
  if (scope_->captured) owner_.kept_.push_back(std::move(scope_));
}

std::string Interpreter::render(const Body& body,
                                std::vector<std::pair<std::string, Value>> variables) {
  std::string out;
  out_ = &out;
  const Block block(*this, nullptr);
  scope_->variables = std::move(variables);
  execute(body);
  return out;
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Depth depth(*this);
  try {
    runtime_.step();
    return std::visit([&](const auto& node) { return run(node); }, statement.node);
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = statement.line;
    throw;
  }
}

Interpreter::Flow Interpreter::run(const Text& node) {
  runtime_.charge_text(node.text.size());
  runtime_.check_text_size(out_->size() + node.text.size());
  *out_ += node.text;
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Print& node) {
  append_str(runtime_, *out_, evaluate(*node.value));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    if (truth(evaluate(*condition))) return execute(body);
  }
  return execute(node.otherwise);
}

std::vector<Value> Interpreter::loop_items(const For& node) {
  std::vector<Value> items = iterate(runtime_, evaluate(*node.iterable));
  if (!node.condition) return items;
  std::vector<Value> chosen;
  for (const Value& item : items) {
    const Block block(*this, scope_);
    assign(node.target, item);
    if (truth(evaluate(*node.condition))) chosen.push_back(item);
  }
  return chosen;
}

Interpreter::Flow Interpreter::run(const For& node) {
  const Value items = make_list(loop_items(node));
  const std::size_t count = items.list().items.size();
  if (count == 0) {
    const Block block(*this, scope_);
    return execute(node.otherwise);
  }
  ++loop_depth_;
  for (std::size_t i = 0; i < count; ++i) {
    const Block block(*this, scope_);
    auto loop = std::make_shared<const LoopState>(LoopState{items, i, loop_depth_});
    scope_->set("loop", Value(std::move(loop)));
    assign(node.target, items.list().items[i]);
    if (execute(node.body) == Flow::leave_loop) break;
  }
  --loop_depth_;  // not reached by an error: that ends the rendering
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Set& node) {
  assign(node.target, evaluate(*node.value));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const SetBlock& node) {
  assign(node.target, capture(node.body, node.filters));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const FilterBlock& node) {
  append_str(runtime_, *out_, capture(node.body, node.filters));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const MacroDefinition& node) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) scope->captured = true;
  scope_->set(node.name, Value(std::make_shared<const Callable>(Callable{Macro{&node, scope_}})));
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Scoped& node) {
  std::vector<Value> values;  // none of them sees the others
  for (const auto& variable : node.variables) values.push_back(evaluate(*variable.second));
  const Block block(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
  return execute(node.body);
}

Interpreter::Flow Interpreter::run(const Break&) {
  return Flow::leave_loop;
}
Interpreter::Flow Interpreter::run(const Continue&) {
  return Flow::next_pass;
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.tuple.empty()) {
    require_defined(value);
    const std::vector<Value> parts = iterate(runtime_, value);
    if (parts.size() != target.tuple.size()) {
      fail_render("cannot unpack " + std::to_string(parts.size()) + " values into " +
                  std::to_string(target.tuple.size()) + " names");
    }
    for (std::size_t i = 0; i < parts.size(); ++i) assign(target.tuple[i], parts[i]);
    return;
  }
  if (target.attribute.empty()) {
    runtime_.charge_items(scope_->variables.size() / 64);  // set() searches them
    scope_->set(target.name, value);
    return;
  }
  const Value object = look_up(target.name);
  if (!object.is(Kind::name_space)) {
    fail_render("cannot set attribute '" + target.attribute + "': '" + target.name +
                "' is no namespace");
  }
  object.name_space().set(target.attribute, value);
}

Value Interpreter::capture(const Body& body, const std::vector<FilterUse>& filters) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  {
    const Block block(*this, scope_);
    execute(body);
  }
  out_ = outer;  // not reached by an error: that ends the rendering
  Value value(std::move(text));
  for (const FilterUse& use : filters) {
    value = use.filter(runtime_, value, evaluate_arguments(use.arguments));
  }
  return value;
}

void Interpreter::bind_parameters(const MacroDefinition& definition, const Arguments& arguments) {
  const auto& parameters = definition.parameters;
  if (arguments.positional.size() > parameters.size()) {
    fail_render("macro '" + definition.name + "' takes not more than " +
                std::to_string(parameters.size()) + " arguments");
  }
  std::vector<std::pair<std::string, Value>> named = arguments.named;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    if (i < arguments.positional.size()) {
      scope_->set(name, arguments.positional[i]);
      continue;
    }
    const auto found = std::find_if(named.begin(), named.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    if (found != named.end()) {
      scope_->set(name, std::move(found->second));
      named.erase(found);
    } else if (parameters[i].otherwise) {
      scope_->set(name, evaluate(*parameters[i].otherwise));
    } else {
      scope_->set(name, Value::undefined("parameter '" + name + "' was not provided"));
    }
  }
  if (!named.empty()) {
    fail_render("macro '" + definition.name + "' takes no argument '" + named.front().first + "'");
  }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  if (macro_depth_ >= kMaxMacroDepth) {
    fail_render("macros call each other deeper than " + std::to_string(kMaxMacroDepth));
  }
  ++macro_depth_;
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  const int outer_loops = std::exchange(loop_depth_, 0);
  {
    const Block block(*this, macro.scope);
    bind_parameters(*macro.definition, arguments);
    execute(macro.definition->body);
  }
  out_ = outer;
  loop_depth_ = outer_loops;
  --macro_depth_;
  return Value(std::move(text));
}

}  // namespace fixpoint::engine::jinja
