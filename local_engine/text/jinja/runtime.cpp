#include "local_engine/text/jinja/runtime.hpp"

namespace fixpoint::engine::jinja {

std::vector<std::optional<Value>> Arguments::bind(
    std::string_view callee, std::initializer_list<std::string_view> names) const {
  std::vector<std::optional<Value>> bound(names.size());
  if (positional.size() > names.size()) {
    fail_render(std::string(callee) + "() takes at most " + std::to_string(names.size()) +
                " arguments but got " + std::to_string(positional.size()));
  }
  for (std::size_t i = 0; i < positional.size(); ++i) bound[i] = positional[i];
  for (const auto& [name, value] : named) {
    std::size_t at = 0;
    while (at < names.size() && names.begin()[at] != name) ++at;
    if (at == names.size()) {
      fail_render(std::string(callee) + "() got an unexpected argument '" + name + "'");
    }
    if (bound[at]) {
      fail_render(std::string(callee) + "() got the argument '" + name + "' twice");
    }
    bound[at] = value;
  }
  return bound;
}

void Runtime::check_text_size(std::size_t size) const {
  if (size > kMaxText) {
    fail_render("text is longer than " + std::to_string(kMaxText) + " bytes");
  }
}

Value Runtime::make_string(std::string text) {
  check_text_size(text.size());
  charge_text(text.size());
  return Value(std::move(text));
}

Namespace* Runtime::make_namespace() {
  namespaces_.push_back(std::make_unique<Namespace>());
  return namespaces_.back().get();
}

void Runtime::fail_steps() {
  fail_render("template ran more than " + std::to_string(kMaxSteps) + " steps");
}

}  // namespace fixpoint::engine::jinja
