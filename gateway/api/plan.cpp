#include "gateway/api/plan.hpp"

#include <algorithm>
#include <charconv>

#include "cache/base/digest.hpp"
#include "gateway/api/header_policy.hpp"
#include "gateway/dialects/translate.hpp"
#include "gateway/gateway.hpp"
#include "gateway/json_edit.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint {
namespace {

// Chooses between the engine and the upstreams. `required` with no engine is an error, never a
// fall-back.
std::optional<ApiError> choose_maker(Gateway& gateway, Plan& plan, ReproMode mode) {
  const auto& route = *plan.route->config;
  const auto& name =
      route.local.empty() && mode != ReproMode::off ? route.repro_model : route.local;
  if (!name.empty()) {
    plan.engine = gateway.find_engine(name);
    if (plan.engine || (mode == ReproMode::preferred && route.local.empty())) return {};
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
  return {};
}

// A Responses request that names a prompt stored at the provider and none of its versions: whoever
// publishes a new one wants its answers, to the same request.
bool follows_a_stored_prompt(const ClientRequest& request) {
  if (request.endpoint != Endpoint::responses) return false;
  const auto prompt = request.find("prompt");
  if (!prompt || !prompt->starts_with('{')) return false;
  const auto version = find_member(*prompt, "version");
  return !version || !*version || **version == "null";
}

// automatic: what asks for one particular answer. Anything else asks for a fresh draw each time.
bool is_cacheable(const Plan& plan, CachePolicy policy, bool tagged, bool recording) {
  if (policy == CachePolicy::off) return false;
  if (plan.request.find("conversation")) return false;  // grows with every request
  // A recording keeps the answer of its day, as it does of a model whose name stays.
  if (!recording && follows_a_stored_prompt(plan.request)) return false;
  if (policy == CachePolicy::all) return true;
  return plan.request.one_answer || plan.request.directives.sample.has_value() || tagged;
}

// The engine speaks OpenAI's chat and completions; what else it can answer is translated.
std::optional<ApiError> build_local(const Gateway& gateway, Plan& plan, const Request& request,
                                    bool tagged) {
  const auto endpoint = plan.request.endpoint;
  plan.local_endpoint =
      endpoint == Endpoint::completions ? Endpoint::completions : Endpoint::chat_completions;
  if (endpoint != plan.local_endpoint && !can_translate(endpoint, plan.local_endpoint)) {
    return bad_request("The local engine does not answer " + request.path, "model",
                       "unsupported_endpoint");
  }
  auto tree = parse_json(request.body);
  if (!tree) return bad_request("The request body " + tree.error().message);
  const bool seeded = tagged || plan.request.directives.sample.has_value();
  LocalContext context{*plan.engine};
  const bool separate = plan.tenant && gateway.recording == Recording::off;
  context.tenant = separate ? std::string_view(plan.tenant->key.cache_namespace) : "";
  // A Responses answer echoes the request, which has to be in the key then.
  std::string shape(endpoint_name(endpoint));
  if (endpoint == Endpoint::responses) shape += "#" + sha256_hex(plan.request.canonical);
  context.client_endpoint = shape;
  context.tagged = seeded;
  context.loose_limit = endpoint == Endpoint::messages;
  context.sample = plan.sample;
  context.log_top_logprobs = static_cast<std::size_t>(plan.settings->config.log.top_logprobs);
  const Json* body = &*tree;
  tl::expected<TranslatedRequest, TranslationError> translated;
  if (endpoint != plan.local_endpoint) {
    translated = translate_request(endpoint, plan.local_endpoint, *tree);
    if (!translated) return translation_error(translated.error());
    body = &translated->body;
    plan.dropped = translated->dropped;
  }
  auto local = build_local_request(plan.local_endpoint, *body, context);
  if (!local) {
    auto error = std::move(local.error());
    if (endpoint != plan.local_endpoint) {
      name_client_member(endpoint, error.param, error.message);
    }
    return error;
  }
  plan.reproducible = !local->random_seed;
  plan.key = local->key;
  if (gateway.recording != Recording::off) {
    plan.key.asked = "{\"request\":" + plan.request.canonical + "}";
  }
  plan.local = std::move(*local);
  if (endpoint != plan.local_endpoint) plan.tree = std::move(*tree);
  return {};
}

// Keys what the first upstream will be asked, not what the client wrote: a configuration that
// begins to rename a model, or another query string, must not find the old answers.
std::optional<ApiError> key_upstream(const Gateway& gateway, Plan& plan, const Request& request,
                                     bool sticky) {
  const auto digest = sticky ? sha256(plan.request.canonical) : Sha256Bytes{};
  std::uint64_t place = 0;
  for (int i = 0; sticky && i < 8; ++i) place = place << 8 | digest[static_cast<std::size_t>(i)];
  const auto order = [&](const Settings::CanTake& can_take) {
    return plan.settings->order(*plan.route, sticky ? &place : nullptr, can_take);
  };
  const auto endpoint_of = [&](const Upstream& upstream) {
    return endpoint_at(upstream.config.kind, plan.request.endpoint);
  };
  plan.upstreams = order([&](const Upstream& one) { return endpoint_of(one).has_value(); });
  if (plan.upstreams.empty()) {
    return bad_request(
        "Upstream '" + plan.route->choices.front().name + "' has no endpoint for " + request.path,
        "model", "unsupported_endpoint");
  }
  const auto maker = *endpoint_of(*plan.upstreams.front());
  if (maker != plan.request.endpoint) {
    // Announced for stored answers, too; what cannot be translated is refused before anything else.
    auto translation = translate_for(plan.request.endpoint, maker, request.body);
    if (translation) {
      plan.translation = std::move(*translation);
      plan.dropped = plan.translation->request.dropped;
    } else {
      // Those that speak the client's API can take it.
      plan.upstreams =
          order([&](const Upstream& one) { return endpoint_of(one) == plan.request.endpoint; });
      if (plan.upstreams.empty()) return translation.error();
    }
  }
  const auto& first = *plan.upstreams.front();
  auto& canonical = plan.request.canonical;
  const auto name = first.model_name(plan.request.model);
  if (name != plan.request.model) {
    auto renamed = set_member(canonical, "model", json_string(name));
    if (!renamed) return bad_request(renamed.error().message, "model");
    canonical = std::move(*renamed);
  }
  const auto scope =
      key_scope(gateway, *plan.settings, first, plan.request.endpoint, plan.request.model,
                plan.tenant.get(), request.headers, request.query);
  BodyKeyInput input;
  input.tenant = scope.tenant;
  input.provider = first.config.name;
  input.base_url = first.config.base_url;
  input.endpoint = scope.endpoint;
  input.request = canonical;
  input.sample = plan.sample;
  plan.key = canonical_body_key(input);
  plan.key.asked = scope.asked;
  return {};
}

// A query without the members that are credentials by their name, which must not be in a file that
// somebody commits, and these.
struct Query {
  std::string plain, secret;
};
Query split_query(std::string_view query) {
  constexpr std::string_view kSecrets[] = {
      "key",   "api_key",      "api-key", "apikey", "subscription-key",
      "token", "access_token", "code",    "sig",    "signature",
  };
  Query split;
  while (!query.empty()) {
    const auto member = query.substr(0, query.find('&'));
    const auto name = member.substr(0, member.find('='));
    const bool secret =
        std::any_of(std::begin(kSecrets), std::end(kSecrets),
                    [&](std::string_view one) { return equal_ignoring_case(one, name); });
    auto& part = secret ? split.secret : split.plain;
    if (!part.empty()) part += '&';
    part += member;
    query.remove_prefix(std::min(member.size() + 1, query.size()));
  }
  return split;
}

// Whose account at the provider pays.
Headers without_account(Headers headers) {
  headers.remove("openai-organization");
  headers.remove("openai-project");
  return headers;
}

}  // namespace

KeyScope key_scope(const Gateway& gateway, const Settings& settings, const Upstream& upstream,
                   Endpoint endpoint, std::string_view model, const Tenant* tenant,
                   const Headers& headers, const std::string& query) {
  KeyScope scope;
  // A recording is for everybody who has the files, whoever asked for it: no keys, no accounts, no
  // namespaces, no state of this gateway.
  const bool recording = gateway.recording != Recording::off;
  const auto split = split_query(query);
  // Whatever a client says on whose behalf, or how, the upstream answers: their holder's answers
  // are nobody else's.
  std::string deciding;
  if (recording) {
    const auto given = without_account(headers);
    deciding = deciding_headers({}, given, false);
    if (!deciding.empty()) scope.asked = "{\"headers\":" + shown_headers(given) + "}";
  } else {
    deciding = deciding_headers(upstream.config, headers, tenant == nullptr);
  }
  if (!recording && !split.secret.empty()) deciding += "?" + split.secret;
  if (tenant && !recording) scope.tenant = "namespace " + tenant->key.cache_namespace;
  if (!deciding.empty()) {
    if (!scope.tenant.empty()) scope.tenant += '\n';
    scope.tenant += sha256_hex("fixpoint-tenant-v1\n" + deciding);
  }
  scope.endpoint = endpoint_name(endpoint);
  const auto maker = endpoint_at(upstream.config.kind, endpoint);
  if (maker && *maker != endpoint) scope.endpoint += ">" + std::string(endpoint_name(*maker));
  if (!split.plain.empty()) scope.endpoint += "?" + split.plain;
  if (!recording && settings.config.log.fingerprint_epoch) {
    const auto epoch = gateway.fingerprints->epoch(upstream.config.name, model);
    if (!epoch.empty()) scope.endpoint += "#" + epoch;
  }
  return scope;
}

std::optional<Endpoint> endpoint_at(UpstreamKind kind, Endpoint client) {
  const Api api = kind == UpstreamKind::anthropic ? Api::anthropic : Api::openai;
  if (api_of(client) == api) return client;
  const auto maker = api == Api::anthropic ? Endpoint::messages : Endpoint::chat_completions;
  if (!can_translate(client, maker)) return {};
  return maker;
}

ApiError translation_error(const TranslationError& error) {
  return bad_request(error.message, error.param, error.code);
}

ApiResult<Plan> make_plan(Gateway& gateway, TenantPtr tenant, ClientRequest read,
                          const Request& request) {
  Plan plan;
  plan.settings = gateway.settings();
  plan.tenant = std::move(tenant);
  plan.request = std::move(read);
  plan.route = plan.settings->find_route(plan.request.model);
  if (!plan.route) {
    ApiError error = bad_request("The model '" + plan.request.model +
                                     "' does not exist: no route of the configuration matches it",
                                 "model", "model_not_found");
    error.status = 404;
    return refuse(std::move(error));
  }
  const auto& route = *plan.route->config;
  const auto mode = plan.request.directives.repro.value_or(route.repro);
  const bool tagged = mode != ReproMode::off;
  plan.sample = plan.request.directives.sample.value_or(0);
  if (auto error = choose_maker(gateway, plan, mode)) return refuse(std::move(*error));

  const bool recording = gateway.recording != Recording::off;
  const auto policy =
      recording ? CachePolicy::all : route.cache.value_or(plan.settings->config.cache.policy);
  const auto& directives = plan.request.directives.cache;
  const bool cacheable =
      gateway.store && is_cacheable(plan, policy, tagged, recording) && !directives.no_store;
  plan.store = cacheable;
  // While recording, what is recorded stays; while replaying, nothing else may answer.
  plan.look_up = cacheable && !directives.no_cache;
  if (gateway.recording == Recording::replay) plan.look_up = true;

  if (plan.engine) {
    const auto error = build_local(gateway, plan, request, tagged);
    if (error && mode == ReproMode::preferred && !plan.route->choices.empty()) {
      plan.engine = nullptr;  // it cannot take this request; preferred means that the upstream may
      plan.dropped.clear();
    } else if (error) {
      return refuse(*error);
    }
  }
  if (!plan.engine) {
    if (auto error = key_upstream(gateway, plan, request, cacheable))
      return refuse(std::move(*error));
  }
  return plan;
}

}  // namespace fixpoint
