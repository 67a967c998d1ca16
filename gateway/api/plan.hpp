// What is to be done for a request: who answers it, under which key, and what the cache may do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "gateway/api/client_request.hpp"
#include "gateway/api/local_request.hpp"
#include "gateway/api/upstream_call.hpp"
#include "gateway/dialects/translate.hpp"
#include "gateway/settings.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

struct Gateway;

struct Plan {
  SettingsPtr settings;
  TenantPtr tenant;  // null: the gateway has no keys
  ClientRequest request;
  const Route* route = nullptr;
  std::vector<UpstreamPtr> upstreams;  // to try, in order; empty: the local engine answers
  engine::Engine* engine = nullptr;
  std::optional<LocalRequest> local;  // set with engine
  TranslationPtr translation;         // of the first upstream's call, if it needs one
  // The endpoint that the engine answers as; not the client's: the answer is translated, for which
  // `tree` is the client's request.
  Endpoint local_endpoint = Endpoint::chat_completions;
  Json tree;
  std::vector<std::string> dropped;  // members that the translation left out
  CacheKey key;
  std::uint32_t sample = 0;
  bool reproducible = false;  // answered by the engine, with a seed that is given or derived
  bool look_up = false;       // the cache may answer
  bool store = false;         // the answer may be stored
};

// Routes and keys a request that was read. Errors: what the client is told.
ApiResult<Plan> make_plan(Gateway& gateway, TenantPtr tenant, ClientRequest read,
                          const Request& request);

// What an upstream's answer depends on beside the request's body: see BodyKeyInput.
struct KeyScope {
  std::string tenant, endpoint;
  std::string asked;  // see CacheKey
};
KeyScope key_scope(const Gateway& gateway, const Settings& settings, const Upstream& upstream,
                   Endpoint endpoint, std::string_view model, const Tenant* tenant,
                   const Headers& headers, const std::string& query);

// The endpoint that an upstream is asked for a client's; nothing: it has none like it.
std::optional<Endpoint> endpoint_at(UpstreamKind kind, Endpoint client);

// A translation's error as the client is told.
ApiError translation_error(const TranslationError& error);

}  // namespace fixpoint
