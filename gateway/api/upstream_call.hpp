// The calls that upstreams get for a client's request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/key.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/dialects/translate.hpp"
#include "gateway/settings.hpp"
#include "gateway/telemetry/trace.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

struct Gateway;

// A request for upstreams that speak the other API, of which each endpoint has one counterpart.
// Immutable, so that the attempts share it.
struct Translation {
  Json tree;  // the client's, which answers are translated by
  TranslatedRequest request;
};
using TranslationPtr = std::shared_ptr<const Translation>;
// Errors: 400, naming what cannot be translated.
ApiResult<TranslationPtr> translate_for(Endpoint client, Endpoint maker, const std::string& body);

// What is left of a request when its client may be gone: everything that a call is built from.
struct UpstreamWork {
  SettingsPtr settings;
  TenantPtr tenant;                    // null: the gateway has no keys
  std::vector<UpstreamPtr> upstreams;  // to try, in order; never empty
  Endpoint endpoint = Endpoint::chat_completions;
  RequestPtr request;
  TranslationPtr translation;  // null: not made yet, or not needed
  std::string model;           // requested
  std::uint32_t sample = 0;
  bool stream = false;
  bool wants_usage = false, wants_logprobs = false;
  bool directives_in_metadata = false;
  std::optional<TraceContext> trace;  // unset: the client's own trace headers pass
};

// One call, and how its answer becomes the client's.
struct UpstreamCall {
  Endpoint endpoint = Endpoint::chat_completions;  // the one that is called
  UpstreamRequest request;
  std::unique_ptr<AnswerTranslator> translator;  // null: the client's own API
  std::vector<std::string> dropped;              // members that the translation left out
  bool strip_logprobs = false;                   // the gateway asked for them, not the client
  std::optional<KeyRing::Key> key;
};

// The client's body, changed only where the configuration says so: the model's name, the API,
// stream_options.include_usage (usage is what budgets and the cache's plain form need), and
// log-probabilities for the token log where `inject_logprobs`. Errors: 400.
ApiResult<UpstreamCall> build_upstream_call(const UpstreamWork& work, Upstream& upstream,
                                            bool inject_logprobs);

// The key under which this upstream's answer is stored. Precondition: the body was read before, and
// the upstream has the endpoint.
CacheKey key_at(const Gateway& gateway, const UpstreamWork& work, const Upstream& upstream);

}  // namespace fixpoint
