// Keys of whoever answers: models, upstreams, routes, prices.
#include <array>
#include <chrono>

#include "gateway/config_keys.hpp"
#include "gateway/config_units.hpp"

namespace fixpoint::config {
namespace {

constexpr std::uint64_t kPriceMax = 1'000'000;  // US dollars per million tokens

constexpr std::array kPriceKeys{
    Key<PriceConfig>{{"model", KeyType::text,
                      "Model as the answer, the upstream or the client calls it; `*` stands for "
                      "any text. The first price "
                      "that matches counts.",
                      1, kNameMax, true},
                     &PriceConfig::model},
    Key<PriceConfig>{
        {"input", KeyType::number, "US dollars per million prompt tokens.", 0, kPriceMax, true},
        &PriceConfig::input},
    Key<PriceConfig>{{"output", KeyType::number, "US dollars per million completion tokens.", 0,
                      kPriceMax, true},
                     &PriceConfig::output},
    Key<PriceConfig>{{"cached_input", KeyType::number,
                      "US dollars per million prompt tokens that the provider's own cache had.", 0,
                      kPriceMax, false, "`prices[].input`"},
                     &PriceConfig::cached_input},
};

constexpr std::array kModelKeys{
    Key<ModelConfig>{
        {"name", KeyType::name, "How routes call this local model.", 1, kNameMax, true},
        &ModelConfig::name,
        kAtStart},
    Key<ModelConfig>{{"path", KeyType::text,
                      "GGUF file, folder in Hugging Face's form, or a known name (`fixpoint model "
                      "list`) that is looked up in `data_dir/models`.",
                      1, kTextMax, true},
                     &ModelConfig::path,
                     kAtStart},
    Key<ModelConfig>{
        {"threads", KeyType::integer, "Threads that compute; 0: one per hardware thread.", 0, 256},
        &ModelConfig::threads,
        kAtStart},
    Key<ModelConfig>{
        {"context", KeyType::integer, "Tokens per sequence; 0: the model's own.", 0, 1'048'576},
        &ModelConfig::context,
        kAtStart},
    Key<ModelConfig>{{"max_batch", KeyType::integer, "Sequences that decode together.", 1, 256},
                     &ModelConfig::max_batch,
                     kAtStart},
    Key<ModelConfig>{{"kv_bytes", KeyType::size, "Memory for the keys and values of all sequences.",
                      kMiB, 1024 * kGiB},
                     &ModelConfig::kv_bytes,
                     kAtStart},
    Key<ModelConfig>{
        {"max_queue", KeyType::integer, "Requests that may wait; more are refused.", 1, 65536},
        &ModelConfig::max_queue,
        kAtStart},
};

constexpr std::array kUpstreamKeys{
    Key<UpstreamConfig>{
        {"name", KeyType::name, "How routes call this upstream; part of the cache key.", 1,
         kNameMax, true},
        &UpstreamConfig::name},
    Key<UpstreamConfig>{
        {"base_url", KeyType::name, "As SDKs want it, for example `https://api.openai.com/v1`.", 1,
         kTextMax, true},
        &UpstreamConfig::base_url},
    Key<UpstreamConfig>{{"kind", KeyType::choice, "The API that it speaks."},
                        &UpstreamConfig::kind},
    Key<UpstreamConfig>{
        {"api_key", KeyType::secret,
         "Sent as `Authorization: Bearer` (`anthropic`: `x-api-key`). Empty, and no "
         "`api_keys`: the client's own key passes through, until there are gateway keys.",
         0, kTextMax},
        &UpstreamConfig::api_key},
    Key<UpstreamConfig>{
        {"api_keys", KeyType::secrets,
         "Several keys instead of `api_key`: the next one is taken after a 429.", 1, kTextMax},
        &UpstreamConfig::api_keys},
    Key<UpstreamConfig>{{"model_names", KeyType::mapping,
                         "Requested model (`*` stands for any text) to its name at this upstream; "
                         "the first match counts. Others keep their name.",
                         1, kNameMax},
                        &UpstreamConfig::model_names},
    Key<UpstreamConfig>{
        {"headers", KeyType::headers, "Header fields added to every request.", 0, kTextMax},
        &UpstreamConfig::headers},
    Key<UpstreamConfig>{{"ca_file", KeyType::text,
                         "PEM file of the authorities to trust. Empty: the system's.", 0, kTextMax},
                        &UpstreamConfig::ca_file},
    Key<UpstreamConfig>{
        {"verify_tls", KeyType::boolean, "Check the upstream's certificate and host name."},
        &UpstreamConfig::verify_tls},
    Key<UpstreamConfig>{{"connect_timeout", KeyType::duration,
                         "Name look-up, connection and TLS handshake together.", 1, kHour},
                        &UpstreamConfig::connect_timeout},
    Key<UpstreamConfig>{
        {"first_byte_timeout", KeyType::duration, "Time for an answer to begin.", 1, kDay},
        &UpstreamConfig::first_byte_timeout},
    Key<UpstreamConfig>{{"between_bytes_timeout", KeyType::duration,
                         "Time between two pieces of an answer.", 1, kDay},
                        &UpstreamConfig::between_bytes_timeout},
    Key<UpstreamConfig>{{"total_timeout", KeyType::duration,
                         "Time from the request to the answer's end, with all attempts; 0s: no "
                         "limit.",
                         0, kDay},
                        &UpstreamConfig::total_timeout},
    Key<UpstreamConfig>{{"idle_ttl", KeyType::duration,
                         "An idle connection older than this is not used again.", 1, kDay},
                        &UpstreamConfig::idle_ttl},
    Key<UpstreamConfig>{
        {"max_connections", KeyType::integer,
         "Connections per serving thread; beyond: refused as overloaded.", 1, 65536},
        &UpstreamConfig::max_connections},
    Key<UpstreamConfig>{{"max_idle_connections", KeyType::integer,
                         "Connections kept open per serving thread.", 0, 65536},
                        &UpstreamConfig::max_idle_connections},
    Key<UpstreamConfig>{{"max_response_bytes", KeyType::size, "Longest answer.", kKiB, 4 * kGiB},
                        &UpstreamConfig::max_response_bytes},
    Key<UpstreamConfig>{
        {"proxy", KeyType::secret,
         "HTTP proxy on the way, `http://[user:password@]host[:port]`. Empty: none.", 0, kTextMax},
        &UpstreamConfig::proxy},
    Key<UpstreamConfig>{{"max_concurrency", KeyType::integer,
                         "Calls at a time, over all threads; 0: no limit.", 0, 65536},
                        &UpstreamConfig::max_concurrency},
    Key<UpstreamConfig>{{"max_queue", KeyType::integer,
                         "Calls that may wait for `max_concurrency`; beyond: 429 with "
                         "`Retry-After`.",
                         0, 1'000'000},
                        &UpstreamConfig::max_queue},
    Key<UpstreamConfig>{{"queue_timeout", KeyType::duration,
                         "Longest wait for `max_concurrency`; then 429.", 1, kHour},
                        &UpstreamConfig::queue_timeout},
    Key<UpstreamConfig>{{"retries", KeyType::integer,
                         "Further attempts after a failure that may pass, before any content was "
                         "sent.",
                         0, 10},
                        &UpstreamConfig::retries},
    Key<UpstreamConfig>{{"breaker_failures", KeyType::integer,
                         "Failures in a row after which no calls are made for a while; 0: "
                         "always call.",
                         0, 10'000},
                        &UpstreamConfig::breaker_failures},
    Key<UpstreamConfig>{{"breaker_cooldown", KeyType::duration,
                         "That while; then one call tries again, and another in each such while "
                         "until one has its answer.",
                         1, kHour},
                        &UpstreamConfig::breaker_cooldown},
    Key<UpstreamConfig>{{"ask_for_usage", KeyType::boolean,
                         "Adds `stream_options.include_usage` to streams, so that their usage is "
                         "known: without it tokens are estimated from the text."},
                        &UpstreamConfig::ask_for_usage},
};

constexpr std::array kRouteKeys{
    Key<RouteConfig>{{"model", KeyType::text,
                      "Requested model; `*` stands for any text. The first route that matches "
                      "answers.",
                      1, kNameMax, true},
                     &RouteConfig::model},
    Key<RouteConfig>{
        {"upstream", KeyType::name,
         "Name of the upstream that answers. Exactly one of `upstream`, `weights` and `local`.", 0,
         kNameMax},
        &RouteConfig::upstream},
    Key<RouteConfig>{{"weights", KeyType::mapping,
                      "Names of upstreams that share the requests, with their shares: whole "
                      "numbers in 1 .. 1000000. A request whose answer is kept always asks the "
                      "same one while that is up. One that cannot take a request is no choice for "
                      "it.",
                      1, kNameMax},
                     &RouteConfig::weights},
    Key<RouteConfig>{
        {"fallbacks", KeyType::names,
         "Names of upstreams to ask, in this order, when the chosen one fails or cannot take the "
         "request.",
         1, kNameMax},
        &RouteConfig::fallbacks},
    Key<RouteConfig>{{"local", KeyType::name, "Name of the local model that answers.", 0, kNameMax},
                     &RouteConfig::local},
    Key<RouteConfig>{{"repro_model", KeyType::name,
                      "Name of the local model that answers requests tagged reproducible. "
                      "Empty: `local`, if set.",
                      0, kNameMax},
                     &RouteConfig::repro_model},
    Key<RouteConfig>{{"repro", KeyType::choice,
                      "The tag of requests that carry none; `preferred` falls back to the "
                      "upstream, `required` never does."},
                     &RouteConfig::repro},
    Key<RouteConfig>{{"cache", KeyType::choice, "As `cache.policy`, for this route.", 0, 0, false,
                      "`cache.policy`"},
                     &RouteConfig::cache},
};

}  // namespace

template <>
std::span<const Key<PriceConfig>> keys() {
  return kPriceKeys;
}
template <>
std::span<const Key<ModelConfig>> keys() {
  return kModelKeys;
}
template <>
std::span<const Key<UpstreamConfig>> keys() {
  return kUpstreamKeys;
}
template <>
std::span<const Key<RouteConfig>> keys() {
  return kRouteKeys;
}

}  // namespace fixpoint::config
