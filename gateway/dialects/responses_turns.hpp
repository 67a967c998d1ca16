// The input of a Responses request as a chat conversation. Inside this folder.
#pragma once

#include <string>

#include "gateway/dialects/request_members.hpp"

namespace fixpoint::dialects {

// `instructions` may be null; `input` is a string or an array of items.
Json responses_turns_to_chat(const std::string* instructions, const Json& input, Notes& notes);

}  // namespace fixpoint::dialects
