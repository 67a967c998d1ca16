#include "gateway/api/upstream_answer.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <string_view>

#include "gateway/api/openai_stream.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"
#include "gateway/http/sse.hpp"
#include "gateway/json_edit.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

// Events that the relay may be ahead of the fastest reader before it stops reading from the
// upstream.
constexpr std::size_t kMaxAhead = 256;

// Fields that belong to the client's connection, to the gateway or to the encoding between the two.
constexpr std::array<std::string_view, 17> kNotForwarded = {"host",
                                                            "connection",
                                                            "keep-alive",
                                                            "proxy-connection",
                                                            "te",
                                                            "trailer",
                                                            "transfer-encoding",
                                                            "upgrade",
                                                            "http2-settings",
                                                            "expect",
                                                            "content-length",
                                                            "content-type",
                                                            "accept-encoding",
                                                            "cookie",
                                                            "proxy-authorization",
                                                            "cache-control",
                                                            "authorization"};

constexpr std::array<std::string_view, 18> kNotReturned = {"connection",
                                                           "keep-alive",
                                                           "proxy-connection",
                                                           "te",
                                                           "trailer",
                                                           "transfer-encoding",
                                                           "upgrade",
                                                           "content-length",
                                                           "date",
                                                           "server",
                                                           "content-type",
                                                           "content-encoding",
                                                           "set-cookie",
                                                           "age",
                                                           "cache-control",
                                                           "cache-status",
                                                           "vary",
                                                           "alt-svc"};

template <class Names>
bool listed(const Names& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view one) { return equal_ignoring_case(one, name); });
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() && equal_ignoring_case(text.substr(0, prefix.size()), prefix);
}

Headers forwarded_headers(const UpstreamConfig& upstream, const Headers& client) {
  Headers headers;
  for (const auto& field : client) {
    if (listed(kNotForwarded, field.name) || starts_with_ignoring_case(field.name, "x-fixpoint-"))
      continue;
    headers.add(field.name, field.value);
  }
  headers.set("Content-Type", "application/json");
  if (!upstream.api_key.empty()) {
    headers.set("Authorization", "Bearer " + upstream.api_key);
    headers.remove("x-api-key");
    headers.remove("api-key");
  } else if (const auto* own = client.find("authorization")) {
    headers.set("Authorization", *own);
  }
  for (const auto& extra : upstream.headers) headers.set(extra.name, extra.value);
  return headers;
}

bool is_event_stream(const Headers& headers) {
  const auto* type = headers.find("content-type");
  return type && starts_with_ignoring_case(*type, "text/event-stream");
}

// An upstream's error as the client sees it: its own JSON where it is JSON, else wrapped.
AnswerFailure upstream_refusal(int status, Headers headers, std::string body,
                               std::string_view upstream) {
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  if (!parsed.is_object()) {
    body = api_error(status, "upstream_error", "upstream_error",
                     "Upstream '" + std::string(upstream) + "' answered HTTP " +
                         std::to_string(status) + " without a JSON body")
               .body();
  }
  return {status, std::move(headers), std::move(body)};
}

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
    if (!nlohmann::json::accept(*body)) {
      const Error error{ErrorCode::protocol, "answered HTTP 200 with a body that is not JSON"};
      fail(upstream_error(error, call_.upstream));
      co_return;
    }
    job_->flight->publish(AnswerHead{std::move(headers)});
    complete(std::move(*body));
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
      while (job_->flight->ahead(kMaxAhead)) {
        co_await progress_.sleep();
      }
    }
    if (!done_seen_) {
      const Error error{ErrorCode::closed, "the stream ended without its end marker"};
      fail(upstream_error(error, call_.upstream));
      co_return;
    }
    complete(assembler_.assemble().dump(-1, ' ', false,
                                        nlohmann::ordered_json::error_handler_t::replace));
  }

  // False: the answer has ended with a failure.
  bool take(SseEvent& event) {
    if (done_seen_) return true;  // nothing counts after [DONE]
    if (event.data == "[DONE]") {
      done_seen_ = true;
      return true;
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
    remember_partial();
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
  bool done_seen_ = false;
  bool ended_ = false;  // the job has its complete() or fail()
};

}  // namespace

Headers visible_headers(const Headers& upstream) {
  Headers headers;
  for (const auto& field : upstream) {
    if (listed(kNotReturned, field.name) || starts_with_ignoring_case(field.name, "x-fixpoint-"))
      continue;
    headers.add(field.name, field.value);
  }
  return headers;
}

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
