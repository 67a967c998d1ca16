// Makes an answer by passing the request on to an upstream.
#pragma once

#include <memory>
#include <string>

#include "gateway/api/job.hpp"
#include "gateway/config.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint {

// The call to make: the client's body, changed only where the configuration says so.
struct UpstreamCall {
  std::string upstream;  // its name
  UpstreamRequest request;
};

// Builds the call around the body that was keyed. ask_for_usage adds stream_options.include_usage:
// a stream that is to be stored must have its usage, for the plain requests that will be served
// from it. Errors: 400 (a body that cannot be edited).
ApiResult<UpstreamCall> build_upstream_call(const UpstreamConfig& upstream, const Request& client,
                                            Endpoint endpoint, std::string body,
                                            bool ask_for_usage);

// Starts the relay on this core and returns at once. The call is cancelled when nobody waits any
// more.
void start_upstream_answer(net::io_context& core, UpstreamClient& client, UpstreamCall call,
                           std::shared_ptr<AnswerJob> job);

}  // namespace fixpoint
