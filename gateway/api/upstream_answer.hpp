// Makes an answer by passing the request on to upstreams.
#pragma once

#include <memory>

#include "gateway/api/job.hpp"
#include "gateway/api/upstream_call.hpp"

namespace fixpoint {

// Starts the relay on this core and returns at once. Upstreams are tried in order, each as often as
// its configuration says, until one of them has begun an answer: after its first event reached the
// flight there is no other attempt. The call is cancelled when nobody waits any more.
void start_upstream_answer(net::io_context& core, UpstreamWork work,
                           std::shared_ptr<AnswerJob> job);

}  // namespace fixpoint
