// One answer being made: what its maker and everybody who waits for it share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "cache/token_log.hpp"
#include "gateway/api/answer.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/api/pace.hpp"
#include "gateway/dialects/translate.hpp"
#include "gateway/settings.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

struct Gateway;

// Set by the request that leads a flight, then used by its maker only (an engine callback or a
// relay coroutine, one thread at a time). Kept alive by the maker; the gateway outlives it.
struct AnswerJob {
  explicit AnswerJob(Gateway& owner) : gateway(owner) {}

  Gateway& gateway;
  SettingsPtr settings;
  TenantPtr tenant;
  TokenHoldPtr hold;  // of the tenant's limits; null: it has none
  std::shared_ptr<AnswerFlight> flight;
  std::string flight_key;  // in the single-flight table; empty: the flight is not in it
  std::string request_id;
  Endpoint endpoint = Endpoint::chat_completions;  // the client's
  // From the maker's API to the client's; null: they are the same.
  std::unique_ptr<AnswerTranslator> translator;
  bool store = false;     // the answer goes to the cache if it is whole
  bool replaces = false;  // what is there is not wanted any more
  bool look_up = false;   // and the cache may answer for a fallback
  std::optional<std::int64_t> max_age_s;
  // Makes the key again, where the generation may have changed it (log.fingerprint_epoch).
  std::function<CacheKey()> key_again;
  bool asked_logprobs = false;
  bool faithful = true;      // false: the text of the stream's answer may lack what its events said
  std::string no_logprobs;   // why there are none, where that is known
  CacheKey key;              // hex empty: none was made
  std::string called_model;  // what the maker calls the requested model
  GenerationRecord record;   // filled in as the answer comes
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point first_token{};
  PaceRecorder pace;                              // of the stream
  std::chrono::steady_clock::duration waited{0};  // by the maker, for somebody else

  // Passes an event of the maker's stream on. Errors: protocol, from the translation.
  Result<void> publish(SseEvent event);

  // --- the end: one of these is called exactly once, by the maker -------------------------------
  // Stores (if it is `storable`, too), logs and publishes a whole answer of the maker's. `text` is
  // its JSON; without a translation it is passed on byte for byte. `end` is the maker's end marker.
  // Errors: protocol, from the translation; then fail() must follow.
  Result<void> complete(std::string text, const Json& answer, SseEvent end, bool storable);
  // Publishes an error; tokens that came before it are logged when there are any.
  void fail(AnswerFailure failure, std::string_view reason);
  void fail(const ApiError& error);
  // Ends the flight with an answer that the store has after all.
  void publish_stored(const Entry& entry);
  // Fills the record's tokens, usage, finish_reason, model, fingerprint and logprobs_status.
  void record_summary(AnswerSummary summary);

 private:
  Result<std::vector<SseEvent>> translate(const SseEvent& event);
  void keep(std::shared_ptr<const std::string> body);
  void finish_record();
  void leave();

  std::unique_ptr<StreamAssembler> translated_;  // what the translator has said; null: nothing yet
};

// "gen-", 11 hex digits of the time and 13 random ones: ids of one time lie beside each other in
// the token log's index; wholly random ones would make it twice as dear to write. Nothing may rely
// on their order: it is random within a millisecond, and clocks go back.
std::string new_generation_id(std::int64_t created_ms);
std::string random_hex(std::size_t digits);

}  // namespace fixpoint
