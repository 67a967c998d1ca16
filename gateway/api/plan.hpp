// What is to be done for a request: who answers it, under which key, and what the cache may do.
#pragma once

#include <optional>
#include <string>

#include "cache/key.hpp"
#include "gateway/api/local_request.hpp"
#include "gateway/api/openai_request.hpp"
#include "gateway/config.hpp"

namespace fixpoint {

struct Gateway;

struct Plan {
  OpenAiRequest request;
  const RouteConfig* route = nullptr;
  const UpstreamConfig* upstream = nullptr;  // null: the local engine answers
  engine::Engine* engine = nullptr;
  std::optional<LocalRequest> local;  // set with engine
  std::string body;  // what the upstream is to get: the client's bytes, the model renamed if the
                     // route says so
  CacheKey key;
  std::uint32_t sample = 0;
  bool reproducible = false;  // answered by the engine, with a seed that is given or derived
  bool look_up = false;       // the cache may answer
  bool store = false;         // the answer may be stored
};

// Parses, routes and keys a request. Errors: what the client is told.
ApiResult<Plan> make_plan(Gateway& gateway, Endpoint endpoint, const Request& request);

}  // namespace fixpoint
