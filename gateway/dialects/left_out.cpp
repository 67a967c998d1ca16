#include "gateway/dialects/left_out.hpp"

#include <algorithm>
#include <utility>

#include "gateway/dialects/json_access.hpp"

namespace fixpoint {

std::vector<std::string> left_out_members(Endpoint maker, const Json& answer) {
  std::vector<std::string> names;
  // Where it says something.
  const auto note = [&](const Json& value, const std::string& path, const char* name) {
    const Json* found = dialects::member(value, name);
    if (!found || found->empty()) return;
    auto whole = path + name;
    if (std::find(names.begin(), names.end(), whole) == names.end()) {
      names.push_back(std::move(whole));
    }
  };
  if (maker == Endpoint::messages) {
    if (const Json* content = dialects::array_member(answer, "content")) {
      for (const auto& block : *content) note(block, "content[].", "citations");
    }
    note(answer, "", "stop_details");
  } else if (const Json* choices = dialects::array_member(answer, "choices")) {
    for (const auto& choice : *choices) {
      const Json* message = dialects::object_member(choice, "message");
      if (!message) continue;
      note(*message, "choices[].message.", "annotations");
      note(*message, "choices[].message.", "reasoning_details");
    }
  }
  return names;
}

}  // namespace fixpoint
