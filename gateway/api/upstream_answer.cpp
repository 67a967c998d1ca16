#include "gateway/api/upstream_answer.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <string_view>
#include <utility>

#include "gateway/api/header_policy.hpp"
#include "gateway/api/lookup.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/sse.hpp"
#include "gateway/json_guard.hpp"
#include "gateway/log.hpp"
#include "gateway/upstream/retry.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

// Events that the relay may be ahead of the fastest reader before it stops reading from the
// upstream.
constexpr std::size_t kMaxAhead = 256;
// Events of one answer; each costs about 100 bytes beside its own text until the flight ends. The
// longest answers of today's models are below it.
constexpr std::size_t kMaxEvents = 200'000;
// Reads after an answer's end marker, and the time for them, so that a well-behaved connection
// returns to the pool.
constexpr int kReadsAfterEnd = 4;
constexpr milliseconds kTimeAfterEnd{500};
// With another upstream to try, one that wants to be left alone for longer than this is left.
constexpr milliseconds kPatience{1'000};

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_event_stream(const Headers& headers) {
  constexpr std::string_view kType = "text/event-stream";
  const auto* type = headers.find("content-type");
  return type && type->size() >= kType.size() &&
         equal_ignoring_case(std::string_view(*type).substr(0, kType.size()), kType);
}

// Log-probabilities that the client did not ask for: null in a choice, an empty array in Responses'
// texts and events, as they are where nobody asks.
void take_out_logprobs(Json& value) {
  if (value.is_array()) {
    for (auto& item : value) take_out_logprobs(item);
  }
  if (!value.is_object()) return;
  const bool is_choice = value.contains("finish_reason");
  for (auto& [name, member] : value.items()) {
    if (name == "logprobs") {
      member = is_choice ? Json() : Json::array();
    } else if (member.is_structured()) {
      take_out_logprobs(member);
    }
  }
}

Headers retry_after_header(milliseconds wait) {
  Headers headers;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  headers.add("Retry-After", std::to_string(std::max<std::int64_t>(seconds, 1)));
  return headers;
}

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(net::io_context& core, UpstreamWork work, std::shared_ptr<AnswerJob> job)
      : core_(core),
        work_(std::move(work)),
        job_(std::move(job)),
        progress_(core.get_executor()),
        pause_(core.get_executor()) {
    job_->gateway.relays.fetch_add(1);
  }
  ~Relay() { job_->gateway.relays.fetch_sub(1); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void start() {
    auto self = shared_from_this();
    // Weak: the flight must not keep its own maker alive.
    const std::weak_ptr<Relay> weak = self;
    job_->flight->on_abandoned([weak, executor = core_.get_executor()] {
      net::post(executor, [weak] {
        const auto alive = weak.lock();
        if (!alive) return;
        alive->abandoned_ = true;
        alive->cancel_.emit(net::cancellation_type::terminal);
      });
    });
    job_->flight->on_progress(progress_.wake());
    auto done = [self](std::exception_ptr error) { self->ended(error); };
    net::co_spawn(core_, run(), net::bind_cancellation_slot(cancel_.slot(), std::move(done)));
  }

 private:
  // Why the last attempt gave no answer, and what may follow it.
  struct Failed {
    AnswerFailure failure;
    std::string reason;
    bool may_retry = false;            // here or at the next upstream
    bool may_fall_back = false;        // at the next upstream
    std::optional<milliseconds> wait;  // before the next attempt; unset: not here again
  };

  Task<void> run() {
    const auto& first = work_.upstreams.front()->config;
    if (first.total_timeout.count() > 0) deadline_ = Clock::now() + first.total_timeout;
    for (at_ = 0; at_ < work_.upstreams.size(); ++at_) {
      if (at_ > 0) {
        co_await find_stored();
        if (over_) co_return;
      }
      co_await try_upstream();
      if (over_) co_return;
    }
    end_failed();
  }

  Upstream& upstream() const { return *work_.upstreams[at_]; }
  bool is_last() const { return at_ + 1 == work_.upstreams.size(); }

  // A fallback's answers have a key of their own, under which there may be one already. A recording
  // is of the request, whoever answers.
  Task<void> find_stored() {
    if (job_->key.hex.empty() || job_->gateway.recording != Recording::off) co_return;
    job_->key = key_at(job_->gateway, work_, upstream());
    if (!job_->look_up) co_return;
    const Freshness freshness{work_.settings->config.cache.ttl, job_->max_age_s};
    auto found = co_await look_up(job_->gateway, job_->key, freshness);
    if (!found.entry) co_return;
    over_ = true;
    Headers headers;
    headers.set("x-fixpoint-upstream", upstream().config.name);
    headers.set("x-fixpoint-attempts", std::to_string(job_->record.attempts));
    headers.set("x-fixpoint-key", job_->key.name());
    job_->flight->publish(AnswerHead{std::move(headers)});
    job_->publish_stored(*found.entry);
  }

  // All attempts at one upstream. Afterwards the answer is over, or the next upstream may try.
  Task<void> try_upstream() {
    std::uint64_t failures = 0, at_once = 0;
    const std::uint64_t most_at_once = upstream().keys ? upstream().keys->size() : 1;
    logprobs_refused_ = again_at_once_ = false;
    while (true) {
      co_await attempt();
      if (over_) co_return;
      if (abandoned_ || !(failed_.may_retry || failed_.may_fall_back)) {
        end_failed();
        co_return;
      }
      if (!failed_.may_retry) co_return;
      if (std::exchange(again_at_once_, false) && ++at_once <= most_at_once) continue;
      if (++failures > upstream().config.retries || !failed_.wait) co_return;
      if (!is_last() && *failed_.wait > kPatience) co_return;
      if (Clock::now() + *failed_.wait >= deadline_) co_return;
      upstream().metrics.count_retry();
      pause_.expires_after(*failed_.wait);
      waited_ += *failed_.wait;
      error_code ignored;
      co_await pause_.async_wait(net::redirect_error(use_task, ignored));
    }
  }

  // One call. Sets failed_ unless the answer is over.
  Task<void> attempt() {
    const auto queued_at = Clock::now();
    auto slot = co_await upstream().admission.acquire(deadline_);
    waited_ += Clock::now() - queued_at;
    if (!slot) {
      auto error = api_error(429, "rate_limit_error", "upstream_overloaded", slot.error().message);
      error.headers = retry_after_header(milliseconds(1000));
      set_failed(error, true, {});
      co_return;
    }
    auto permit = upstream().breaker.allow();
    if (!permit) {
      auto error = api_error(503, "upstream_error", "upstream_unavailable",
                             "Upstream '" + upstream().config.name +
                                 "' failed repeatedly and is not called for a while");
      error.headers = retry_after_header(upstream().breaker.opens_in());
      set_failed(error, true, {});
      co_return;
    }
    permit_ = std::move(permit);
    slot_ = std::move(*slot);
    co_await call_upstream();
    response_.reset();
    call_ = {};
    permit_.reset();
    slot_ = {};
  }

  Task<void> call_upstream() {
    const bool inject = work_.settings->config.log.logprobs == LogprobCapture::inject &&
                        !logprobs_refused_ && !upstream().refuses_logprobs(work_.model);
    auto call = build_upstream_call(work_, upstream(), inject);
    if (!call) {
      // Not the first upstream: its failure is what the client should hear of.
      if (at_ == 0) set_failed(call.error(), false, {});
      failed_.may_retry = false;
      failed_.may_fall_back = at_ > 0;
      co_return;
    }
    call_ = std::move(*call);
    if (deadline_ != Clock::time_point::max()) call_.request.deadline = deadline_;
    job_->translator = std::move(call_.translator);
    assembler_ = make_assembler(call_.endpoint);
    parser_ = SseParser();
    done_seen_ = stream_over_ = false;
    ++job_->record.attempts;
    job_->record.provider = upstream().config.name;

    const auto sent_at = Clock::now();
    auto sent = co_await upstream().client(core_).send(call_.request);
    waited_ += Clock::now() - sent_at;
    if (!sent) {
      if (!abandoned_) upstream().metrics.count_failure();
      judge(sent.error());
      set_failed(sent.error());
      co_return;
    }
    response_ = std::move(*sent);
    const int status = response_->status();
    upstream().metrics.count_status(status);
    if (status == 200 && assembler_ && is_event_stream(response_->headers())) {
      co_await relay_stream();
    } else {
      co_await relay_plain(status);
    }
  }

  Task<void> relay_plain(int status) {
    const auto read_at = Clock::now();
    auto body = co_await UpstreamClient::read_all(*response_);
    waited_ += Clock::now() - read_at;
    if (!body) {
      judge(body.error());
      set_failed(body.error());
      co_return;
    }
    if (status != 200) {
      refused(status, *body);
      co_return;
    }
    const auto answer = parse_json(*body, kAnswerLimits);
    const auto problem = answer ? problem_of(call_.endpoint, *answer) : answer.error().message;
    if (problem == kErrorProblem) {
      const Error error{ErrorCode::protocol, "answered HTTP 200 with an error"};
      judge(error);
      set_failed(error);
      failed_.failure.body = translate_error(api_of(work_.endpoint), 502, *body, job_->request_id);
      co_return;
    }
    if (!problem.empty()) {
      const Error error{ErrorCode::protocol, "answered HTTP 200 with a body that " + problem};
      judge(error);
      set_failed(error);
      co_return;
    }
    publish_head();
    complete(std::move(*body), std::move(*answer), {{}, "[DONE]"});
  }

  // A status other than 200, with its body.
  void refused(int status, const std::string& body) {
    if (status < 400) {  // nothing that a client could take for an answer
      const Error error{ErrorCode::protocol, "answered HTTP " + std::to_string(status)};
      judge(error);
      set_failed(error);
      return;
    }
    const Headers& headers = response_->headers();
    const auto now = std::chrono::system_clock::now();
    if (permit_ && is_upstream_fault(status)) {
      auto asked = status == 503 ? retry_after(headers, now) : std::nullopt;
      if (asked) asked = std::min(*asked, kMaxRetryWait);
      permit_->failed(asked);
    } else if (permit_) {
      permit_->succeeded();
    }
    failed_.failure = {status, visible_headers(headers),
                       translate_error(api_of(work_.endpoint), status, body, job_->request_id)};
    failed_.reason = "HTTP " + std::to_string(status);
    failed_.may_retry = may_retry(status, headers);
    // The gateway's own key or name for the model is what these refuse.
    failed_.may_fall_back = call_.key && (status == 401 || status == 403 || status == 404);
    failed_.wait = retry_wait(job_->record.attempts, &headers, now, retry_random());
    if (status == 400 && call_.strip_logprobs) {
      // The gateway's own wish may be what was refused: once more without it. A second refusal is
      // the client's.
      logprobs_refused_ = true;
      job_->no_logprobs = "the upstream refuses them for this model";
      failed_.may_retry = again_at_once_ = true;
    }
    if (status == 429 && call_.key && upstream().keys->size() > 1) {
      const auto rest = retry_after(headers, now).value_or(kMaxRetryWait);
      upstream().keys->rate_limited(call_.key->index, Clock::now() + rest);
      again_at_once_ = upstream().keys->resting() < upstream().keys->size();
      if (again_at_once_) upstream().metrics.count_key_rotation();
    }
  }

  Task<void> relay_stream() {
    std::vector<SseEvent> events;
    while (!done_seen_) {
      const auto read_at = Clock::now();
      auto bytes = co_await response_->read_some();
      waited_ += Clock::now() - read_at;
      if (!bytes) {
        stream_failed(bytes.error());
        co_return;
      }
      if (bytes->empty()) break;
      events.clear();
      const auto fed = parser_.feed(*bytes, events);
      for (auto& event : events) {
        take(event);
        if (stream_over_) co_return;
      }
      if (!fed) {
        stream_failed(fed.error());
        co_return;
      }
      const auto ahead_at = Clock::now();
      while (!done_seen_ && job_->flight->ahead(kMaxAhead)) {
        co_await progress_.sleep();
      }
      waited_ += Clock::now() - ahead_at;
    }
    if (!done_seen_) {
      stream_failed({ErrorCode::closed, "the stream ended without its end marker"});
      co_return;
    }
    // The call is over; only the connection's way back to the pool is left.
    slot_ = {};
    auto give_up = [weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (self && !error) self->cancel_.emit(net::cancellation_type::terminal);
    };
    pause_.expires_after(kTimeAfterEnd);
    pause_.async_wait(std::move(give_up));
    for (int i = 0; i < kReadsAfterEnd; ++i) {
      const auto rest = co_await response_->read_some();
      if (!rest || rest->empty()) break;
    }
    pause_.cancel();
  }

  void take(SseEvent& event) {
    if (done_seen_ || event.data.empty()) return;  // after the end marker nothing counts
    if (++events_ > kMaxEvents) {
      stream_failed({ErrorCode::protocol, "the stream has more than 200000 events"});
      return;
    }
    const auto step = assembler_->add(event);
    if (!step) {
      stream_failed(step.error());
      return;
    }
    if (*step == StreamStep::error) {
      stream_error(event);
      return;
    }
    publish_head();
    if (*step == StreamStep::end) {
      done_seen_ = true;
      // At once: what happens to the connection after the marker does not concern the answer.
      Json answer = assembler_->assemble();
      complete({}, std::move(answer), std::move(event));
      return;
    }
    if (call_.strip_logprobs) {
      Json chunk = Json::parse(event.data, nullptr, false);
      take_out_logprobs(chunk);
      event.data = dump(chunk);
    }
    if (auto published = job_->publish(std::move(event)); !published) {
      stream_failed(published.error());
    }
  }

  // Once, before the first event.
  void publish_head() {
    if (std::exchange(head_published_, true)) return;
    if (permit_) permit_->alive();
    Headers headers = visible_headers(response_->headers());
    headers.set("x-fixpoint-upstream", upstream().config.name);
    headers.set("x-fixpoint-attempts", std::to_string(job_->record.attempts));
    if (!call_.dropped.empty()) {
      std::string names;
      for (const auto& name : call_.dropped) names += (names.empty() ? "" : ", ") + name;
      headers.set("x-fixpoint-dropped", names);
    }
    if (at_ > 0 && !job_->key.hex.empty()) headers.set("x-fixpoint-key", job_->key.name());
    job_->flight->publish(AnswerHead{std::move(headers)});
  }

  // `text` empty: the answer's own JSON.
  void complete(std::string text, Json answer, SseEvent end) {
    auto summary = summarize(call_.endpoint, answer);
    const bool storable =
        summary.whole || (summary.length && (work_.settings->config.cache.store_length ||
                                             job_->gateway.recording != Recording::off));
    job_->record_summary(std::move(summary));
    if (call_.strip_logprobs) take_out_logprobs(answer);
    if (text.empty() || call_.strip_logprobs) text = dump(answer);
    job_->waited = waited_;
    if (work_.settings->config.log.fingerprint_epoch) {
      job_->key_again = [this] { return key_at(job_->gateway, work_, upstream()); };
    }
    const auto done = job_->complete(std::move(text), answer, std::move(end), storable);
    if (!done) {
      judge(done.error());
      set_failed(done.error());
      end_failed();
      return;
    }
    over_ = true;
    if (permit_) permit_->succeeded();
    if (logprobs_refused_) upstream().remember_refused_logprobs(work_.model);
  }

  // A stream broke. Before its first event another attempt may follow.
  void stream_failed(const Error& error) {
    judge(error);
    stream_over_ = true;
    set_failed(error);
    if (head_published_) end_failed();
  }

  // An error event of the upstream's.
  void stream_error(const SseEvent& event) {
    if (permit_) permit_->failed();
    stream_over_ = true;
    auto body = translate_error(api_of(work_.endpoint), 502, event.data, job_->request_id);
    failed_ = {{502, {}, std::move(body)}, "the upstream sent an error in its stream", true, {}};
    failed_.wait = retry_wait(job_->record.attempts, nullptr, {}, retry_random());
    if (head_published_) end_failed();
  }

  // A call that was cancelled says nothing about the upstream.
  void judge(const Error& error) {
    if (permit_ && !abandoned_ && is_upstream_fault(error)) permit_->failed();
  }

  void set_failed(const Error& error) {
    set_failed(upstream_error(error, upstream().config.name), may_retry(error),
               retry_wait(std::max<std::uint64_t>(job_->record.attempts, 1), nullptr,
                          std::chrono::system_clock::now(), retry_random()));
    failed_.may_fall_back = true;
  }
  void set_failed(const ApiError& error, bool may_retry, std::optional<milliseconds> wait) {
    failed_.failure = {error.status, error.headers,
                       error.body(api_of(work_.endpoint), job_->request_id)};
    failed_.reason = error.message;
    failed_.may_retry = may_retry;
    failed_.may_fall_back = may_retry;
    failed_.wait = wait;
    stream_over_ = true;
  }

  void end_failed() {
    over_ = true;
    job_->waited = waited_;
    // What was generated before a stream broke was generated (and billed) all the same. Its usage
    // would have come last: without it, an event counts as a token and four bytes as one.
    auto& record = job_->record;
    if (head_published_ && assembler_ && events_ > 0) {
      job_->record_summary(summarize(call_.endpoint, assembler_->assemble()));
      if (record.completion_tokens == 0) record.completion_tokens = events_;
      if (record.prompt_tokens == 0) record.prompt_tokens = work_.body.size() / 4;
    }
    if (abandoned_) {  // not the upstream's fault
      failed_.failure.status = 499;
      failed_.reason = "cancelled";
    }
    if (job_->record.attempts > 0) {
      failed_.failure.headers.set("x-fixpoint-attempts", std::to_string(job_->record.attempts));
    }
    job_->fail(std::move(failed_.failure), failed_.reason);
  }

  // The coroutine is over; whatever ended it, the waiters get an end.
  void ended(const std::exception_ptr& error) {
    response_.reset();
    permit_.reset();
    slot_ = {};
    if (over_) return;
    try {
      if (error) std::rethrow_exception(error);
    } catch (const boost::system::system_error& thrown) {
      if (thrown.code() != net::error::operation_aborted)
        log_error(std::string("relay: ") + thrown.what());
    } catch (const std::exception& thrown) {
      log_error(std::string("relay: ") + thrown.what());
    }
    set_failed(
        api_error(502, "upstream_error", "upstream_cancelled", "The upstream call was cancelled"),
        false, {});
    end_failed();
  }

  net::io_context& core_;
  const UpstreamWork work_;
  const std::shared_ptr<AnswerJob> job_;
  Waiter progress_;
  Timer pause_;
  net::cancellation_signal cancel_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::duration waited_{0};  // for the upstream
  std::size_t at_ = 0;         // in work_.upstreams
  Failed failed_;
  bool again_at_once_ = false;
  bool logprobs_refused_ = false;

  // Of the current attempt.
  std::optional<CircuitBreaker::Permit> permit_;
  Admission::Slot slot_;
  UpstreamCall call_;
  std::unique_ptr<UpstreamResponse> response_;
  std::unique_ptr<StreamAssembler> assembler_;
  SseParser parser_;
  std::size_t events_ = 0;
  bool done_seen_ = false;
  bool stream_over_ = false;     // failed_ says why
  bool head_published_ = false;  // no other attempt may follow
  bool over_ = false;            // the job has its complete() or fail()
  bool abandoned_ = false;       // nobody waits any more
};

}  // namespace

void start_upstream_answer(net::io_context& core, UpstreamWork work,
                           std::shared_ptr<AnswerJob> job) {
  std::make_shared<Relay>(core, std::move(work), std::move(job))->start();
}

}  // namespace fixpoint
