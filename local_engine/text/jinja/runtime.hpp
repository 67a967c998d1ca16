// State of one rendering that filters, tests and functions share, and the way arguments reach them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "local_engine/text/jinja/error.hpp"
#include "local_engine/text/jinja/limits.hpp"
#include "local_engine/text/jinja/value.hpp"

namespace fixpoint::engine {
struct ChatInput;
}

namespace fixpoint::engine::jinja {

struct MacroDefinition;
struct Scope;
class Runtime;

class Arguments {
 public:
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // By parameter, in the order of `names`: what was given. Errors (naming `callee`): too many
  // arguments, an unknown name, a parameter given twice.
  std::vector<std::optional<Value>> bind(std::string_view callee,
                                         std::initializer_list<std::string_view> names) const;
};

using Function = Value (*)(Runtime&, const Arguments&);
using Filter = Value (*)(Runtime&, const Value&, const Arguments&);
using Test = bool (*)(Runtime&, const Value&, const Arguments&);

struct Macro {
  const MacroDefinition* definition;
  Scope* scope;  // where it was defined; names in its body are looked up here when it runs
};
struct Method {
  Value self;
  std::string name;
};
struct Callable {
  std::variant<Function, Method, Macro> target;
};

// Shared with the values named `loop`.
struct LoopState {
  Value items;  // a list
  std::size_t index = 0;
  int depth = 1;  // of loops
};

class Runtime {
 public:
  explicit Runtime(const ChatInput& input) : input_(input) {}

  void step(std::int64_t count = 1) {
    steps_left_ -= count;
    if (steps_left_ < 0) fail_steps();
  }
  // For work over so many bytes of text.
  void charge_text(std::size_t bytes) { step(static_cast<std::int64_t>(bytes >> 10)); }
  void charge_items(std::size_t count) { step(static_cast<std::int64_t>(count)); }
  // Errors: longer than kMaxText.
  Value make_string(std::string text);
  void check_text_size(std::size_t size) const;

  Namespace* make_namespace();
  const ChatInput& input() const { return input_; }

 private:
  [[noreturn]] static void fail_steps();
  const ChatInput& input_;
  std::int64_t steps_left_ = kMaxSteps;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
};

// Null for a name that is not implemented.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
Function find_function(std::string_view name);

// Methods of str, dict and list that exist in Python. `allowed` ones are implemented; `forbidden`
// ones change their object, which the sandbox of the template's home does not permit.
enum class MethodStatus { unknown, allowed, forbidden };
MethodStatus method_status(const Value& self, std::string_view name);
// Whether any type has an implemented or forbidden method of this name.
bool is_known_method(std::string_view name);
Value call_method(Runtime& runtime, const Value& self, std::string_view name,
                  const Arguments& arguments);

}  // namespace fixpoint::engine::jinja
