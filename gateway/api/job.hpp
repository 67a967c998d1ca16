// One answer being made: what its maker and everybody who waits for it share.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "cache/token_log.hpp"
#include "gateway/api/answer.hpp"

namespace fixpoint {

struct Gateway;

// Set by the request that leads a flight, then read by its maker only (an engine callback or a
// relay coroutine, one thread at a time). Kept alive by the maker; the gateway outlives it.
struct AnswerJob {
  explicit AnswerJob(Gateway& owner) : gateway(owner) {}

  Gateway& gateway;
  std::shared_ptr<AnswerFlight> flight;
  bool shared = false;  // the flight is in the single-flight table under key.name()
  bool store = false;   // the answer goes to the cache if it is complete
  bool asked_logprobs = false;
  Endpoint endpoint = Endpoint::chat_completions;
  CacheKey key;             // hex empty: none was made
  GenerationRecord record;  // filled in as the answer comes
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point first_token{};

  // --- the end: each is called exactly once, by the maker -------------------------------------
  // Stores, logs and publishes a whole answer. `body` is passed on byte for byte.
  void complete(std::string body);
  // Publishes an error; tokens that came before it are logged when there are any.
  void fail(AnswerFailure failure, std::string_view reason);
  void fail(const ApiError& error) { fail(to_failure(error), error.message); }

  void publish_chunk(std::string data);

 private:
  void finish_record();
  void leave_table();
};

// Fills tokens, usage, finish_reason, model, fingerprint and logprobs_status of a record from a
// plain answer (upstreams; the engine knows more and fills them itself).
void record_answer(Endpoint endpoint, std::string_view body, bool asked_logprobs,
                   GenerationRecord& record);

// A finish_reason other than an abnormal one in every choice: length stops, filter refusals and
// answers without an end are not kept.
bool is_storable(std::string_view body);

std::string new_generation_id();  // "gen-" + 24 random hex digits
std::string random_hex(std::size_t digits);

}  // namespace fixpoint
