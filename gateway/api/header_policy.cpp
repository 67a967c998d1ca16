#include "gateway/api/header_policy.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "cache/base/digest.hpp"

namespace fixpoint {
namespace {

// Fields of the client's connection, of the gateway itself, of the encoding between the two, or of
// a conditional or partial answer that the gateway could not store. A trailing '*' stands for any
// rest.
constexpr std::array<std::string_view, 20> kNotForwarded = {"host",
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
                                                            "proxy-*",
                                                            "cache-control",
                                                            "x-fixpoint-*",
                                                            "if-*",
                                                            "range",
                                                            "origin"};

constexpr std::array<std::string_view, 4> kCredentials = {"authorization", "x-api-key", "api-key",
                                                          "x-goog-api-key"};

// Forwarded, but known to decide nothing. Vendors' families are listed name by name:
// "cf-access-client-secret" is a key, too.
constexpr std::string_view kHarmless[] = {
    // Who the program is.
    "user-agent", "accept", "accept-language", "sec-*", "x-stainless-*", "x-promptfoo-version",
    "referer", "http-referer", "x-title", "dnt", "priority", "pragma", "x-openai-client-user-agent",
    "x-goog-api-client", "x-amz-user-agent", "x-ms-useragent",
    // One request among others, its time, and how often it was tried.
    "x-request-id", "x-requestid", "request-id", "x-correlation-id", "x-correlationid",
    "correlation-id", "x-client-request-id", "client-request-id", "x-transaction-id", "x-irid",
    "idempotency-key", "x-idempotency-key", "date", "x-request-start", "x-queue-start",
    "grpc-timeout", "x-server-timeout", "x-ms-client-request-id", "x-ms-correlation-request-id",
    "x-ms-request-id", "x-ms-return-client-request-id", "return-client-request-id", "x-ms-date",
    "x-amzn-requestid", "x-amz-cf-id", "x-amz-date", "amz-sdk-invocation-id", "amz-sdk-request",
    "x-vercel-id", "x-nf-request-id", "fly-request-id", "rndr-id", "x-railway-request-id",
    "x-kong-request-id", "cf-request-id", "x-azure-requestchain", "x-tt-logid",
    "x-claude-code-session-id",
    // Traces: W3C's, Zipkin's, Jaeger's, OpenTracing's, OpenCensus's.
    "traceparent", "tracestate", "baggage", "b3", "x-b3-traceid", "x-b3-spanid",
    "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags", "uber-trace-id", "uberctx-*",
    "jaeger-debug-id", "jaeger-baggage", "ot-tracer-traceid", "ot-tracer-spanid",
    "ot-tracer-sampled", "ot-baggage-*", "x-ot-span-context", "grpc-trace-bin", "grpc-tags-bin",
    "x-trace-id", "trace-id", "x-span-id", "span-id", "x-trace",
    // Traces: those of agents and clouds.
    "sentry-trace", "x-datadog-trace-id", "x-datadog-parent-id", "x-datadog-sampling-priority",
    "x-datadog-origin", "x-datadog-tags", "elastic-apm-traceparent", "newrelic", "x-newrelic-id",
    "x-newrelic-transaction", "x-newrelic-synthetics", "x-dynatrace", "x-dtpc", "singularityheader",
    "sw8", "sw8-correlation", "sw8-x", "x-instana-t", "x-instana-s", "x-instana-l",
    "x-honeycomb-trace", "x-trace-options", "pinpoint-traceid", "pinpoint-spanid",
    "pinpoint-pspanid", "pinpoint-sampled", "pinpoint-flags", "pinpoint-pappname",
    "pinpoint-papptype", "pinpoint-host", "eagleeye-traceid", "eagleeye-rpcid", "l5d-ctx-trace",
    "l5d-reqid", "x-amzn-trace-id", "x-cloud-trace-context", "request-context",
    "correlation-context", "x-ms-request-root-id", "fly-traceparent", "fly-tracestate",
    "langsmith-trace", "x-portkey-trace-id", "x-portkey-span-id", "x-portkey-parent-span-id",
    // What load balancers on the way add to every request.
    "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port",
    "x-forwarded-server", "x-forwarded-prefix", "forwarded", "via", "x-real-ip", "cf-ray",
    "cf-connecting-ip", "cf-connecting-ipv6", "cf-ipcountry", "cf-visitor", "cf-warp-tag-id",
    "cf-ew-via", "cdn-loop", "true-client-ip", "x-client-ip", "client-ip", "x-client-port",
    "x-original-forwarded-for", "x-cluster-client-ip", "fastly-client-ip", "fly-client-ip",
    "x-nf-client-connection-ip", "x-vercel-forwarded-for", "x-vercel-proxied-for",
    "x-azure-clientip", "x-azure-socketip", "x-envoy-attempt-count", "x-envoy-external-address",
    "x-envoy-expected-rq-timeout-ms", "x-arr-log-id", "x-arr-ssl", "x-azure-ref"};

// Decide, and are no secret: a recording shows their values.
constexpr std::string_view kShown[] = {"anthropic-version", "anthropic-beta", "openai-beta",
                                       "openai-version", "extra-parameters"};

constexpr std::array<std::string_view, 28> kNotReturned = {
    "connection", "keep-alive", "proxy-*", "te", "trailer", "transfer-encoding", "upgrade",
    "content-length", "date", "server", "content-type", "content-encoding", "set-cookie", "age",
    "cache-control", "cache-status", "vary", "alt-svc", "access-control-*", "location", "refresh",
    "strict-transport-security", "clear-site-data", "content-security-policy*", "nel", "report-to",
    // Orders to a server in between.
    "x-accel-*", "x-sendfile"};

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return equal_ignoring_case(pattern, name);
  pattern.remove_suffix(1);
  return name.size() >= pattern.size() &&
         equal_ignoring_case(name.substr(0, pattern.size()), pattern);
}

template <class Patterns>
bool listed(const Patterns& patterns, std::string_view name) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [&](std::string_view pattern) { return matches(pattern, name); });
}

// The fields that this message's Connection field declares to be hop-by-hop.
std::vector<std::string> named_by_connection(const Headers& headers) {
  std::vector<std::string> names;
  for (const auto& field : headers) {
    if (!equal_ignoring_case(field.name, "connection")) continue;
    std::string name;
    for (const char c : field.value + ",") {
      if (c == ',') {
        if (!name.empty()) names.push_back(std::move(name));
        name.clear();
      } else if (c != ' ' && c != '\t') {
        name += c;
      }
    }
  }
  return names;
}

// Calls visit with the client's fields that go on, without its credentials when they are not for
// the upstream.
template <class Visit>
void visit_forwarded(const Headers& client, bool credentials, const Visit& visit) {
  const auto hop_by_hop = named_by_connection(client);
  for (const auto& field : client) {
    if (listed(kNotForwarded, field.name) || listed(hop_by_hop, field.name)) continue;
    if (!credentials && listed(kCredentials, field.name)) continue;
    visit(field);
  }
}

std::string lower_case(std::string text) {
  for (auto& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool has_key(const UpstreamConfig& upstream) {
  return !upstream.api_key.empty() || !upstream.api_keys.empty();
}

// What Anthropic's API needs of clients that speak another one.
constexpr std::string_view kAnthropicVersion = "2023-06-01";

constexpr std::size_t kShownDigits = 12;

// The host of "host", "host:port", "[v6]:port".
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    return end == std::string_view::npos ? std::string_view{} : authority.substr(1, end - 1);
  }
  return authority.substr(0, authority.find(':'));
}

bool is_this_machine(std::string_view host) {
  const bool four =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return four || host == "::1" || equal_ignoring_case(host, "localhost");
}

}  // namespace

Headers forwarded_headers(const UpstreamConfig& upstream, const std::string* api_key,
                          const Headers& client, bool gateway_key) {
  Headers headers;
  visit_forwarded(client, !api_key && !gateway_key,
                  [&](const Header& field) { headers.add(field.name, field.value); });
  headers.set("Content-Type", "application/json");
  if (upstream.kind == UpstreamKind::anthropic) {
    if (api_key) headers.set("x-api-key", *api_key);
    if (!headers.find("anthropic-version")) {
      headers.add("anthropic-version", std::string(kAnthropicVersion));
    }
  } else if (api_key) {
    headers.set("Authorization", "Bearer " + *api_key);
  } else if (const auto* given = headers.find("x-api-key");
             given != nullptr && !headers.find("authorization")) {
    // A client that speaks Anthropic's API; OpenAI's takes keys in one place only.
    headers.set("Authorization", "Bearer " + *given);
    headers.remove("x-api-key");
  }
  for (const auto& extra : upstream.headers) headers.set(extra.name, extra.value);
  return headers;
}

std::string deciding_headers(const UpstreamConfig& upstream, const Headers& client,
                             bool credentials) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, const std::string& value) {
    lines.push_back(lower_case(name) + ":" + value);
  };
  visit_forwarded(client, credentials && !has_key(upstream), [&](const Header& field) {
    if (listed(kHarmless, field.name)) return;
    const auto replaced = [&](const NamedValue& own) {
      return equal_ignoring_case(own.name, field.name);
    };
    const auto& own = upstream.headers;
    if (std::none_of(own.begin(), own.end(), replaced)) add(field.name, field.value);
  });
  for (const auto& own : upstream.headers) {
    if (!listed(kCredentials, own.name)) add(own.name, own.value);
  }
  std::sort(lines.begin(), lines.end());  // clients order their headers differently
  std::string text;
  for (const auto& line : lines) text += line + "\n";  // a value cannot hold a line end
  return text;
}

std::string shown_headers(const Headers& client) {
  std::map<std::string, std::string> values;
  visit_forwarded(client, false, [&](const Header& field) {
    if (listed(kHarmless, field.name)) return;
    auto& value = values[lower_case(field.name)];
    value += (value.empty() ? "" : ", ") + field.value;
  });
  nlohmann::json shown = nlohmann::json::object();
  for (const auto& [name, value] : values) {
    shown[name] =
        listed(kShown, name) ? value : "sha256:" + sha256_hex(value).substr(0, kShownDigits);
  }
  return shown.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Headers visible_headers(const Headers& upstream) {
  const auto hop_by_hop = named_by_connection(upstream);
  Headers headers;
  for (const auto& field : upstream) {
    if (listed(kNotReturned, field.name) || listed(hop_by_hop, field.name)) continue;
    if (matches("x-fixpoint-*", field.name)) continue;
    headers.add(field.name, field.value);
  }
  return headers;
}

void announce_dropped(const std::vector<std::string>& members, Headers& headers) {
  if (members.empty()) return;
  // Proxies and clients refuse answers with long heads.
  constexpr std::size_t kMaxNames = 1024;
  std::string names;
  for (const auto& name : members) {
    if (!names.empty()) names += ", ";
    const bool fits = names.size() + name.size() <= kMaxNames;
    names += fits ? name : "...";
    if (!fits) break;
  }
  headers.set("x-fixpoint-dropped", names);
}

bool is_foreign_page(const Headers& client, bool loopback_listener) {
  const auto* host = client.find("host");
  if (loopback_listener && host && !is_this_machine(host_of(*host))) return true;
  const auto* origin = client.find("origin");
  if (!origin) return false;
  const auto scheme = origin->find("://");
  if (scheme == std::string::npos) return true;  // "null": a sandboxed page
  const auto authority = std::string_view(*origin).substr(scheme + 3);
  return !is_this_machine(host_of(authority)) && !(host && equal_ignoring_case(authority, *host));
}

}  // namespace fixpoint
