// The attempts: which upstream is asked, how often, and what the client hears when none answers.
#include "gateway/api/upstream_answer.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <string_view>
#include <utility>

#include "gateway/api/header_policy.hpp"
#include "gateway/api/lookup.hpp"
#include "gateway/api/relay.hpp"
#include "gateway/api/token_estimate.hpp"
#include "gateway/log.hpp"
#include "gateway/upstream/retry.hpp"

namespace fixpoint {
namespace {

using std::chrono::milliseconds;

// With another upstream to try, one that wants to be left alone for longer than this is left.
constexpr milliseconds kPatience{1'000};

bool is_event_stream(const Headers& headers) {
  constexpr std::string_view kType = "text/event-stream";
  const auto* type = headers.find("content-type");
  return type && type->size() >= kType.size() &&
         equal_ignoring_case(std::string_view(*type).substr(0, kType.size()), kType);
}

Headers retry_after_header(milliseconds wait) {
  Headers headers;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  headers.add("Retry-After", std::to_string(std::max<std::int64_t>(seconds, 1)));
  return headers;
}

}  // namespace

void Relay::start() {
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
  job_->flight->on_progress(progress_.sleeper());
  auto done = [self](std::exception_ptr error) { self->ended(error); };
  net::co_spawn(core_, run(), net::bind_cancellation_slot(cancel_.slot(), std::move(done)));
}

Task<void> Relay::run() {
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

Task<void> Relay::find_stored() {
  if (job_->key.hex.empty() || job_->gateway.recording != Recording::off) co_return;
  job_->key = key_at(job_->gateway, work_, upstream());
  if (!job_->look_up) co_return;
  const Freshness freshness{work_.settings->config.cache.ttl, job_->max_age_s};
  auto found = co_await look_up(job_->gateway, job_->key, freshness);
  if (!found.entry) co_return;
  over_ = true;
  // As every hit: one request and no tokens.
  if (job_->tenant) job_->gateway.tenants->charge(*job_->tenant, work_.model, {});
  Headers headers;
  headers.set("x-fixpoint-upstream", upstream().config.name);
  headers.set("x-fixpoint-attempts", std::to_string(job_->record.attempts));
  headers.set("x-fixpoint-key", job_->key.name());
  headers.set("x-fixpoint-generation", found.entry->generation);
  headers.set("Cache-Status", "fixpoint; hit; detail=fallback");
  headers.set("Age", age_of(*found.entry));
  job_->flight->publish_quietly(AnswerHead{std::move(headers)});
  job_->publish_stored(*found.entry);
}

Task<void> Relay::try_upstream() {
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
    if (std::exchange(again_at_once_, false) && ++at_once <= most_at_once) continue;
    if (!failed_.may_retry) co_return;
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

Task<void> Relay::attempt() {
  // With another upstream to try, nobody waits in this one's queue for that.
  if (!is_last() && !upstream().breaker.would_allow()) {
    refuse_open();
    co_return;
  }
  const auto queued_at = Clock::now();
  auto slot = co_await upstream().admission.acquire(deadline_);
  const auto queued = Clock::now() - queued_at;
  waited_ += queued;
  job_->record.queue_ms += std::chrono::duration<double, std::milli>(queued).count();
  if (!slot) {
    auto error = api_error(429, "rate_limit_error", "upstream_overloaded", slot.error().message);
    error.headers = retry_after_header(milliseconds(1000));
    set_failed(error, true, {});
    co_return;
  }
  auto permit = upstream().breaker.allow();
  if (!permit) {
    refuse_open();
    co_return;
  }
  permit_ = std::move(permit);
  slot_ = std::move(*slot);
  co_await call_upstream();
  if (!abandoned_) sent_ = false;  // it has had its answer
  response_.reset();
  call_ = {};
  permit_.reset();
  slot_ = {};
}

void Relay::refuse_open() {
  auto error = api_error(
      503, "upstream_error", "upstream_unavailable",
      "Upstream '" + upstream().config.name + "' failed repeatedly and is not called for a while");
  error.headers = retry_after_header(upstream().breaker.opens_in());
  set_failed(error, true, {});
}

Task<void> Relay::call_upstream() {
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
  call_.request.written = &sent_;
  if (deadline_ != Clock::time_point::max()) call_.request.deadline = deadline_;
  job_->translator = std::move(call_.translator);
  assembler_ = make_assembler(call_.endpoint);
  parser_ = SseParser();
  done_seen_ = stream_over_ = false;
  events_ = 0;
  ++job_->record.attempts;
  job_->record.provider = upstream().config.name;
  job_->called_model = upstream().model_name(work_.model);

  const auto sent_at = Clock::now();
  attempt_began_ = sent_at;
  readers_time_ = {};
  bool sent_again = false;
  call_.request.sent_again = &sent_again;
  auto sent = co_await upstream().client(core_).send(call_.request);
  waited_ += Clock::now() - sent_at;
  if (sent_again) {
    ++job_->record.attempts;
    upstream().metrics.count_retry();
  }
  if (!sent) {
    if (!abandoned_) upstream().metrics.count_failure();
    judge(sent.error());
    set_failed(sent.error());
    co_return;
  }
  response_ = std::move(*sent);
  const int status = response_->status();
  if (status != 200) sent_ = false;  // costs nothing
  upstream().metrics.count_status(status);
  if (status == 200 && assembler_ && is_event_stream(response_->headers())) {
    co_await relay_stream();
  } else {
    co_await relay_plain(status);
  }
}

void Relay::refused(int status, const std::string& body) {
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
  failed_.failure = {
      status, visible_headers(headers),
      translate_error(api_of(work_.endpoint), status, upstream_words(body), job_->request_id)};
  failed_.reason = "HTTP " + std::to_string(status);
  failed_.may_retry = may_retry(status, headers);
  // The gateway's own key, account or name for the model is what those others refuse.
  failed_.may_fall_back =
      may_pass(status) ||
      (call_.key && (status == 401 || status == 402 || status == 403 || status == 404));
  failed_.wait = retry_wait(job_->record.attempts, &headers, now, retry_random());
  if (status == 400 && call_.strip_logprobs) {
    // The gateway's own wish may be what was refused: once more without it. A second refusal is
    // the client's.
    logprobs_refused_ = true;
    job_->no_logprobs = "the upstream refuses them for this model";
    failed_.may_retry = again_at_once_ = true;
  }
  if (status == 429 && call_.key && upstream().keys->size() > 1) {
    const auto rest = retry_after(headers, now);
    upstream().keys->rate_limited(call_.key->index, Clock::now() + rest.value_or(kMaxRetryWait));
    again_at_once_ = upstream().keys->resting() < upstream().keys->size();
    if (again_at_once_) {
      upstream().metrics.count_key_rotation();
      return;
    }
    // Nobody waits out a rest that the upstream did not ask for.
    if (!rest) return;
    // Until the first key wakes, whichever that is.
    const auto left =
        std::chrono::ceil<milliseconds>(upstream().keys->next().resting_until - Clock::now());
    failed_.wait =
        left <= kMaxRetryWait ? std::optional(std::max(left, milliseconds(0))) : std::nullopt;
    failed_.failure.headers.remove("retry-after-ms");
    failed_.failure.headers.set("Retry-After", *retry_after_header(left).find("Retry-After"));
  }
}

void Relay::judge(const Error& error) {
  if (!permit_ || abandoned_ || !is_upstream_fault(error)) return;
  // Nor does one that had no time left because others took it: the queue, earlier attempts,
  // readers.
  const auto now = Clock::now();
  const bool out_of_time = error.code == ErrorCode::timeout && now >= deadline_;
  const auto whole = work_.upstreams.front()->config.total_timeout;
  if (out_of_time && now - attempt_began_ - readers_time_ < whole / 2) return;
  permit_->failed();
}

// At least the events that came and a token for four bytes of text; the prompt's where its tokens
// are not known.
void Relay::estimate_usage(AnswerSummary& summary, std::uint64_t events) const {
  summary.completion_tokens =
      std::max({summary.completion_tokens, events, summary.text_bytes / kBytesPerToken});
  if (summary.prompt_tokens == 0) {
    summary.prompt_tokens = estimate_prompt_tokens(work_.request->body);
  }
}

void Relay::set_failed(const Error& error) {
  set_failed(upstream_error(error, upstream().config.name), may_retry(error),
             retry_wait(std::max<std::uint64_t>(job_->record.attempts, 1), nullptr,
                        std::chrono::system_clock::now(), retry_random()));
  failed_.may_fall_back = true;
}

void Relay::set_failed(const ApiError& error, bool may_retry, std::optional<milliseconds> wait) {
  failed_.failure = {error.status, error.headers,
                     error.body(api_of(work_.endpoint), job_->request_id)};
  failed_.reason = error.message;
  failed_.may_retry = may_retry;
  failed_.may_fall_back = may_retry;
  failed_.wait = wait;
  stream_over_ = true;
}

void Relay::end_failed() {
  over_ = true;
  job_->waited = waited_;
  // What was generated before a stream broke was generated (and billed) all the same. Its usage
  // would have come last; what Anthropic's begins with is 1. Of an answer that its client did not
  // wait for the upstream has read the prompt, at least.
  const bool begun = head_published_ && assembler_ && events_ > 0;
  const bool left = abandoned_ && sent_ && work_.endpoint != Endpoint::count_tokens;
  if (begun || left) {
    AnswerSummary summary;
    if (begun) summary = summarize(call_.endpoint, assembler_->assemble());
    estimate_usage(summary, events_);
    job_->record_summary(std::move(summary));
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

void Relay::ended(const std::exception_ptr& error) {
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

void start_upstream_answer(net::io_context& core, UpstreamWork work,
                           std::shared_ptr<AnswerJob> job) {
  std::make_shared<Relay>(core, std::move(work), std::move(job))->start();
}

}  // namespace fixpoint
