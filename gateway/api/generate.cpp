#include "gateway/api/generate.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cache/base/digest.hpp"
#include "gateway/api/delivery.hpp"
#include "gateway/api/header_policy.hpp"
#include "gateway/api/job.hpp"
#include "gateway/api/local_answer.hpp"
#include "gateway/api/lookup.hpp"
#include "gateway/api/plan.hpp"
#include "gateway/api/token_estimate.hpp"
#include "gateway/api/upstream_answer.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

// Headers that say what the gateway did. Answers may depend on who asks, so shared caches on the
// way must not keep them.
Headers gateway_headers(const Gateway& gateway, const Plan& plan, std::string_view cache_status,
                        const std::string& generation) {
  Headers headers;
  headers.add("Cache-Status", std::string(cache_status));
  headers.add("Cache-Control", "private");
  headers.add("Vary", "Authorization, x-api-key, x-fixpoint-sample, x-fixpoint-repro");
  if (!plan.key.hex.empty()) headers.add("x-fixpoint-key", plan.key.name());
  if (!generation.empty()) headers.add("x-fixpoint-generation", generation);
  if (plan.reproducible) headers.add("x-fixpoint-repro", "reproducible");
  announce_dropped(plan.dropped, headers);
  if (plan.tenant) {
    for (const auto& field : gateway.tenants->rate_limit_headers(*plan.tenant)) {
      headers.add(field.name, field.value);
    }
  }
  return headers;
}

std::shared_ptr<AnswerJob> make_job(Gateway& gateway, const Plan& plan, const Exchange& exchange,
                                    std::shared_ptr<AnswerFlight> flight, bool shared) {
  auto job = std::make_shared<AnswerJob>(gateway);
  job->settings = plan.settings;
  job->tenant = plan.tenant;
  job->flight = std::move(flight);
  if (shared) job->flight_key = plan.key.name();
  job->request_id = exchange.id;
  job->endpoint = plan.request.endpoint;
  job->store = plan.store;
  job->look_up = plan.look_up;
  job->max_age_s = plan.request.directives.cache.max_age_s;
  job->asked_logprobs = plan.request.wants_logprobs;
  job->key.kind = plan.key.kind;
  job->key.hex = plan.key.hex;
  if (plan.store) job->key.material = plan.key.material;
  job->key.asked = plan.key.asked;
  auto& record = job->record;
  record.created_ms = now_ms();
  record.id = new_generation_id(record.created_ms);
  record.prompt_hash = plan.local ? sha256_hex(plan.local->prompt_text) : plan.key.hex;
  record.endpoint = endpoint_name(plan.request.endpoint);
  record.requested_model = plan.request.model;
  record.provider = plan.engine ? "local" : plan.upstreams.front()->config.name;
  record.route = plan.route->config->model;
  record.sample = plan.sample;
  return job;
}

// Hands the job to its maker. The plan's local request and upstreams are moved out.
void start(Plan& plan, const RequestPtr& request, const Exchange& exchange, net::io_context& core,
           std::shared_ptr<AnswerJob> job) {
  if (plan.engine) {
    if (plan.request.endpoint != plan.local_endpoint) {
      job->translator = make_translator(plan.request.endpoint, plan.local_endpoint, plan.tree);
    }
    start_local_answer(*plan.engine, plan.local_endpoint, std::move(*plan.local), std::move(job));
    return;
  }
  UpstreamWork work;
  work.settings = plan.settings;
  work.tenant = plan.tenant;
  work.upstreams = std::move(plan.upstreams);
  work.endpoint = plan.request.endpoint;
  work.request = request;
  work.translation = std::move(plan.translation);
  work.model = plan.request.model;
  work.sample = plan.sample;
  work.stream = plan.request.stream;
  work.wants_usage = plan.request.include_usage;
  work.wants_logprobs = plan.request.wants_logprobs;
  work.directives_in_metadata = plan.request.directives.in_metadata;
  // Only where spans are exported: else the caller's own span is the parent of the upstream's.
  if (job->gateway.spans) work.trace = exchange.trace;
  start_upstream_answer(core, std::move(work), std::move(job));
}

// Where a request's answer comes from.
struct Source {
  EntryPtr stored;  // a hit; else reader is set
  std::unique_ptr<AnswerFlight::Reader> reader;
  std::string cache_status, generation;
  std::optional<ApiError> error;  // neither
};

void use_entry(EntryPtr entry, Exchange& exchange, Source& source) {
  exchange.cache = CacheResult::hit;
  source.cache_status = "fixpoint; hit";
  source.generation = entry->generation;
  source.stored = std::move(entry);
}

ApiError cache_miss(const Gateway& gateway, const Plan& plan, const std::string& forward) {
  if (gateway.recording == Recording::replay) {
    const auto differences = gateway.recordings->explain_miss(plan.key);
    return api_error(
        504, "invalid_request_error", "recording_missing",
        "There is no recording for " + plan.key.name() +
            (differences.empty() ? " and none to compare it with" : ". " + differences));
  }
  auto error = api_error(504, "invalid_request_error", "cache_miss",
                         "only-if-cached: there is no stored answer for " + plan.key.name());
  error.headers = gateway_headers(gateway, plan, "fixpoint; fwd=" + forward, {});
  return error;
}

// Whether the answer counts towards limits of the key. Counting tokens costs none.
bool is_limited(const Plan& plan) {
  return plan.tenant && plan.tenant->key.policy.limits_tokens() &&
         plan.request.endpoint != Endpoint::count_tokens;
}

// Holds what the answer is expected to take of the key's limits, where it has any.
ApiResult<TokenHoldPtr> hold_tokens(const Gateway& gateway, const Plan& plan,
                                    const Request& request) {
  if (!is_limited(plan)) return nullptr;
  // Named as the job will be priced: for whichever upstream answers.
  std::vector<std::string_view> models;
  for (const auto& upstream : plan.upstreams) {
    models.push_back(upstream->model_name(plan.request.model));
    if (!plan.settings->has_price(models.back())) models.back() = plan.request.model;
  }
  if (plan.engine) models.push_back(plan.request.model);
  return gateway.tenants->hold(*plan.tenant, models, expected_tokens(plan.request, request.body));
}

// Looks the answer up, joins the flight that is making it, or starts making it.
Task<void> acquire(Gateway& gateway, Plan& plan, const RequestPtr& request, Exchange& exchange,
                   const SleeperPtr& sleeper, Source& source) {
  std::string forward = plan.store ? "request" : "bypass";
  bool store_failed = false, unwanted = false, at_once = true;
  const Freshness freshness{plan.settings->config.cache.ttl,
                            plan.request.directives.cache.max_age_s};
  if (plan.look_up) {
    auto found = co_await look_up(gateway, plan.key, freshness);
    if (found.entry) {
      use_entry(std::move(found.entry), exchange, source);
      co_return;
    }
    forward = std::move(found.forward);
    store_failed = found.failed;
    unwanted = found.unwanted;
    at_once = found.at_once;
  }
  if (plan.request.directives.cache.only_if_cached || gateway.recording == Recording::replay) {
    exchange.cache = CacheResult::miss;
    source.error = cache_miss(gateway, plan, forward);
    co_return;
  }

  source.cache_status = "fixpoint; fwd=" + forward;
  // Before others can join: a key that has nothing left fails its own request alone.
  TokenHoldPtr hold;
  const bool joins = plan.look_up && is_limited(plan) && gateway.flights.has(plan.key.name());
  if (!joins) {
    auto held = hold_tokens(gateway, plan, *request);
    if (!held) {
      source.error = std::move(held.error());
      co_return;
    }
    hold = std::move(*held);
  }
  AnswerFlights::Joined joined;
  if (plan.look_up) {
    joined = gateway.flights.join(plan.key.name(), sleeper);
  } else {
    joined.flight = std::make_shared<AnswerFlight>(false);
    joined.reader = joined.flight->join(sleeper);
    joined.leader = true;
  }
  source.reader = std::move(joined.reader);
  if (!joined.leader) {
    exchange.cache = CacheResult::joined;
    source.cache_status += "; collapsed";
    co_return;
  }
  auto job = make_job(gateway, plan, exchange, joined.flight, plan.look_up);
  job->replaces = !plan.look_up || unwanted;
  // Between the look-up and the join another flight may have ended: its answer is in the store.
  // Only for stores that answer at once: a leader that waits here could leave, and fail those who
  // joined.
  if (plan.look_up && !store_failed && at_once) {
    auto again = co_await look_up(gateway, plan.key, freshness);
    if (again.entry) {
      job->publish_stored(*again.entry);
      source.reader.reset();
      use_entry(std::move(again.entry), exchange, source);
      co_return;
    }
  }
  exchange.cache = !plan.look_up  ? CacheResult::bypass
                   : store_failed ? CacheResult::error
                                  : CacheResult::miss;
  if (joins) {  // the other flight ended just then, without an answer to keep
    auto held = hold_tokens(gateway, plan, *request);
    if (!held) {
      // Whoever joined meanwhile has a key of its own, and nothing to learn of this one's.
      job->fail(api_error(503, "server_error", "leader_refused",
                          "The request that was to make this answer was refused; ask again"));
      source.reader.reset();
      source.error = std::move(held.error());
      co_return;
    }
    hold = std::move(*held);
  }
  job->hold = std::move(hold);
  exchange.upstream = job->record.provider;
  if (gateway.log) source.generation = job->record.id;
  const auto executor = co_await net::this_coro::executor;
  auto& core = static_cast<net::io_context&>(executor.context());
  start(plan, request, exchange, core, std::move(job));
}

// What a key's budgets could not be kept for.
std::optional<ApiError> uncounted(const Plan& plan, Recording recording) {
  if (!plan.tenant || plan.engine) return {};
  const auto& policy = plan.tenant->key.policy;
  if (policy.limits_tokens() && plan.request.find("background") == "true") {
    return bad_request(
        "'background' cannot be used with this gateway key: what it generates "
        "later would not count towards the key's limits",
        "background", "unsupported_parameter");
  }
  if (plan.request.endpoint == Endpoint::count_tokens || recording == Recording::replay) return {};
  const auto& settings = *plan.settings;
  const auto& model = plan.request.model;
  const auto priced = [&](const UpstreamPtr& upstream) {
    return settings.has_price(upstream->model_name(model));
  };
  if (policy.monthly_cost == 0 || settings.has_price(model) ||
      std::all_of(plan.upstreams.begin(), plan.upstreams.end(), priced)) {
    return {};
  }
  auto error = api_error(403, "invalid_request_error", "no_price",
                         "This gateway key has a budget in money, and the gateway's 'prices' have "
                         "none for the model '" +
                             model + "'");
  error.param = "model";
  return error;
}

}  // namespace

Task<void> send_error(const ApiError& error, Api api, ResponseWriter& writer, Exchange& exchange) {
  Response response = to_response(error, api, exchange.id);
  response.headers.set("x-request-id", exchange.id);
  if (api == Api::anthropic) response.headers.set("request-id", exchange.id);
  exchange.answered_bytes(response.body->size());
  const auto sent = co_await writer.send(response);
  exchange.status = sent ? error.status : 499;
}

Task<void> generate(Gateway& gateway, Endpoint endpoint, const RequestPtr& request,
                    ResponseWriter& writer, Exchange& exchange) {
  const Api api = api_of(endpoint);
  auto read = read_request(endpoint, *request);
  if (!read) {
    co_await send_error(read.error(), api, writer, exchange);
    co_return;
  }
  exchange.model = read->model;
  if (exchange.tenant) {
    const auto admitted = gateway.tenants->admit(*exchange.tenant, read->model);
    if (!admitted) {
      co_await send_error(admitted.error(), api, writer, exchange);
      co_return;
    }
  }
  auto plan = make_plan(gateway, exchange.tenant, std::move(*read), *request);
  if (!plan) {
    co_await send_error(plan.error(), api, writer, exchange);
    co_return;
  }
  if (const auto refused = uncounted(*plan, gateway.recording)) {
    co_await send_error(*refused, api, writer, exchange);
    co_return;
  }
  const auto executor = co_await net::this_coro::executor;
  Waiter waiter(executor);
  Source source;
  co_await acquire(gateway, *plan, request, exchange, waiter.sleeper(), source);
  if (source.error) {
    co_await send_error(*source.error, api, writer, exchange);
    co_return;
  }

  Headers headers = gateway_headers(gateway, *plan, source.cache_status, source.generation);
  if (source.stored) {
    headers.add("Age", age_of(*source.stored));
    if (exchange.tenant) gateway.tenants->charge(*exchange.tenant, exchange.model, {});
    Delivery delivery(*plan, writer, exchange, std::move(headers));
    co_await delivery.replay(*source.stored);
    co_return;
  }
  // Tokens are paid for by the request that made them; those who joined it made a request.
  if (exchange.tenant && exchange.cache == CacheResult::joined) {
    gateway.tenants->charge(*exchange.tenant, exchange.model, {});
  }
  Delivery delivery(*plan, writer, exchange, std::move(headers));
  co_await delivery.follow(*source.reader, waiter);
}

}  // namespace fixpoint
