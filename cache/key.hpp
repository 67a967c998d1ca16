// The cache key: SHA-256 over everything that decides an answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"

namespace fixpoint {

// What the key was made of, and so how far two requests with one key are the same:
// prompt: the rendered token ids and the parameters that reach the sampler of a known local model;
// body: the canonical request of an upstream whose template and tokenizer are not known.
enum class KeyKind { prompt, body };

struct CacheKey {
  KeyKind kind = KeyKind::body;
  std::string hex;       // 64 hex digits
  std::string material;  // the bytes that were hashed; stored, and compared on every hit
  // For people who read a recording, where the material has digests and token ids alone: a JSON
  // object with the client's "request", or with the "headers" that decide. Not hashed, and not in
  // other stores. Empty: the material says it all.
  std::string asked = {};
  std::string name() const;  // "prompt:<hex>" or "body:<hex>", as shown in x-fixpoint-key
};

// Whether stored material is what was hashed: the key's own, or, for a key known by name alone,
// bytes with that digest.
bool same_material(const CacheKey& key, std::string_view stored);

// Parses "prompt:<64 hex>" or "body:<64 hex>". Errors: invalid.
Result<CacheKey> parse_key_name(std::string_view name);

struct BodyKeyInput {
  std::string_view tenant;    // empty: no tenants configured
  std::string_view provider;  // upstream's name in the configuration
  std::string_view base_url;
  std::string_view endpoint;  // "chat.completions", "chat.completions>messages?beta=true"
  std::string_view request;   // JSON object
  std::uint32_t sample = 0;
  bool echoed = false;  // see excluded_members()
};
// Top-level request members that do not decide the answer, each with its reason in key.cpp.
// `echoed`: only those that the answer does not repeat (OpenAI's Responses gives back the request's
// labels, and one request's must not come with another's answer).
std::span<const std::string_view> excluded_members(bool echoed = false);
// Canonicalises the request first. Errors: invalid (malformed JSON, duplicate members).
Result<CacheKey> body_key(BodyKeyInput input);
// For a request that is canonical and without the excluded members already.
CacheKey canonical_body_key(const BodyKeyInput& input);

struct PromptKeyInput {
  std::string_view tenant;
  std::string_view endpoint;     // answers of chat and plain completions differ in shape
  std::string_view fingerprint;  // the engine's: weights, tokenizer, template and numerics profile
  std::span<const std::int32_t> tokens;
  std::string_view
      parameters;  // canonical JSON of the parameters that reach the sampler or the answer's shape
  std::uint32_t sample = 0;
};
CacheKey prompt_key(const PromptKeyInput& input);

}  // namespace fixpoint
