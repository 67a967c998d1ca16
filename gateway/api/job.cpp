#include "gateway/api/job.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::duration;
using std::chrono::steady_clock;

double milliseconds_since(steady_clock::time_point start, steady_clock::time_point end) {
  return duration<double, std::milli>(end - start).count();
}

std::string text_or_empty(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t count_of(const Json& usage, std::string_view name) {
  const auto found = usage.find(name);
  return found != usage.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// A token's bytes: `bytes` where the provider sends them, else its text.
std::string token_bytes(const Json& entry) {
  const auto bytes = entry.find("bytes");
  if (bytes != entry.end() && bytes->is_array()) {
    std::string out;
    for (const auto& byte : *bytes) {
      if (byte.is_number_unsigned()) out += static_cast<char>(byte.get<unsigned>() & 0xFF);
    }
    return out;
  }
  return text_or_empty(entry, "token");
}

float logprob_of(const Json& entry) {
  const auto found = entry.find("logprob");
  return found != entry.end() && found->is_number() ? found->get<float>() : 0;
}

void set_margin(LoggedToken& token) {
  std::stable_sort(token.top.begin(), token.top.end(),
                   [](const auto& a, const auto& b) { return a.logprob > b.logprob; });
  if (token.top.size() >= 2) token.margin = token.top[0].logprob - token.top[1].logprob;
}

// choices[].logprobs.content of chat completions.
void add_chat_tokens(const Json& logprobs, std::uint32_t choice, std::vector<LoggedToken>& out) {
  const auto content = logprobs.find("content");
  if (content == logprobs.end() || !content->is_array()) return;
  std::uint32_t position = 0;
  for (const auto& entry : *content) {
    if (!entry.is_object()) continue;
    LoggedToken token;
    token.choice = choice;
    token.position = position++;
    token.bytes = token_bytes(entry);
    token.logprob = logprob_of(entry);
    const auto top = entry.find("top_logprobs");
    if (top != entry.end() && top->is_array()) {
      for (const auto& other : *top) {
        if (other.is_object()) token.top.push_back({{}, token_bytes(other), logprob_of(other)});
      }
    }
    set_margin(token);
    out.push_back(std::move(token));
  }
}

// choices[].logprobs of completions: parallel arrays.
void add_text_tokens(const Json& logprobs, std::uint32_t choice, std::vector<LoggedToken>& out) {
  const auto tokens = logprobs.find("tokens");
  const auto values = logprobs.find("token_logprobs");
  const auto tops = logprobs.find("top_logprobs");
  if (tokens == logprobs.end() || values == logprobs.end() || !tokens->is_array() ||
      !values->is_array() || tokens->size() != values->size()) {
    return;
  }
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    if (!(*tokens)[i].is_string() || !(*values)[i].is_number()) continue;
    LoggedToken token;
    token.choice = choice;
    token.position = static_cast<std::uint32_t>(i);
    token.bytes = (*tokens)[i].get<std::string>();
    token.logprob = (*values)[i].get<float>();
    if (tops != logprobs.end() && tops->is_array() && i < tops->size() && (*tops)[i].is_object()) {
      for (const auto& [text, value] : (*tops)[i].items()) {
        if (value.is_number()) token.top.push_back({{}, text, value.get<float>()});
      }
    }
    set_margin(token);
    out.push_back(std::move(token));
  }
}

}  // namespace

std::string random_hex(std::size_t digits) {
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seeds{device(), device(), device(), device(),
                        device(), device(), device(), device()};
    return std::mt19937_64(seeds);
  }()};
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(digits);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (i % 16 == 0) bits = random();
    out += kDigits[bits & 15];
    bits >>= 4;
  }
  return out;
}

std::string new_generation_id() {
  return "gen-" + random_hex(24);
}

void record_answer(Endpoint endpoint, std::string_view body, bool asked_logprobs,
                   GenerationRecord& record) {
  const Json answer = Json::parse(body, nullptr, false);
  if (!answer.is_object()) return;
  record.model = text_or_empty(answer, "model");
  record.fingerprint = text_or_empty(answer, "system_fingerprint");
  if (const auto usage = answer.find("usage"); usage != answer.end() && usage->is_object()) {
    record.prompt_tokens = count_of(*usage, "prompt_tokens");
    record.completion_tokens = count_of(*usage, "completion_tokens");
  }
  const auto choices = answer.find("choices");
  if (choices != answer.end() && choices->is_array()) {
    for (std::size_t i = 0; i < choices->size(); ++i) {
      const auto& choice = (*choices)[i];
      if (!choice.is_object()) continue;
      if (i == 0) record.finish_reason = text_or_empty(choice, "finish_reason");
      const auto logprobs = choice.find("logprobs");
      if (logprobs == choice.end() || !logprobs->is_object()) continue;
      const auto index = static_cast<std::uint32_t>(i);
      if (endpoint == Endpoint::chat_completions) {
        add_chat_tokens(*logprobs, index, record.tokens);
      } else {
        add_text_tokens(*logprobs, index, record.tokens);
      }
    }
  }
  record.logprobs_status = !record.tokens.empty() ? "captured"
                           : asked_logprobs       ? "unavailable: the upstream sent none"
                                                  : "unavailable: the client did not ask for them";
}

bool is_storable(std::string_view body) {
  const Json answer = Json::parse(body, nullptr, false);
  if (!answer.is_object() || (answer.contains("error") && !answer["error"].is_null())) return false;
  const auto choices = answer.find("choices");
  if (choices == answer.end() || !choices->is_array() || choices->empty()) return false;
  return std::all_of(choices->begin(), choices->end(), [](const Json& choice) {
    if (!choice.is_object()) return false;
    const auto reason = text_or_empty(choice, "finish_reason");
    return reason == "stop" || reason == "tool_calls" || reason == "function_call";
  });
}

void AnswerJob::publish_chunk(std::string data) {
  if (first_token == steady_clock::time_point{}) first_token = steady_clock::now();
  flight->publish(AnswerChunk{std::move(data)});
}

void AnswerJob::finish_record() {
  const auto now = steady_clock::now();
  record.key = key.hex.empty() ? std::string() : key.name();
  record.total_ms = milliseconds_since(started, now);
  record.first_token_ms =
      milliseconds_since(started, first_token == steady_clock::time_point{} ? now : first_token);
  gateway.metrics.count_tokens(record.provider, record.prompt_tokens, record.completion_tokens);
  if (gateway.log) gateway.log->append(std::move(record));
}

void AnswerJob::leave_table() {
  if (shared) gateway.flights.remove(key.name(), flight);
}

void AnswerJob::complete(std::string text) {
  const auto body = std::make_shared<const std::string>(std::move(text));
  AnswerComplete event{body, record.id};
  if (store && gateway.store && body->size() <= gateway.config.cache.max_body_bytes) {
    Entry entry;
    entry.key = key;
    entry.endpoint = record.endpoint;
    entry.model = record.model;
    entry.provider = record.provider;
    entry.generation = record.id;
    entry.created_ms = record.created_ms;
    entry.body = body;
    gateway.store->put(std::move(entry));
  }
  finish_record();
  // After put(): a request that comes now finds the entry; one that came before has joined.
  leave_table();
  flight->publish(std::move(event));
  flight->close();
}

void AnswerJob::fail(AnswerFailure failure, std::string_view reason) {
  if (first_token != steady_clock::time_point{}) {  // something was generated, and shown
    record.finish_reason = "error: " + std::string(reason);
    finish_record();
  }
  leave_table();
  flight->publish(std::move(failure));
  flight->close();
}

}  // namespace fixpoint
