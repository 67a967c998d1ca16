// JSON schemas whose answers must match them: what the APIs take of a schema then. Inside this
// folder.
#pragma once

#include <string>

#include "gateway/dialects/request_members.hpp"

namespace fixpoint::dialects {

// As Anthropic takes it: objects are closed, and keywords that it refuses stand in the description,
// where the model can still follow them. Those are announced as members of `path`.
Json schema_for_anthropic(const Json& schema, const std::string& path, Notes& notes);

// Whether OpenAI takes it with `strict`: every object is closed and requires all its properties.
bool is_strict_for_openai(const Json& schema);

}  // namespace fixpoint::dialects
