// The answer of one call: plain or streamed, to the flight, the cache and the log.
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/api/header_policy.hpp"
#include "gateway/api/relay.hpp"
#include "gateway/dialects/hidden_logprobs.hpp"
#include "gateway/dialects/json_access.hpp"
#include "gateway/dialects/left_out.hpp"
#include "gateway/json_guard.hpp"
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
constexpr std::string_view kDone = "[DONE]";  // OpenAI's end marker

}  // namespace

Task<void> Relay::relay_plain(int status) {
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
  auto answer = parse_answer(*body);
  const auto problem = answer ? problem_of(call_.endpoint, *answer) : answer.error().message;
  if (problem == kErrorProblem) {
    const Error error{ErrorCode::protocol, "answered HTTP 200 with an error"};
    if (const int meant = error_status(*body); meant != 0) {
      refused(meant, *body);
      failed_.reason = error.message;
      co_return;
    }
    judge(error);
    set_failed(error);
    failed_.failure.body =
        translate_error(api_of(work_.endpoint), 502, upstream_words(*body), job_->request_id);
    co_return;
  }
  if (!problem.empty()) {
    // No verdict: a whole answer that cannot be used says nothing about the next one.
    set_failed({ErrorCode::protocol, "answered HTTP 200 with a body that " + problem});
    co_return;
  }
  if (job_->translator) {
    for (auto& name : left_out_members(call_.endpoint, *answer)) {
      call_.dropped.push_back(std::move(name));
    }
  }
  publish_head();
  complete(std::move(*body), std::move(*answer), {{}, std::string(kDone)});
}

Task<void> Relay::relay_stream() {
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
    const bool in_time = co_await wait_for_readers();
    if (!in_time) {  // not the upstream's fault
      set_failed({ErrorCode::timeout,
                  "its readers took longer than the answer may as a whole (total_timeout)"});
      if (head_published_) end_failed();
      co_return;
    }
  }
  if (!done_seen_) {
    // Servers that leave out the last empty line have said all the same that this was the end.
    if (SseEvent last{{}, parser_.unfinished_data()}; last.data == kDone) take(last);
    if (!done_seen_ && !stream_over_) {
      stream_failed({ErrorCode::closed, "the stream ended without its end marker"});
    }
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

// While the fastest reader is far behind. False: the deadline came first. Without it a reader that
// takes a little now and then would keep the upstream's place for as long as it likes.
Task<bool> Relay::wait_for_readers() {
  const auto since = Clock::now();
  bool in_time = true;
  while (in_time && !done_seen_ && job_->flight->ahead(kMaxAhead)) {
    if (deadline_ == Clock::time_point::max()) {
      co_await progress_.sleep();
    } else {
      co_await progress_.sleep_for(deadline_ - Clock::now());
      in_time = Clock::now() < deadline_;
    }
  }
  waited_ += Clock::now() - since;
  readers_time_ += Clock::now() - since;
  co_return in_time;
}

void Relay::take(SseEvent& event) {
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
  // The assembler has seen them: the log keeps what the client does not get. The last event may
  // have all of them once more.
  if (call_.strip_logprobs) event.data = without_logprobs(event.data);
  if (*step == StreamStep::error) {
    stream_error(event);
    return;
  }
  publish_head();
  if (*step == StreamStep::end) {
    done_seen_ = true;
    // At once: what happens to the connection after the marker does not concern the answer.
    Json answer = assembler_->assemble();
    if (job_->translator) tell_left_out(answer);
    complete({}, std::move(answer), std::move(event));
    return;
  }
  if (auto published = job_->publish(std::move(event)); !published) {
    if (permit_) permit_->succeeded();  // only its translation fails
    stream_failed(published.error());
  }
}

// Of a stream whose head is gone.
void Relay::tell_left_out(const Json& answer) const {
  std::string names;
  for (const auto& name : left_out_members(call_.endpoint, answer)) names += " " + name;
  if (names.empty()) return;
  log_info("the stream to " + job_->request_id +
           " left out what its API has no place for:" + names);
}

void Relay::publish_head() {
  if (std::exchange(head_published_, true)) return;
  if (permit_) permit_->alive();
  Headers headers = visible_headers(response_->headers());
  headers.set("x-fixpoint-upstream", upstream().config.name);
  headers.set("x-fixpoint-attempts", std::to_string(job_->record.attempts));
  announce_dropped(call_.dropped, headers);
  if (at_ > 0 && !job_->key.hex.empty()) headers.set("x-fixpoint-key", job_->key.name());
  job_->flight->publish_quietly(AnswerHead{std::move(headers)});
}

void Relay::complete(std::string text, Json answer, SseEvent end) {
  auto summary = summarize(call_.endpoint, answer);
  const bool has_usage = summary.prompt_tokens + summary.completion_tokens > 0;
  if (!has_usage && call_.endpoint != Endpoint::count_tokens) {  // counting is free
    estimate_usage(summary, events_);
    if (summary.text_bytes > 0) upstream().warn_of_missing_usage();
  }
  const bool faithful = !assembler_ || assembler_->faithful();
  job_->faithful = faithful || !work_.stream;  // who asked for the text alone gets what there is
  const bool recording = job_->gateway.recording == Recording::record;
  // A recording has an answer whatever ended it, but for an error that an answer tells of.
  const bool wanted =
      recording ? !dialects::has_value(answer, "error")
                : summary.whole || (summary.length && work_.settings->config.cache.store_length);
  const bool storable = faithful && wanted;
  if (!faithful && job_->store && !recording) upstream().warn_of_unstored();
  job_->record_summary(std::move(summary));
  if (text.empty()) text = dialects::to_text(answer);
  if (call_.strip_logprobs) {
    text = without_logprobs(text);
    if (job_->translator) answer = parse_answer(text).value_or(std::move(answer));
  }
  job_->waited = waited_;
  if (work_.settings->config.log.fingerprint_epoch && job_->gateway.recording == Recording::off) {
    job_->key_again = [this] { return key_at(job_->gateway, work_, upstream()); };
  }
  const auto done = job_->complete(std::move(text), answer, std::move(end), storable);
  if (permit_) permit_->succeeded();  // also where only its translation fails
  if (!done) {
    set_failed(done.error());
    end_failed();
    return;
  }
  over_ = true;
  if (logprobs_refused_) upstream().remember_refused_logprobs(work_.model);
}

void Relay::stream_failed(const Error& error) {
  judge(error);
  stream_over_ = true;
  set_failed(error);
  if (head_published_) end_failed();
}

void Relay::stream_error(const SseEvent& event) {
  stream_over_ = true;
  const auto said = upstream_words(event.data);
  if (const int status = error_status(said); status != 0) {
    refused(status, said);
  } else {
    if (permit_) permit_->failed();
    failed_ = Failed();  // with the status 502
    failed_.failure.body = translate_error(api_of(work_.endpoint), 502, said, job_->request_id);
    failed_.may_retry = true;
    failed_.wait = retry_wait(job_->record.attempts, nullptr, {}, retry_random());
  }
  // To a client of the same API it goes as it came: "response.failed" says more than an error.
  if (!job_->translator) failed_.failure.event = SseEvent{event.event, said};
  failed_.reason = "the upstream sent an error in its stream";
  if (head_published_) end_failed();
}

}  // namespace fixpoint
