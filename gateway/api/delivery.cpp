#include "gateway/api/delivery.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "gateway/api/pace.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/dialects/answer_form.hpp"
#include "gateway/dialects/translate.hpp"
#include "gateway/http/sse.hpp"
#include "gateway/json_guard.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

// DerivedForms of an entry: the text of its stream.
constexpr int kStreamForm = 0, kStreamWithUsageForm = 1;
// Bytes that wait before they are written although more events are at hand.
constexpr std::size_t kMaxPending = 64 * 1024;
// Everything on the way sees that the stream lives: a comment, which clients skip, or the event
// that Anthropic has for it.
std::string_view heartbeat_of(Endpoint endpoint) {
  return endpoint == Endpoint::messages ? "event: ping\ndata: {\"type\": \"ping\"}\n\n" : ":\n\n";
}

bool is_rate_limit(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"x-ratelimit-", "anthropic-ratelimit-"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view prefix) {
    return name.size() > prefix.size() &&
           equal_ignoring_case(name.substr(0, prefix.size()), prefix);
  });
}

std::vector<SseEvent> events_of(const Plan& plan, const std::string& body) {
  auto answer = Json::parse(body, nullptr, false);
  if (answer.is_discarded()) answer = parse_answer(body).value_or(Json());  // half a surrogate pair
  return split_answer(plan.request.endpoint, answer, plan.request.include_usage);
}

}  // namespace

Delivery::Delivery(const Plan& plan, ResponseWriter& writer, Exchange& exchange, Headers headers)
    : plan_(plan), writer_(writer), exchange_(exchange), headers_(std::move(headers)) {}

Task<void> Delivery::replay(const Entry& entry) {
  exchange_.response_model = entry.model;
  exchange_.generation = entry.generation;
  if (!plan_.request.stream) {
    co_await send_plain(entry.body);
    co_return;
  }
  if (plan_.settings->config.cache.replay == ReplayPace::recorded) {
    co_await replay_paced(entry);
    co_return;
  }
  const int form = plan_.request.include_usage ? kStreamWithUsageForm : kStreamForm;
  auto text = entry.forms.find(form);
  if (!text) {
    std::string made;
    for (const auto& event : events_of(plan_, *entry.body))
      append_sse(made, event.data, event.event);
    text = std::make_shared<const std::string>(std::move(made));
    entry.forms.keep(form, text);
  }
  co_await send_stream(text);
}

Task<void> Delivery::replay_paced(const Entry& entry) {
  const auto executor = co_await net::this_coro::executor;
  const auto started = Clock::now();
  const auto events = events_of(plan_, *entry.body);
  const PacePlayer pace(entry, events.size());
  Timer timer(executor);
  writer_.before_cut([this, &timer] {
    stops_ = true;
    timer.cancel();
  });
  error_code ignored;
  const auto heartbeat = plan_.settings->config.server.heartbeat;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto due = started + pace.time_of(i);
    for (bool quiet = true; quiet && !stops_;) {
      const auto beat = Clock::now() + heartbeat;
      quiet = writer_.started() && heartbeat.count() > 0 && beat < due;
      timer.expires_at(quiet ? beat : due);
      co_await timer.async_wait(net::redirect_error(use_task, ignored));
      if (!quiet || stops_) continue;
      pending_ = heartbeat_of(plan_.request.endpoint);
      const bool alive = co_await flush();
      if (!alive) co_return;
    }
    if (stops_) {
      co_await end_early();
      co_return;
    }
    append_sse(pending_, events[i].data, events[i].event);
    ++events_;
    const bool alive = co_await flush();
    if (!alive) co_return;
  }
  co_await end_stream(200);
}

Task<void> Delivery::follow(AnswerFlight::Reader& reader, Waiter& waiter) {
  const auto heartbeat = plan_.settings->config.server.heartbeat;
  writer_.before_cut([this, &waiter] {
    stops_ = true;
    waiter.sleeper()->wake();
  });
  while (true) {
    if (stops_) {
      co_await end_early();
      co_return;
    }
    const auto event = reader.next();
    if (event) {
      const bool ended = co_await take(*event);
      if (ended) co_return;
      continue;
    }
    if (reader.closed()) {
      const auto error =
          api_error(500, "server_error", "no_answer", "The answer ended without a result");
      const AnswerFailure failure{error.status, {}, error.body(api_of(plan_.request.endpoint))};
      co_await fail(failure);
      co_return;
    }
    if (!pending_.empty()) {  // nothing more is at hand
      const bool alive = co_await flush();
      if (!alive) co_return;
      continue;
    }
    if (!writer_.started() || heartbeat.count() == 0) {
      co_await waiter.sleep();
      continue;
    }
    const bool quiet = co_await waiter.sleep_for(heartbeat);
    if (quiet) continue;
    pending_ = heartbeat_of(plan_.request.endpoint);
  }
}

Task<bool> Delivery::take(const AnswerEvent& event) {
  if (const auto* head = std::get_if<AnswerHead>(&event)) {
    use_head(*head);
    co_return false;
  }
  if (const auto* chunk = std::get_if<AnswerChunk>(&event)) {
    if (!plan_.request.stream) co_return false;
    ++events_;
    append(*chunk);
    if (pending_.size() < kMaxPending) co_return false;
    const bool alive = co_await flush();
    co_return !alive;
  }
  if (const auto* complete = std::get_if<AnswerComplete>(&event)) {
    co_await finish(*complete);
  } else {
    const auto& failure = std::get<AnswerFailure>(event);
    if (exchange_.cache != CacheResult::joined) {  // once: by the request that it was made for
      exchange_.generation_failed(plan_.route->config->model, failure.status);
    }
    co_await fail(failure);
  }
  co_return true;
}

void Delivery::use_head(const AnswerHead& head) {
  for (const auto& field : head.headers) {
    // The limits of the upstream's account are the gateway's business, not its tenants'.
    if (plan_.tenant && is_rate_limit(field.name)) continue;
    // An upstream's fields of these names stayed behind: they are the gateway's.
    const bool own = field.name.starts_with("x-fixpoint-") || field.name == "Cache-Status";
    if (own || !headers_.find(field.name)) headers_.set(field.name, field.value);
  }
  // The gateway's own word: a fallback's answer was found in the cache.
  if (head.headers.find("Cache-Status") && exchange_.cache != CacheResult::joined) {
    exchange_.cache = CacheResult::hit;
  }
  if (const auto* upstream = head.headers.find("x-fixpoint-upstream"))
    exchange_.upstream = *upstream;
  if (const auto* attempts = head.headers.find("x-fixpoint-attempts")) {
    std::from_chars(attempts->data(), attempts->data() + attempts->size(), exchange_.attempts);
  }
}

Task<void> Delivery::finish(const AnswerComplete& complete) {
  exchange_.prompt_tokens = static_cast<std::int64_t>(complete.prompt_tokens);
  exchange_.completion_tokens = static_cast<std::int64_t>(complete.completion_tokens);
  exchange_.cost_microdollars = complete.cost_microdollars;
  exchange_.generation = complete.generation;
  exchange_.response_model = complete.model;
  exchange_.finish_reason = complete.finish_reason;
  if (!complete.body && (!plan_.request.stream || events_ == 0)) {
    const auto error = api_error(502, "upstream_error", "upstream_invalid_response",
                                 "Another request's stream gave this answer, in pieces that could "
                                 "not be put together for certain; ask again");
    const AnswerFailure failure{
        error.status, {}, error.body(api_of(plan_.request.endpoint), exchange_.id)};
    co_await fail(failure);
    co_return;
  }
  if (!plan_.request.stream) {
    if (!complete.generation.empty()) headers_.set("x-fixpoint-generation", complete.generation);
    if (complete.cost_microdollars >= 0) {
      headers_.set("x-fixpoint-cost", format_dollars(complete.cost_microdollars));
    }
    co_await send_plain(complete.body);
    co_return;
  }
  if (events_ > 0) {
    for (const auto& event : complete.end) append(event);
  } else {  // made in the plain form
    for (const auto& event : events_of(plan_, *complete.body))
      append_sse(pending_, event.data, event.event);
  }
  co_await end_stream(200);
}

Task<void> Delivery::fail(const AnswerFailure& failure) {
  if (writer_.started() || !pending_.empty()) {  // the status line is gone, or will be at once
    const auto event =
        failure.event.value_or(error_event(plan_.request.endpoint, failure.body, events_));
    append_sse(pending_, event.data, event.event);
    co_await end_stream(failure.status);
    co_return;
  }
  Response response;
  response.status = failure.status;
  response.headers = final_headers();
  response.headers.remove("x-fixpoint-generation");  // nothing was generated
  for (const auto& field : failure.headers) {
    if (plan_.tenant && is_rate_limit(field.name)) continue;
    response.headers.set(field.name, field.value);
  }
  note_ids(response.headers);
  response.body = std::make_shared<const std::string>(failure.body);
  exchange_.answered_bytes(failure.body.size());
  const auto sent = co_await writer_.send(response);
  exchange_.status = sent ? failure.status : 499;
}

// The gateway stops and the answer is not there yet: its own fault, whatever the client sees of it.
Task<void> Delivery::end_early() {
  const auto error =
      api_error(503, "server_error", "shutting_down", "The gateway is being stopped");
  const auto body = error.body(api_of(plan_.request.endpoint), exchange_.id);
  const AnswerFailure failure{error.status, {}, body};
  exchange_.status = error.status;  // also if the client takes nothing any more
  co_await fail(failure);
  exchange_.status = error.status;
}

Task<void> Delivery::send_plain(std::shared_ptr<const std::string> body) {
  Response response;
  response.headers = final_headers();
  note_ids(response.headers);
  response.body = std::move(body);
  exchange_.answered_bytes(response.body->size());
  const auto sent = co_await writer_.send(response);
  exchange_.status = sent ? 200 : 499;
}

// A stream that is all there goes out as one piece of known length.
Task<void> Delivery::send_stream(std::shared_ptr<const std::string> events) {
  Response response = stream_head();
  response.body = std::move(events);
  exchange_.answered_bytes(response.body->size());
  const auto sent = co_await writer_.send(response);
  exchange_.status = sent ? 200 : 499;
}

// Usage is for those who asked; the gateway itself may have asked the upstream for it.
void Delivery::append(const SseEvent& event) {
  if (!plan_.request.include_usage && is_usage_chunk(plan_.request.endpoint, event.data)) return;
  append_sse(pending_, event.data, event.event);
}

Task<bool> Delivery::flush() {
  exchange_.answered_bytes(pending_.size());
  if (!writer_.started()) {
    const Response head = stream_head();
    const auto begun = co_await writer_.begin(head, pending_);
    pending_.clear();
    co_return begun.has_value();
  }
  const auto written = co_await writer_.write(pending_);
  pending_.clear();
  co_return written.has_value();
}

// With what is pending.
Task<void> Delivery::end_stream(int status) {
  if (!writer_.started()) {
    const bool alive = co_await flush();
    if (!alive) {
      exchange_.status = 499;
      co_return;
    }
  }
  exchange_.answered_bytes(pending_.size());
  const auto finished = co_await writer_.finish(pending_);
  exchange_.status = finished ? status : 499;
}

Response Delivery::stream_head() {
  Response head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = final_headers();
  note_ids(head.headers);
  head.headers.add("X-Accel-Buffering", "no");  // nginx in front must not collect the stream
  return head;
}

// Once: an answer has one head. The upstream's own request id where there is one: it is what its
// support asks for. Anthropic's SDKs read another name.
Headers Delivery::final_headers() {
  Headers headers = std::move(headers_);
  if (!headers.find("x-request-id")) headers.add("x-request-id", exchange_.id);
  if (api_of(plan_.request.endpoint) == Api::anthropic && !headers.find("request-id")) {
    headers.add("request-id", exchange_.id);
  }
  return headers;
}

// What the client is told is what it will ask about.
void Delivery::note_ids(const Headers& shown) {
  for (const char* name : {"x-request-id", "request-id"}) {
    const auto* id = shown.find(name);
    if (id && *id != exchange_.id) exchange_.upstream_request_id = *id;
  }
  if (const auto* id = shown.find("x-fixpoint-generation")) exchange_.generation = *id;
}

}  // namespace fixpoint
