#include "cache/key.hpp"

#include <algorithm>
#include <array>

#include "cache/base/canonical_json.hpp"
#include "cache/base/digest.hpp"

namespace fixpoint {
namespace {

constexpr std::size_t kHexDigits = 64;

// Changes whenever the material of an unchanged request changes: old entries then miss instead of
// answering for something else.
constexpr std::string_view kDomain = "fixpoint-key-v1";

// Does not decide the answer. Whatever is not listed here is in the key, known or not.
constexpr std::array<std::string_view, 8> kExcluded = {
    "stream",             // how the answer travels; one entry serves both forms
    "stream_options",     // which extra chunks a stream carries (usage, obfuscation)
    "timeout",            // how long the caller waits
    "request_timeout",    // the same, under an older name
    "user",               // names the end user for abuse reports; never shown to the model
    "safety_identifier",  // what replaces `user`
    "metadata",           // labels that the provider files with the request
    "prompt_cache_key",   // routes to a server that holds the prefix; speed only
};
constexpr std::size_t kNeverEchoed = 4;  // the first ones

std::string_view kind_name(KeyKind kind) {
  return kind == KeyKind::prompt ? "prompt" : "body";
}

// The bytes to hash: the domain, then "name length\nvalue\n" for each part. The decimal length in
// front makes parts with any bytes in them unambiguous, and the material readable in a terminal.
class Material {
 public:
  // `large` bytes are expected in one part.
  Material(KeyKind kind, std::size_t large) : kind_(kind) {
    text_.reserve(large + 512);
    text_ += kDomain;
    text_ += '\n';
    add("kind", kind_name(kind));
  }

  void add(std::string_view name, std::string_view value) {
    text_ += name;
    text_ += ' ';
    text_ += std::to_string(value.size());
    text_ += '\n';
    text_ += value;
    text_ += '\n';
  }

  CacheKey finish() {
    std::string hex = sha256_hex(text_);
    return {kind_, std::move(hex), std::move(text_)};
  }

 private:
  KeyKind kind_;
  std::string text_;
};

// 4 bytes each, little-endian on every machine.
std::string token_bytes(std::span<const std::int32_t> tokens) {
  std::string bytes;
  bytes.reserve(4 * tokens.size());
  for (const std::int32_t token : tokens) {
    const auto bits = static_cast<std::uint32_t>(token);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xFF);
  }
  return bytes;
}

}  // namespace

std::string CacheKey::name() const {
  return std::string(kind_name(kind)) + ':' + hex;
}

bool same_material(const CacheKey& key, std::string_view stored) {
  return key.material.empty() ? sha256_hex(stored) == key.hex : key.material == stored;
}

Result<CacheKey> parse_key_name(std::string_view name) {
  CacheKey key;
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  if (colon == std::string_view::npos || (kind != "prompt" && kind != "body")) {
    return fail(ErrorCode::invalid, "a key starts with \"prompt:\" or \"body:\"");
  }
  key.kind = kind == "prompt" ? KeyKind::prompt : KeyKind::body;
  const std::string_view hex = name.substr(colon + 1);
  const bool all_hex = std::all_of(hex.begin(), hex.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (hex.size() != kHexDigits || !all_hex) {
    return fail(ErrorCode::invalid, "a key ends in 64 digits of 0-9 and a-f");
  }
  key.hex = hex;
  return key;
}

std::span<const std::string_view> excluded_members(bool echoed) {
  return std::span(kExcluded).first(echoed ? kNeverEchoed : kExcluded.size());
}

Result<CacheKey> body_key(BodyKeyInput input) {
  CanonicalOptions options;
  options.exclude = excluded_members(input.echoed);
  const Result<std::string> request = canonical_json(input.request, options);
  if (!request) return tl::make_unexpected(request.error());
  // Only an object has members, and so only its exclusions can be judged.
  if (!request->starts_with('{')) {
    return fail(ErrorCode::invalid, "the request is not a JSON object");
  }
  input.request = *request;
  return canonical_body_key(input);
}

CacheKey canonical_body_key(const BodyKeyInput& input) {
  Material material(KeyKind::body, input.request.size());
  material.add("tenant", input.tenant);
  material.add("provider", input.provider);
  material.add("base_url", input.base_url);
  material.add("endpoint", input.endpoint);
  material.add("sample", std::to_string(input.sample));
  material.add("request", input.request);
  return material.finish();
}

CacheKey prompt_key(const PromptKeyInput& input) {
  Material material(KeyKind::prompt, 4 * input.tokens.size());
  material.add("tenant", input.tenant);
  material.add("endpoint", input.endpoint);
  material.add("fingerprint", input.fingerprint);
  material.add("sample", std::to_string(input.sample));
  material.add("parameters", input.parameters);
  material.add("tokens", token_bytes(input.tokens));
  return material.finish();
}

}  // namespace fixpoint
