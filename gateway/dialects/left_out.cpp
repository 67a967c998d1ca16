#include "gateway/dialects/left_out.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "gateway/dialects/json_access.hpp"

namespace fixpoint {
namespace {

class Names {
 public:
  // Notes the members of `value` that say something.
  void note(const Json& value, const std::string& path, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      const Json* found = dialects::member(value, name);
      if (!found || found->empty()) continue;
      auto whole = path + name;
      if (std::find(names_.begin(), names_.end(), whole) == names_.end()) {
        names_.push_back(std::move(whole));
      }
    }
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> left_out_members(Endpoint maker, const Json& answer) {
  Names names;
  if (maker == Endpoint::messages) {
    if (const Json* content = dialects::array_member(answer, "content")) {
      for (const auto& block : *content) names.note(block, "content[].", {"citations"});
    }
    names.note(answer, "", {"stop_details"});
  } else if (const Json* choices = dialects::array_member(answer, "choices")) {
    for (const auto& choice : *choices) {
      const Json* message = dialects::object_member(choice, "message");
      if (!message) continue;
      names.note(*message, "choices[].message.", {"annotations", "reasoning_details"});
    }
  }
  return names.take();
}

}  // namespace fixpoint
