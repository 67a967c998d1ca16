#include "gateway/api/upstream_answer.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <string_view>

#include "gateway/api/header_policy.hpp"
#include "gateway/api/openai_stream.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/sse.hpp"
#include "gateway/json_edit.hpp"
#include "gateway/json_guard.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

// Events that the relay may be ahead of the fastest reader before it stops reading from the
// upstream.
constexpr std::size_t kMaxAhead = 256;
// Events of one answer; each costs about 100 bytes beside its own text until the flight ends. The
// longest answers of today's models are below it.
constexpr std::size_t kMaxEvents = 200'000;
// Reads after an answer's end marker, so that a well-behaved connection returns to the pool.
constexpr int kReadsAfterEnd = 4;

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

bool is_event_stream(const Headers& headers) {
  const auto* type = headers.find("content-type");
  return type && starts_with_ignoring_case(*type, "text/event-stream");
}

// An upstream's error as the client sees it: its own JSON where it is JSON, else wrapped.
AnswerFailure upstream_refusal(int status, Headers headers, std::string body,
                               std::string_view upstream) {
  const auto first = body.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || body[first] != '{' || !nlohmann::json::accept(body)) {
    body = api_error(status, "upstream_error", "upstream_error",
                     "Upstream '" + std::string(upstream) + "' answered HTTP " +
                         std::to_string(status) + " without a JSON body")
               .body();
  }
  return {status, std::move(headers), std::move(body)};
}

constexpr const char* kErrorMember = "the upstream answered HTTP 200 with an error";

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(net::io_context& core, UpstreamClient& client, UpstreamCall call,
        std::shared_ptr<AnswerJob> job)
      : core_(core),
        client_(client),
        call_(std::move(call)),
        job_(std::move(job)),
        assembler_(job_->endpoint),
        progress_(core.get_executor()) {}

  void start() {
    auto self = shared_from_this();
    // Weak: the flight must not keep its own maker alive.
    const std::weak_ptr<Relay> weak = self;
    job_->flight->on_abandoned([weak, executor = core_.get_executor()] {
      net::post(executor, [weak] {
        if (auto alive = weak.lock()) alive->cancel_.emit(net::cancellation_type::terminal);
      });
    });
    job_->flight->on_progress(progress_.wake());
    auto done = [self](std::exception_ptr error) { self->ended(error); };
    net::co_spawn(core_, run(), net::bind_cancellation_slot(cancel_.slot(), std::move(done)));
  }

 private:
  Task<void> run() {
    auto sent = co_await client_.send(call_.request);
    if (!sent) {
      job_->gateway.metrics.count_upstream(call_.upstream, "failed");
      fail(upstream_error(sent.error(), call_.upstream));
      co_return;
    }
    response_ = std::move(*sent);
    const int status = response_->status();
    job_->gateway.metrics.count_upstream(call_.upstream, std::to_string(status));
    if (status == 200 && is_event_stream(response_->headers())) {
      co_await relay_stream();
    } else {
      co_await relay_plain(status);
    }
  }

  Task<void> relay_plain(int status) {
    auto body = co_await UpstreamClient::read_all(*response_);
    if (!body) {
      fail(upstream_error(body.error(), call_.upstream));
      co_return;
    }
    Headers headers = visible_headers(response_->headers());
    if (status != 200) {
      auto failure = upstream_refusal(status, std::move(headers), std::move(*body), call_.upstream);
      ended_ = true;
      job_->fail(std::move(failure), "HTTP " + std::to_string(status));
      co_return;
    }
    const auto problem = problem_of(*body);
    if (problem.empty()) {
      job_->flight->publish(AnswerHead{std::move(headers)});
      complete(std::move(*body));
    } else if (problem == kErrorMember) {
      ended_ = true;
      job_->fail(AnswerFailure{502, std::move(headers), std::move(*body)}, problem);
    } else {
      const Error error{ErrorCode::protocol, "answered HTTP 200 with a body that " + problem};
      fail(upstream_error(error, call_.upstream));
    }
  }

  Task<void> relay_stream() {
    job_->flight->publish(AnswerHead{visible_headers(response_->headers())});
    std::vector<SseEvent> events;
    while (true) {
      auto bytes = co_await response_->read_some();
      if (!bytes) {
        fail(upstream_error(bytes.error(), call_.upstream));
        co_return;
      }
      if (bytes->empty()) break;
      events.clear();
      const auto fed = parser_.feed(*bytes, events);
      for (auto& event : events) {
        if (!take(event)) co_return;
      }
      if (!fed) {
        fail(upstream_error(fed.error(), call_.upstream));
        co_return;
      }
      if (done_seen_) break;
      while (job_->flight->ahead(kMaxAhead)) {
        co_await progress_.sleep();
      }
    }
    if (!done_seen_) {
      const Error error{ErrorCode::closed, "the stream ended without its end marker"};
      fail(upstream_error(error, call_.upstream));
      co_return;
    }
    // At once: what happens to the connection after the marker does not concern the answer.
    complete(assembler_.assemble().dump(-1, ' ', false,
                                        nlohmann::ordered_json::error_handler_t::replace));
    for (int i = 0; i < kReadsAfterEnd; ++i) {
      const auto rest = co_await response_->read_some();
      if (!rest || rest->empty()) break;
    }
  }

  // Why a plain answer cannot be passed on as one; empty: it can.
  std::string problem_of(const std::string& body) const {
    const auto answer = parse_json(body);
    if (!answer) return answer.error().message;
    if (!answer->is_object()) return "is not a JSON object";
    const auto error = answer->find("error");
    if (error != answer->end() && !error->is_null()) return kErrorMember;
    const auto choices = answer->find("choices");
    if (choices == answer->end() || !choices->is_array()) return "has no array 'choices'";
    const bool chat = job_->endpoint == Endpoint::chat_completions;
    for (const auto& choice : *choices) {
      const bool whole =
          choice.is_object() && (chat ? choice.contains("message") && choice["message"].is_object()
                                      : choice.contains("text") && choice["text"].is_string());
      if (!whole) return chat ? "has a choice without a message" : "has a choice without a text";
    }
    return {};
  }

  // False: the answer has ended with a failure.
  bool take(SseEvent& event) {
    if (done_seen_) return true;  // nothing counts after [DONE]
    if (event.data == "[DONE]") {
      done_seen_ = true;
      return true;
    }
    if (++events_ > kMaxEvents) {
      const Error error{ErrorCode::protocol, "the stream has more than 200000 events"};
      fail(upstream_error(error, call_.upstream));
      return false;
    }
    if (const auto added = assembler_.add(event.data); !added) {
      fail(upstream_error(added.error(), call_.upstream));
      return false;
    }
    const auto error = find_member(event.data, "error");
    if (error && *error && **error != "null") {
      ended_ = true;
      remember_partial();
      job_->fail(AnswerFailure{502, {}, event.data}, "the upstream sent an error in its stream");
      return false;
    }
    job_->publish_chunk(std::move(event.data));
    return true;
  }

  void complete(std::string body) {
    ended_ = true;
    record_answer(job_->endpoint, body, job_->asked_logprobs, job_->record);
    job_->store = job_->store && is_storable(body);
    job_->complete(std::move(body));
  }

  void fail(const ApiError& error) {
    ended_ = true;
    if (events_ > 0) remember_partial();
    job_->fail(error);
  }

  // What was generated before a stream broke was generated (and billed) all the same: it is logged.
  void remember_partial() {
    const auto partial = assembler_.assemble().dump(
        -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    record_answer(job_->endpoint, partial, job_->asked_logprobs, job_->record);
  }

  // The coroutine is over; whatever ended it, the waiters get an end.
  void ended(const std::exception_ptr& error) {
    response_.reset();
    if (ended_) return;
    try {
      if (error) std::rethrow_exception(error);
    } catch (const boost::system::system_error& thrown) {
      if (thrown.code() != net::error::operation_aborted)
        log_error(std::string("relay: ") + thrown.what());
    } catch (const std::exception& thrown) {
      log_error(std::string("relay: ") + thrown.what());
    }
    fail(api_error(502, "upstream_error", "upstream_cancelled", "The upstream call was cancelled"));
  }

  net::io_context& core_;
  UpstreamClient& client_;
  UpstreamCall call_;
  std::shared_ptr<AnswerJob> job_;
  StreamAssembler assembler_;
  SseParser parser_;
  Waiter progress_;
  net::cancellation_signal cancel_;
  std::unique_ptr<UpstreamResponse> response_;
  std::size_t events_ = 0;
  bool done_seen_ = false;
  bool ended_ = false;  // the job has its complete() or fail()
};

}  // namespace

ApiResult<UpstreamCall> build_upstream_call(const UpstreamConfig& upstream, const Request& client,
                                            Endpoint endpoint, std::string body,
                                            bool ask_for_usage) {
  if (ask_for_usage) {
    const auto given = find_member(body, "stream_options");
    std::string options = "{\"include_usage\":true}";
    if (given && *given && **given != "null") {
      auto widened = set_member(**given, "include_usage", "true");
      if (!widened) return refuse(bad_request(widened.error().message, "stream_options"));
      options = std::move(*widened);
    }
    auto edited = set_member(body, "stream_options", options);
    if (!edited) return refuse(bad_request(edited.error().message, "stream_options"));
    body = std::move(*edited);
  }

  UpstreamCall call;
  call.upstream = upstream.name;
  call.request.path = endpoint == Endpoint::chat_completions ? "/chat/completions" : "/completions";
  if (!client.query.empty()) call.request.path += "?" + client.query;
  call.request.headers = forwarded_headers(upstream, client.headers);
  call.request.body = std::make_shared<const std::string>(std::move(body));
  return call;
}

void start_upstream_answer(net::io_context& core, UpstreamClient& client, UpstreamCall call,
                           std::shared_ptr<AnswerJob> job) {
  std::make_shared<Relay>(core, client, std::move(call), std::move(job))->start();
}

}  // namespace fixpoint
