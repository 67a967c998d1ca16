// A request for an answer: from the request to the cache, a flight or a maker.
#pragma once

#include "gateway/api/exchange.hpp"
#include "gateway/dialects/endpoint.hpp"
#include "gateway/http/server.hpp"

namespace fixpoint {

struct Gateway;

// Answers one request on `writer`; exchange.tenant is set where the gateway has keys. All of them
// outlive the coroutine.
Task<void> generate(Gateway& gateway, Endpoint endpoint, const RequestPtr& request,
                    ResponseWriter& writer, Exchange& exchange);

// Sends an error in the shape of the endpoint's API.
Task<void> send_error(const ApiError& error, Api api, ResponseWriter& writer, Exchange& exchange);

}  // namespace fixpoint
