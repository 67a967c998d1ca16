// POST /v1/chat/completions and /v1/completions: from the request to the cache, a flight or a
// maker.
#pragma once

#include "gateway/api/answer.hpp"
#include "gateway/http/server.hpp"

namespace fixpoint {

struct Gateway;

// Answers one request on `writer`. `request` and `writer` outlive the coroutine. Returns the HTTP
// status that the client got, for the access log.
Task<int> generate(Gateway& gateway, Endpoint endpoint, const Request& request,
                   ResponseWriter& writer, const std::string& request_id);

}  // namespace fixpoint
