#include "gateway/api/plan.hpp"

#include "cache/base/digest.hpp"
#include "gateway/api/header_policy.hpp"
#include "gateway/gateway.hpp"
#include "gateway/json_edit.hpp"

namespace fixpoint {
namespace {

ReproMode repro_mode(const OpenAiRequest& request, const RouteConfig& route) {
  return request.directives.repro.value_or(route.repro);
}

// Chooses between the engine and the upstream. `required` with no engine is an error, never a
// fall-back.
std::optional<ApiError> choose_maker(Gateway& gateway, Plan& plan, ReproMode mode) {
  const auto& route = *plan.route;
  const auto& name =
      route.local.empty() && mode != ReproMode::off ? route.repro_model : route.local;
  if (!name.empty()) {
    plan.engine = gateway.find_engine(name);
    if (plan.engine) return {};
    return api_error(
        503, "server_error", "model_not_loaded",
        "The local model '" + name + "' is configured but not loaded; see the server's log");
  }
  if (mode == ReproMode::required) {
    return bad_request(
        "The request is tagged reproducible, but route '" + route.model +
            "' has no local model to answer it: set 'repro_model' of that route to the name "
            "of an entry in 'models', or send the request without the tag",
        "model", "no_reproducible_model");
  }
  plan.upstream = gateway.config.find_upstream(route.upstream);
  return {};
}

// automatic: what asks for one particular answer. Anything else asks for a fresh draw each time.
bool is_cacheable(const Plan& plan, CachePolicy policy, bool tagged) {
  if (policy == CachePolicy::off) return false;
  if (policy == CachePolicy::all) return true;
  return plan.request.temperature_zero || plan.request.has_seed ||
         plan.request.directives.sample.has_value() || tagged;
}

// Whatever a client's headers say on whose behalf, or how, the upstream answers: their holder's
// answers are nobody else's.
std::string tenant_of(const UpstreamConfig& upstream, const Headers& headers) {
  const auto deciding = deciding_headers(upstream, headers);
  return deciding.empty() ? std::string() : sha256_hex("fixpoint-tenant-v1\n" + deciding);
}

// Keys what the upstream will be asked, not what the client wrote: a route that begins to rename a
// model, or another query string, must not find the old answers.
std::optional<ApiError> key_upstream(Plan& plan, const Request& request) {
  plan.body = request.body;
  if (!plan.route->upstream_model.empty()) {
    auto renamed = set_member(plan.body, "model", json_string(plan.route->upstream_model));
    if (!renamed) return bad_request(renamed.error().message, "model");
    plan.body = std::move(*renamed);
  }
  std::string endpoint(endpoint_name(plan.request.endpoint));
  if (!request.query.empty()) endpoint += "?" + request.query;
  const auto tenant = tenant_of(*plan.upstream, request.headers);
  BodyKeyInput input;
  input.tenant = tenant;
  input.provider = plan.upstream->name;
  input.base_url = plan.upstream->base_url;
  input.endpoint = endpoint;
  input.request = plan.body;
  input.sample = plan.sample;
  auto key = body_key(input);
  if (!key) return bad_request(key.error().message);
  plan.key = std::move(*key);
  return {};
}

}  // namespace

ApiResult<Plan> make_plan(Gateway& gateway, Endpoint endpoint, const Request& request) {
  auto parsed = parse_request(endpoint, request.headers, request.body);
  if (!parsed) return refuse(parsed.error());
  Plan plan;
  plan.request = std::move(*parsed);
  plan.route = gateway.config.find_route(plan.request.model);
  if (!plan.route) {
    ApiError error = bad_request("The model '" + plan.request.model +
                                     "' does not exist: no route of the configuration matches it",
                                 "model", "model_not_found");
    error.status = 404;
    return refuse(std::move(error));
  }
  const auto mode = repro_mode(plan.request, *plan.route);
  const bool tagged = mode != ReproMode::off;
  plan.sample = plan.request.directives.sample.value_or(0);
  if (auto error = choose_maker(gateway, plan, mode)) return refuse(std::move(*error));

  if (plan.engine) {
    const LocalContext context{*plan.engine, tagged || plan.request.directives.sample.has_value(),
                               plan.sample,
                               static_cast<std::size_t>(gateway.config.log.top_logprobs)};
    auto local = build_local_request(plan.request, context);
    if (local) {
      plan.reproducible = !local->random_seed;
      plan.key = local->key;
      plan.local = std::move(*local);
    } else if (mode == ReproMode::preferred && !plan.route->upstream.empty()) {
      plan.engine = nullptr;  // it cannot take this request; preferred means that the upstream may
      plan.upstream = gateway.config.find_upstream(plan.route->upstream);
    } else {
      return refuse(local.error());
    }
  }
  if (plan.upstream) {
    if (auto error = key_upstream(plan, request)) return refuse(std::move(*error));
  }

  const auto policy = plan.route->cache.value_or(gateway.config.cache.policy);
  const auto& directives = plan.request.directives.cache;
  const bool cacheable =
      gateway.store && is_cacheable(plan, policy, tagged) && !directives.no_store;
  plan.store = cacheable;
  plan.look_up = cacheable && !directives.no_cache;
  plan.request.body =
      nullptr;  // everything needed was read; the tree is many times the body's size
  return plan;
}

}  // namespace fixpoint
