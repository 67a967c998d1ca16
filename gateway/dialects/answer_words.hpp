// What the APIs call the same thing in an answer: ids, reasons to stop, token counts. Inside this
// folder.
#pragma once

#include <string>
#include <string_view>

#include "cache/base/result.hpp"
#include "gateway/dialects/json_access.hpp"

namespace fixpoint::dialects {

// The maker's id with another API's prefix ("chatcmpl-", "msg_", "resp_"): one can be found from
// the other.
std::string id_with_prefix(const std::string& id, std::string_view prefix);

// Errors: protocol, for reasons that have no counterpart (pause_turn; a vendor's own).
Result<std::string> chat_finish_reason(const std::string& stop_reason);
// OpenAI says "stop" also where a named tool was called.
Result<std::string> message_stop_reason(const std::string& finish_reason, bool any_call,
                                        bool any_refusal);

// Of one API's usage object, which may be null.
Json chat_usage(const Json& message_usage);
Json message_usage(const Json& chat_usage);
Json response_usage(const Json& chat_usage);

}  // namespace fixpoint::dialects
