#include "gateway/api/generate.hpp"

#include <chrono>
#include <utility>

#include "cache/base/digest.hpp"
#include "gateway/api/job.hpp"
#include "gateway/api/local_answer.hpp"
#include "gateway/api/openai_stream.hpp"
#include "gateway/api/plan.hpp"
#include "gateway/api/upstream_answer.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/sse.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

using CacheResult = GatewayMetrics::CacheResult;

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

// Headers that say what the gateway did. Answers may depend on who asks, so shared caches on the
// way must not keep them.
Headers gateway_headers(const Plan& plan, const std::string& cache_status,
                        const std::string& generation) {
  Headers headers;
  headers.add("Cache-Status", cache_status);
  headers.add("Cache-Control", "private");
  headers.add("Vary", "Authorization, x-fixpoint-sample, x-fixpoint-repro");
  if (!plan.key.hex.empty()) headers.add("x-fixpoint-key", plan.key.name());
  if (!generation.empty()) headers.add("x-fixpoint-generation", generation);
  if (plan.reproducible) headers.add("x-fixpoint-repro", "reproducible");
  return headers;
}

void add_all(Headers& into, const Headers& from) {
  for (const auto& field : from) {
    if (!into.find(field.name)) into.add(field.name, field.value);
  }
}

Task<int> refuse_request(ResponseWriter& writer, const ApiError& error,
                         const std::string& request_id) {
  Response response = to_response(error);
  response.headers.add("x-request-id", request_id);
  co_await writer.send(response);
  co_return error.status;
}

// Writes an answer's events in the form that this client asked for.
class Delivery {
 public:
  Delivery(const Plan& plan, ResponseWriter& writer, Headers headers, const std::string& request_id)
      : plan_(plan), writer_(writer), headers_(std::move(headers)), request_id_(request_id) {}

  int status() const { return status_; }

  // True: the answer has ended.
  Task<bool> deliver(const AnswerEvent& event) {
    if (const auto* head = std::get_if<AnswerHead>(&event)) {
      add_all(headers_, head->headers);
      co_return false;
    }
    if (const auto* chunk = std::get_if<AnswerChunk>(&event)) {
      if (!plan_.request.stream) co_return false;
      const bool alive = co_await write_chunk(chunk->data);
      co_return !alive;
    }
    if (const auto* complete = std::get_if<AnswerComplete>(&event)) {
      co_await finish(*complete);
    } else {
      co_await fail(std::get<AnswerFailure>(event));
    }
    co_return true;
  }

  Task<void> finish(const AnswerComplete& complete) {
    if (!plan_.request.stream) {
      Response response;
      response.headers = final_headers();
      response.headers.set("x-fixpoint-generation", complete.generation);
      response.body = complete.body;
      const auto sent = co_await writer_.send(response);
      status_ = sent ? 200 : 499;
      co_return;
    }
    if (!streamed_) {  // made or stored in the plain form
      const auto answer = Json::parse(*complete.body, nullptr, false);
      for (const auto& chunk : split_answer(plan_.request.endpoint, answer)) append(chunk);
    }
    append_sse(pending_, "[DONE]");
    const bool alive = co_await flush();
    if (!alive) co_return;
    const auto finished = co_await writer_.finish();
    status_ = finished ? 200 : 499;
  }

  Task<void> fail(const AnswerFailure& failure) {
    status_ = failure.status;
    if (writer_.started()) {  // the status line is gone: an error event, and no [DONE]
      append_sse(pending_, failure.body);
      const bool alive = co_await flush();
      if (!alive) co_return;
      const auto finished = co_await writer_.finish();
      if (!finished) status_ = 499;
      co_return;
    }
    Response response;
    response.status = failure.status;
    response.headers = final_headers();
    response.headers.remove("x-fixpoint-generation");  // nothing was generated
    for (const auto& field : failure.headers) response.headers.set(field.name, field.value);
    response.body = std::make_shared<const std::string>(failure.body);
    const auto sent = co_await writer_.send(response);
    if (!sent) status_ = 499;
  }

 private:
  Task<bool> write_chunk(std::string_view data) {
    streamed_ = true;
    append(data);
    const bool alive = co_await flush();
    co_return alive;
  }

  // Usage is for those who asked; the gateway itself may have asked the upstream for it.
  void append(std::string_view chunk) {
    if (!plan_.request.include_usage && is_usage_chunk(chunk)) return;
    append_sse(pending_, chunk);
  }

  Task<bool> flush() {
    if (!writer_.started()) {
      Response head;
      head.content_type = "text/event-stream; charset=utf-8";
      head.headers = final_headers();
      head.headers.add("X-Accel-Buffering", "no");  // nginx in front must not collect the stream
      const auto begun = co_await writer_.begin(head);
      if (!begun) {
        status_ = 499;
        co_return false;
      }
    }
    if (pending_.empty()) co_return true;
    const auto written = co_await writer_.write(pending_);
    pending_.clear();
    if (!written) status_ = 499;
    co_return written.has_value();
  }

  // The upstream's own request id where there is one: it is what its support asks for.
  Headers final_headers() const {
    Headers headers = headers_;
    if (!headers.find("x-request-id")) headers.add("x-request-id", request_id_);
    return headers;
  }

  const Plan& plan_;
  ResponseWriter& writer_;
  Headers headers_;
  const std::string& request_id_;
  std::string pending_;
  bool streamed_ = false;  // chunks came
  int status_ = 200;
};

struct Lookup {
  std::optional<Entry> entry;
  std::string forward = "miss";  // RFC 9211's fwd parameter, and detail
  bool failed = false;
};

Lookup look_up(Gateway& gateway, const Plan& plan) {
  Lookup result;
  auto found = gateway.store->get(plan.key);
  if (!found) {
    log_warning("cache: " + found.error().message);
    result.forward = "miss; detail=store-error";
    result.failed = true;
    return result;
  }
  if (!*found) return result;
  const auto& max_age = plan.request.directives.cache.max_age_s;
  if (max_age && (now_ms() - (*found)->created_ms) / 1000 > *max_age) {
    result.forward = "stale";
    return result;
  }
  result.entry = std::move(**found);
  return result;
}

std::shared_ptr<AnswerJob> make_job(Gateway& gateway, const Plan& plan,
                                    std::shared_ptr<AnswerFlight> flight, bool shared) {
  auto job = std::make_shared<AnswerJob>(gateway);
  job->flight = std::move(flight);
  job->shared = shared;
  job->store = plan.store;
  job->asked_logprobs = plan.request.wants_logprobs;
  job->endpoint = plan.request.endpoint;
  job->key = plan.key;
  auto& record = job->record;
  record.id = new_generation_id();
  record.created_ms = now_ms();
  record.prompt_hash = sha256_hex(plan.local ? plan.local->prompt_text : plan.key.material);
  record.endpoint = endpoint_name(plan.request.endpoint);
  record.requested_model = plan.request.model;
  record.provider = plan.upstream ? plan.upstream->name : "local";
  record.route = plan.route->model;
  record.sample = plan.sample;
  return job;
}

// Hands the job to its maker. The plan's local request is moved out.
void start(Gateway& gateway, Plan& plan, const Request& request, net::io_context& core,
           std::shared_ptr<AnswerJob> job) {
  if (plan.engine) {
    start_local_answer(*plan.engine, std::move(*plan.local), std::move(job));
    return;
  }
  const bool ask_for_usage = plan.request.stream && plan.store && !plan.request.include_usage;
  auto call = build_upstream_call(*plan.upstream, request, plan.request.endpoint,
                                  std::move(plan.body), ask_for_usage);
  if (!call) {
    job->fail(call.error());
    return;
  }
  auto& client = gateway.upstream(plan.upstream->name, core);
  start_upstream_answer(core, client, std::move(*call), std::move(job));
}

// Where a request's answer comes from.
struct Source {
  AnswerFlight::EventPtr stored;  // a hit; else reader is set
  std::unique_ptr<AnswerFlight::Reader> reader;
  std::string cache_status, generation;
  std::int64_t age_s = 0;
};

Source from_entry(Gateway& gateway, const Entry& entry) {
  gateway.metrics.count_cache(CacheResult::hit);
  Source source;
  source.stored = std::make_shared<const AnswerEvent>(AnswerComplete{entry.body, entry.generation});
  source.cache_status = "fixpoint; hit";
  source.generation = entry.generation;
  source.age_s = std::max<std::int64_t>(0, (now_ms() - entry.created_ms) / 1000);
  return source;
}

// Looks the answer up, joins the flight that is making it, or starts making it.
ApiResult<Source> acquire(Gateway& gateway, Plan& plan, const Request& request,
                          net::io_context& core, const Wake& wake) {
  Lookup found;
  if (plan.look_up) {
    found = look_up(gateway, plan);
    if (found.entry) return from_entry(gateway, *found.entry);
  } else {
    found.forward = plan.store ? "request" : "bypass";
  }
  if (plan.request.directives.cache.only_if_cached) {
    gateway.metrics.count_cache(CacheResult::miss);
    auto error = api_error(504, "invalid_request_error", "cache_miss",
                           "only-if-cached: there is no stored answer for " + plan.key.name());
    error.headers = gateway_headers(plan, "fixpoint; fwd=" + found.forward, {});
    return refuse(std::move(error));
  }

  Source source;
  source.cache_status = "fixpoint; fwd=" + found.forward;
  AnswerFlights::Joined joined;
  if (plan.look_up) {
    joined = gateway.flights.join(plan.key.name(), wake);
  } else {
    joined.flight = std::make_shared<AnswerFlight>(false);
    joined.reader = joined.flight->join(wake);
    joined.leader = true;
  }
  source.reader = std::move(joined.reader);
  if (!joined.leader) {
    gateway.metrics.count_cache(CacheResult::joined);
    source.cache_status += "; collapsed";
    return source;
  }
  // Between the look-up and the join another flight may have ended: its answer is in the store.
  if (plan.look_up && !found.failed) {
    const auto again = look_up(gateway, plan);
    if (again.entry) {
      gateway.flights.remove(plan.key.name(), joined.flight);
      joined.flight->publish(AnswerComplete{again.entry->body, again.entry->generation});
      joined.flight->close();
      return from_entry(gateway, *again.entry);
    }
  }
  gateway.metrics.count_cache(!plan.look_up  ? CacheResult::bypass
                              : found.failed ? CacheResult::error
                                             : CacheResult::miss);
  auto job = make_job(gateway, plan, joined.flight, plan.look_up);
  source.generation = job->record.id;
  start(gateway, plan, request, core, std::move(job));
  return source;
}

}  // namespace

Task<int> generate(Gateway& gateway, Endpoint endpoint, const Request& request,
                   ResponseWriter& writer, const std::string& request_id) {
  auto plan = make_plan(gateway, endpoint, request);
  if (!plan) {
    const int status = co_await refuse_request(writer, plan.error(), request_id);
    co_return status;
  }
  const auto executor = co_await net::this_coro::executor;
  auto& core = static_cast<net::io_context&>(executor.context());
  Waiter waiter(executor);
  auto source = acquire(gateway, *plan, request, core, waiter.wake());
  if (!source) {
    const int status = co_await refuse_request(writer, source.error(), request_id);
    co_return status;
  }

  Headers headers = gateway_headers(*plan, source->cache_status, source->generation);
  if (source->stored) headers.add("Age", std::to_string(source->age_s));
  Delivery delivery(*plan, writer, std::move(headers), request_id);
  if (source->stored) {
    co_await delivery.deliver(*source->stored);
    co_return delivery.status();
  }
  while (true) {
    const auto event = source->reader->next();
    if (event) {
      const bool ended = co_await delivery.deliver(*event);
      if (ended) break;
    } else if (source->reader->closed()) {
      const auto failure = to_failure(
          api_error(500, "server_error", "no_answer", "The answer ended without a result"));
      co_await delivery.fail(failure);
      break;
    } else {
      co_await waiter.sleep();
    }
  }
  co_return delivery.status();
}

}  // namespace fixpoint
