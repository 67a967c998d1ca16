// Runs a parsed template.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "local_engine/text/jinja/ast.hpp"
#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

// Variables of a template, a loop's pass, a captured block or a macro's call. `if` has none of its
// own.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string, Value>> variables;
  // A macro was defined here or below and may outlive the block: the scope then lives as long as
  // the rendering.
  bool captured = false;

  const Value* find(std::string_view name) const;  // here only
  void set(std::string_view name, Value value);
};

// One rendering. Throws TemplateError with the line.
class Interpreter {
 public:
  explicit Interpreter(Runtime& runtime) : runtime_(runtime) {}

  std::string render(const Body& body, std::vector<std::pair<std::string, Value>> variables);

 private:
  enum class Flow { normal, leave_loop, next_pass };
  class Depth;
  class Block;

  // Statements (interpreter.cpp).
  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow run(const Text& node);
  Flow run(const Print& node);
  Flow run(const If& node);
  Flow run(const For& node);
  Flow run(const Set& node);
  Flow run(const SetBlock& node);
  Flow run(const MacroDefinition& node);
  Flow run(const FilterBlock& node);
  Flow run(const Scoped& node);
  Flow run(const Break& node);
  Flow run(const Continue& node);
  std::vector<Value> loop_items(const For& node);
  void assign(const Target& target, const Value& value);
  Value capture(const Body& body, const std::vector<FilterUse>& filters);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  void bind_parameters(const MacroDefinition& definition, const Arguments& arguments);

  // Expressions (evaluate.cpp).
  Value evaluate(const Expression& expression);
  Value get(const Literal& node);
  Value get(const Name& node);
  Value get(const ListLiteral& node);
  Value get(const DictLiteral& node);
  Value get(const AttributeAccess& node);
  Value get(const ItemAccess& node);
  Value get(const SliceAccess& node);
  Value get(const Call& node);
  Value get(const FilterUse& node);
  Value get(const TestUse& node);
  Value get(const Unary& node);
  Value get(const Arithmetic& node);
  Value get(const Comparison& node);
  Value get(const Logical& node);
  Value get(const Concatenation& node);
  Value get(const Conditional& node);
  Value evaluate_or_none(const ExpressionPtr& expression);
  Arguments evaluate_arguments(const ArgumentList& list);
  Value look_up(std::string_view name);

  Runtime& runtime_;
  std::vector<std::unique_ptr<Scope>> kept_;  // captured scopes whose block has ended
  Scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  int depth_ = 0;
  int macro_depth_ = 0;
  int loop_depth_ = 0;
};

// Counts nodes being evaluated at once.
class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& owner) : owner_(owner) {
    if (owner_.depth_ >= kMaxEvaluationDepth) {
      fail_render("template evaluates more than " + std::to_string(kMaxEvaluationDepth) +
                  " nested nodes");
    }
    ++owner_.depth_;
  }
  ~Depth() { --owner_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& owner_;
};

// A scope while it lives.
class Interpreter::Block {
 public:
  Block(Interpreter& owner, Scope* parent);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  Interpreter& owner_;
  Scope* outer_;
  std::unique_ptr<Scope> scope_;
};

}  // namespace fixpoint::engine::jinja
