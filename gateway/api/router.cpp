// Which path is answered by what, and for whom.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gateway/admin.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/api/exchange.hpp"
#include "gateway/api/generate.hpp"
#include "gateway/api/header_policy.hpp"
#include "gateway/api/models.hpp"
#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kModels = "/v1/models";

struct Target {
  RequestKind kind = RequestKind::other;
  std::optional<Endpoint> endpoint = {};  // of a request for an answer
};

Target target_of(const std::string& path) {
  if (const auto endpoint = endpoint_of_path(path)) return {kind_of(*endpoint), endpoint};
  if (path == kModels || path.starts_with(std::string(kModels) + "/")) return {RequestKind::models};
  if (path.starts_with("/admin/")) return {RequestKind::admin};
  if (path == "/healthz") return {RequestKind::healthz};
  if (path == "/readyz") return {RequestKind::readyz};
  if (path == "/metrics") return {RequestKind::metrics};
  return {};
}

Api api_for(const Target& target, const Headers& headers) {
  return target.endpoint ? api_of(*target.endpoint) : api_of_client(headers);
}

void set_request_id(const std::string& id, Api api, Headers& headers) {
  headers.set("x-request-id", id);
  if (api == Api::anthropic) headers.set("request-id", id);
}

Response json_response(int status, const ordered_json& body) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(body.dump());
  return response;
}

Response metrics_response(const Gateway& gateway) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = std::make_shared<const std::string>(gateway.registry.render());
  return response;
}

Response ready_response(const Gateway& gateway) {
  const bool is_ready = gateway.ready.load(std::memory_order_acquire);
  return json_response(is_ready ? 200 : 503, {{"status", is_ready ? "ready" : "loading models"}});
}

Response models_response(const Gateway& gateway, const Request& request, const Exchange& exchange) {
  const auto settings = gateway.settings();
  const Tenant* tenant = exchange.tenant.get();
  const Api api = api_of_client(request.headers);
  if (request.path == kModels) return list_models(*settings, tenant, api);
  const auto id = percent_decoded(request.path.substr(kModels.size() + 1));
  return retrieve_model(*settings, tenant, id, api, exchange.id);
}

// The path's answer to GET; nothing for paths that GET is not for.
std::optional<Response> answer_get(const Gateway& gateway, const Request& request,
                                   const Exchange& exchange) {
  switch (exchange.kind) {
    case RequestKind::healthz:
      return json_response(200, {{"status", "ok"}});
    case RequestKind::readyz:
      return ready_response(gateway);
    case RequestKind::metrics:
      return metrics_response(gateway);
    case RequestKind::models:
      return models_response(gateway, request, exchange);
    default:
      return {};
  }
}

ApiError not_ready() {
  ApiError error =
      api_error(503, "server_error", "loading", "The gateway is still loading its models");
  error.headers.add("Retry-After", "1");
  return error;
}

// What keeps a request from its path; nothing: it may pass. Looks at the head alone. Sets the
// tenant.
std::optional<ApiError> refusal(const Gateway& gateway, const Target& target,
                                const Request& request, TenantPtr& tenant) {
  if (is_foreign_page(request.headers, gateway.loopback && !gateway.tenants->any())) {
    return api_error(403, "invalid_request_error", "foreign_origin",
                     "The request comes from a web page of another origin, or names another "
                     "host: this gateway serves programs on this machine");
  }
  if (target.kind == RequestKind::other) {
    return api_error(404, "invalid_request_error", "unknown_url",
                     "Unknown path: " + request.method + " " + request.path);
  }
  const bool needs_key = target.endpoint || target.kind == RequestKind::models;
  if (needs_key && gateway.tenants->any()) {
    const auto presented = presented_key(request.headers);
    tenant = gateway.tenants->authenticate(presented);
    if (!tenant) return unknown_key(!presented.empty());
  }
  if (target.kind == RequestKind::admin) return refuse_admin(gateway, request);
  if (target.endpoint) {
    if (request.method != "POST") return method_not_allowed("POST");
    if (!gateway.ready.load(std::memory_order_acquire)) return not_ready();
  } else if (request.method != "GET" && request.method != "HEAD") {
    return method_not_allowed("GET");
  }
  return {};
}

// Without a handler.
Response refused_response(const ApiError& error, Api api, Exchange& exchange) {
  auto response = to_response(error, api, exchange.id);
  set_request_id(exchange.id, api, response.headers);
  exchange.status = error.status;
  exchange.answered_bytes(response.body->size());
  return response;
}

Task<void> dispatch(Gateway& gateway, const Target& target, const RequestPtr& request,
                    ResponseWriter& writer, Exchange& exchange) {
  const Api api = api_for(target, request->headers);
  const auto refused = refusal(gateway, target, *request, exchange.tenant);
  if (refused) {
    co_await send_error(*refused, api, writer, exchange);
    co_return;
  }
  if (target.endpoint) {
    const Endpoint endpoint = *target.endpoint;
    co_await generate(gateway, endpoint, request, writer, exchange);
    co_return;
  }
  Response response;
  if (target.kind == RequestKind::admin) {
    response = co_await answer_admin(gateway, request);
  } else {
    response = answer_get(gateway, *request, exchange).value();
  }
  set_request_id(exchange.id, api, response.headers);
  if (response.body) exchange.answered_bytes(response.body->size());
  const auto sent = co_await writer.send(response);
  exchange.status = sent ? response.status : 499;
}

Task<void> handle(Gateway& gateway, const RequestPtr& request, ResponseWriter& writer) {
  const Target target = target_of(request->path);
  Exchange exchange(gateway, *request, target.kind);
  co_await dispatch(gateway, target, request, writer, exchange);
}

}  // namespace

Handler make_handler(Gateway& gateway) {
  return [&gateway](const RequestPtr& request, ResponseWriter& writer) {
    return handle(gateway, request, writer);
  };
}

Refusal make_refusal(Gateway& gateway) {
  return [&gateway](const Request& request, const RequestError& error) {
    const Target target = target_of(request.path);
    Exchange exchange(gateway, request, target.kind);
    const char* type = error.status < 500 ? "invalid_request_error" : "server_error";
    return refused_response(api_error(error.status, type, error.code, error.message),
                            api_for(target, request.headers), exchange);
  };
}

HeadCheck make_head_check(Gateway& gateway) {
  return [&gateway](const Request& request) -> std::optional<Response> {
    const Target target = target_of(request.path);
    // Most pass; an exchange is counted.
    TenantPtr tenant;
    const auto error = refusal(gateway, target, request, tenant);
    if (!error) return {};
    Exchange exchange(gateway, request, target.kind);
    exchange.tenant = std::move(tenant);
    return refused_response(*error, api_for(target, request.headers), exchange);
  };
}

}  // namespace fixpoint
