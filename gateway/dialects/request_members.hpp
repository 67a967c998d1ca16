// Reading a request's members so that none is lost in silence: each is taken, announced or refused.
// Inside this folder.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/translate.hpp"

namespace fixpoint::dialects {

// What became of a request's members. The first refusal counts; what is translated after it is
// thrown away with it.
class Notes {
 public:
  void refuse(std::string param, std::string message, std::string code = "unsupported_parameter");
  // Without the indices of `param`: a conversation of any length has a few such names.
  void announce(std::string_view param);
  bool refused() const { return error_.has_value(); }
  // The translated body, or the refusal.
  tl::expected<TranslatedRequest, TranslationError> result(Json body) &&;

 private:
  std::optional<TranslationError> error_;
  std::vector<std::string> dropped_;
};

// One object of the request. A null member counts as absent: the APIs' SDKs send null for "not
// set".
class Members {
 public:
  // `path` is empty for the request itself. Refuses what is no object.
  Members(const Json& object, std::string path, Notes& notes);

  // Null pointer: absent or null. The typed ones refuse another type.
  const Json* take(std::string_view name);
  const std::string* text(std::string_view name);
  const Json* array(std::string_view name);
  const Json* object(std::string_view name);
  const Json* number(std::string_view name);
  bool flag(std::string_view name);  // false where absent
  // Refuses the object where the member is absent.
  std::string required_text(std::string_view name);

  // Into the translation, as it is.
  void copy(std::string_view name, Json& into, std::string_view as = {});
  // Members that ask for nothing that an answer would show; empty ones ask for nothing at all.
  void announce(std::initializer_list<std::string_view> names);
  // Members that cannot be honoured, unless they ask for what happens anyway.
  void refuse(std::string_view name, std::string_view why);
  void refuse_unless(std::string_view name, const Json& harmless, std::string_view why);
  // Of `metadata`: what is meant for this gateway.
  void take_directives();
  // Whatever was not taken is refused by name.
  void refuse_rest(std::string_view target);

  std::string path_of(std::string_view name) const;
  Notes& notes() { return notes_; }

 private:
  const Json empty_ = Json::object();
  const Json& object_;
  std::string path_;
  Notes& notes_;
  std::vector<bool> taken_;
};

// A member of `metadata` that says how this gateway answers ("fixpoint_repro").
bool is_directive(std::string_view name);
std::string at(std::string_view path, std::size_t index);  // "messages[2]"

}  // namespace fixpoint::dialects
