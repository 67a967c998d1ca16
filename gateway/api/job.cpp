#include "gateway/api/job.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "gateway/dialects/json_access.hpp"
#include "gateway/gateway.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

double milliseconds_since(steady_clock::time_point start, steady_clock::time_point end) {
  return duration<double, std::milli>(end - start).count();
}

constexpr std::size_t kMaxName = 512;  // bytes

constexpr char kHexDigits[] = "0123456789abcdef";

std::string hex_digits(std::uint64_t bits, std::size_t digits) {
  std::string out(digits, '0');
  for (; digits > 0; bits >>= 4) out[--digits] = kHexDigits[bits & 15];
  return out;
}

}  // namespace

std::string random_hex(std::size_t digits) {
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seeds{device(), device(), device(), device(),
                        device(), device(), device(), device()};
    return std::mt19937_64(seeds);
  }()};
  std::string out;
  out.reserve(digits);
  while (out.size() < digits) {
    out += hex_digits(random(), std::min<std::size_t>(digits - out.size(), 16));
  }
  return out;
}

std::string new_generation_id(std::int64_t created_ms) {
  return "gen-" + hex_digits(static_cast<std::uint64_t>(created_ms), 11) + random_hex(13);
}

Result<void> AnswerJob::publish(SseEvent event) {
  const auto now = steady_clock::now();
  if (first_token == steady_clock::time_point{}) first_token = now;
  if (store) pace.event(std::chrono::duration_cast<std::chrono::milliseconds>(now - started));
  if (!translator) {
    flight->publish(std::move(event));
    return {};
  }
  auto translated = translate(event);
  if (!translated) return tl::make_unexpected(std::move(translated.error()));
  for (auto& one : *translated) flight->publish(std::move(one));
  return {};
}

// Also collects the client's events: the plain answer that is stored says what the stream said.
Result<std::vector<SseEvent>> AnswerJob::translate(const SseEvent& event) {
  auto translated = translator->event(event);
  if (!translated) return translated;
  if (!translated_) translated_ = make_assembler(endpoint);
  for (const auto& one : *translated) {
    if (auto added = translated_->add(one); !added) return tl::make_unexpected(added.error());
  }
  return translated;
}

void AnswerJob::record_summary(AnswerSummary summary) {
  // Metrics, fingerprints and spans keep what the upstream says.
  for (auto* said : {&summary.model, &summary.fingerprint, &summary.finish_reason}) {
    if (said->size() > kMaxName) said->resize(kMaxName);
  }
  record.model = std::move(summary.model);
  record.fingerprint = std::move(summary.fingerprint);
  // Where the provider has none, the version that it names for the model stands for it.
  if (record.fingerprint.empty() && record.model != called_model) {
    record.fingerprint = record.model;
  }
  record.finish_reason = std::move(summary.finish_reason);
  record.prompt_tokens = summary.prompt_tokens;
  record.completion_tokens = summary.completion_tokens;
  record.cached_tokens = summary.cached_tokens;
  record.tokens = std::move(summary.tokens);
  record.logprobs_status = !record.tokens.empty() ? "captured"
                           : !no_logprobs.empty() ? "unavailable: " + no_logprobs
                           : asked_logprobs       ? "unavailable: the upstream sent none"
                                                  : "unavailable: nobody asked for them";
}

void AnswerJob::finish_record() {
  const auto now = steady_clock::now();
  record.key = key.hex.empty() ? std::string() : key.name();
  record.total_ms = milliseconds_since(started, now);
  record.first_token_ms =
      milliseconds_since(started, first_token == steady_clock::time_point{} ? now : first_token);
  // A price may be for the name that the answer has (a dated one: "gpt-4o-2024-08-06"), for the one
  // that the upstream was asked for, or for the client's.
  const std::string* priced = nullptr;
  for (const auto* name : {&record.model, &called_model, &record.requested_model}) {
    if (!priced && !name->empty() && settings->has_price(*name)) priced = name;
  }
  const TokenCounts counts{record.prompt_tokens, record.completion_tokens, record.cached_tokens};
  if (priced) record.cost_microdollars = settings->prices.cost(*priced, counts);
  if (tenant) {
    record.tenant = tenant->key.id;
    gateway.tenants->charge(*tenant, priced ? *priced : record.requested_model, counts);
    hold.reset();  // it is spent now
  }
  gateway.generation_ended(*this);
}

// Before the flight's end is published: who asks after it finds nothing of this job.
void AnswerJob::leave() {
  hold.reset();
  if (!flight_key.empty()) gateway.flights.remove(flight_key, flight);
}

void AnswerJob::keep(std::shared_ptr<const std::string> body) {
  if (!gateway.store) return;
  // A recording must have every answer, or its replay lacks one.
  const bool fits = body->size() <= settings->config.cache.max_body_bytes;
  if (!fits && gateway.recording != Recording::record) return;
  auto entry = std::make_shared<Entry>();
  entry->key = key;
  if (tenant) entry->tenant = tenant->key.cache_namespace;
  entry->endpoint = endpoint_name(endpoint);
  entry->model = record.model;
  entry->provider = record.provider;
  entry->generation = record.id;
  entry->created_ms = record.created_ms;
  entry->first_token_ms = static_cast<std::uint32_t>(record.first_token_ms);
  entry->total_ms = static_cast<std::uint32_t>(record.total_ms);
  entry->pace = pace.text();
  entry->keeps_first = !replaces;
  entry->body = std::move(body);
  gateway.store->put(std::move(entry));
}

Result<void> AnswerJob::complete(std::string text, const Json& answer, SseEvent end,
                                 bool storable) {
  AnswerComplete event;
  if (translator && translated_) {
    auto rest = translate(end);
    if (!rest) return tl::make_unexpected(std::move(rest.error()));
    event.end = std::move(*rest);
    text = dialects::to_text(translated_->assemble());
    storable = storable && translated_->faithful();
  } else if (translator) {  // nothing was streamed
    const auto plain = translator->plain(answer);
    if (!plain) return tl::make_unexpected(plain.error());
    text = dialects::to_text(*plain);
  } else {
    event.end.push_back(std::move(end));
  }
  event.body = std::make_shared<const std::string>(std::move(text));
  finish_record();
  if (store && storable) {
    if (key_again) key = key_again();
    keep(event.body);
  } else if (gateway.recording == Recording::record) {
    // Else nobody would know why the replay lacks it.
    log_error("not recorded: the answer to " + request_id + ": " +
              (store ? "it tells of an error, or its stream cannot be put together for certain"
                     : "its request says no-store or belongs to a conversation"));
  }
  if (!faithful) event.body = nullptr;
  event.generation = gateway.log ? record.id : std::string();
  event.model = record.model;
  event.finish_reason = record.finish_reason;
  event.prompt_tokens = record.prompt_tokens;
  event.completion_tokens = record.completion_tokens;
  event.cost_microdollars = record.cost_microdollars.value_or(-1);
  gateway.log_generation(std::move(record));
  // After put(): a request that comes now finds the entry; one that came before has joined.
  leave();
  flight->publish_last(std::move(event));
  return {};
}

void AnswerJob::publish_stored(const Entry& entry) {
  leave();
  AnswerComplete event;
  event.body = entry.body;
  event.generation = entry.generation;
  flight->publish_last(std::move(event));
}

void AnswerJob::fail(AnswerFailure failure, std::string_view reason) {
  // Something was generated, whether or not anybody saw it.
  if (first_token != steady_clock::time_point{} ||
      record.prompt_tokens + record.completion_tokens > 0) {
    record.finish_reason = "error: " + std::string(reason);
    finish_record();
    gateway.log_generation(std::move(record));
  }
  leave();
  flight->publish_last(std::move(failure));
}

void AnswerJob::fail(const ApiError& error) {
  fail({error.status, error.headers, error.body(api_of(endpoint), request_id)}, error.message);
}

}  // namespace fixpoint
