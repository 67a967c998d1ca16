// Which path is answered by what.
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "gateway/admin.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/api/generate.hpp"
#include "gateway/api/header_policy.hpp"
#include "gateway/api/job.hpp"
#include "gateway/gateway.hpp"
#include "gateway/log.hpp"

namespace fixpoint {
namespace {

using nlohmann::ordered_json;
using std::chrono::steady_clock;

Response json_response(int status, const ordered_json& body) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(body.dump());
  return response;
}

Response method_not_allowed(const char* allowed) {
  Response response = to_response(api_error(405, "invalid_request_error", "method_not_allowed",
                                            std::string("This path takes ") + allowed + " only"));
  response.headers.add("Allow", allowed);
  return response;
}

// Local models, and routes that name one model; a pattern is no model that a client could ask for.
Response list_models(const Gateway& gateway) {
  ordered_json data = ordered_json::array();
  for (const auto& route : gateway.config.routes) {
    if (route.model.find('*') != std::string::npos) continue;
    const std::string owner = route.local.empty() ? route.upstream : "fixpoint";
    data.push_back({{"id", route.model}, {"object", "model"}, {"created", 0}, {"owned_by", owner}});
  }
  return json_response(200, {{"object", "list"}, {"data", std::move(data)}});
}

// Names such as "org%2Fmodel". What is no escape stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const from = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(from, from + 2, value, 16).ptr == from + 2;
    out += escape ? static_cast<char>(value) : text[i];
    if (escape) i += 2;
  }
  return out;
}

Response retrieve_model(const Gateway& gateway, const std::string& id) {
  const auto* route = gateway.config.find_route(id);
  if (!route) {
    return to_response(api_error(404, "invalid_request_error", "model_not_found",
                                 "The model '" + id + "' does not exist"));
  }
  const std::string owner = route->local.empty() ? route->upstream : "fixpoint";
  return json_response(200, {{"id", id}, {"object", "model"}, {"created", 0}, {"owned_by", owner}});
}

Response metrics(const Gateway& gateway) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = std::make_shared<const std::string>(gateway.registry.render());
  return response;
}

Response ready(const Gateway& gateway) {
  const bool is_ready = gateway.ready.load(std::memory_order_acquire);
  return json_response(is_ready ? 200 : 503, {{"status", is_ready ? "ready" : "loading models"}});
}

constexpr const char* kPurgePath = "/admin/cache/purge";

struct Target {
  std::string name;  // label of metrics and access log
  bool is_generation = false;
  Endpoint endpoint = Endpoint::chat_completions;
};

Target target_of(const std::string& path) {
  if (path == "/v1/chat/completions") return {"chat.completions", true, Endpoint::chat_completions};
  if (path == "/v1/completions") return {"completions", true, Endpoint::completions};
  if (path == "/v1/models" || path.starts_with("/v1/models/")) return {"models"};
  if (path == kPurgePath) return {"admin"};
  if (path == "/healthz" || path == "/readyz" || path == "/metrics") return {path.substr(1)};
  return {"other"};
}

Response answer_get(const Gateway& gateway, const std::string& path) {
  if (path == "/healthz") return json_response(200, {{"status", "ok"}});
  if (path == "/readyz") return ready(gateway);
  if (path == "/metrics") return metrics(gateway);
  if (path == "/v1/models") return list_models(gateway);
  return retrieve_model(gateway, percent_decoded(path.substr(std::string("/v1/models/").size())));
}

Response not_ready() {
  ApiError error =
      api_error(503, "server_error", "loading", "The gateway is still loading its models");
  error.headers.add("Retry-After", "1");
  return to_response(error);
}

Task<Response> answer_admin(Gateway& gateway, const Request& request) {
  if (!admin_allowed(gateway, request)) {
    co_return to_response(
        api_error(401, "invalid_request_error", "invalid_admin_token",
                  "Admin paths need the token that the gateway wrote beside its cache"));
  }
  if (request.method != "POST") co_return method_not_allowed("POST");
  const auto removed = co_await admin_purge(gateway, request);
  if (!removed) co_return to_response(removed.error());
  const ordered_json body = {{"removed", *removed}};
  co_return json_response(200, body);
}

Task<int> dispatch(Gateway& gateway, const Target& target, const Request& request,
                   ResponseWriter& writer, const std::string& request_id) {
  Response response;
  if (is_foreign_page(request.headers, !gateway.config.server.allow_public)) {
    response = to_response(
        api_error(403, "invalid_request_error", "foreign_origin",
                  "The request comes from a web page of another origin, or names another "
                  "host: this gateway serves programs on this machine"));
  } else if (target.is_generation) {
    const bool is_ready = gateway.ready.load(std::memory_order_acquire);
    if (request.method == "POST" && is_ready) {
      const int status = co_await generate(gateway, target.endpoint, request, writer, request_id);
      co_return status;
    }
    response = is_ready ? method_not_allowed("POST") : not_ready();
  } else if (target.name == "admin") {
    response = co_await answer_admin(gateway, request);
  } else if (target.name == "other") {
    response = to_response(api_error(404, "invalid_request_error", "unknown_url",
                                     "Unknown path: " + request.method + " " + request.path));
  } else if (request.method != "GET" && request.method != "HEAD") {
    response = method_not_allowed("GET");
  } else {
    response = answer_get(gateway, request.path);
  }
  response.headers.add("x-request-id", request_id);
  const auto sent = co_await writer.send(response);
  co_return sent ? response.status : 499;
}

// Counts and logs one request when it is over, also when the client's leaving cancelled it.
class Accounting {
 public:
  Accounting(Gateway& gateway, const Request& request, const Target& target, const std::string& id)
      : gateway_(gateway), request_(request), target_(target), id_(id) {}
  ~Accounting() {
    const double seconds = std::chrono::duration<double>(steady_clock::now() - started_).count();
    gateway_.metrics.count_request(target_.name, status_, seconds);
    if (!log_enabled(LogLevel::info)) return;
    log_info(request_.method + " " + request_.path + " status=" + std::to_string(status_) +
             " ms=" + std::to_string(seconds * 1000) + " peer=" + request_.peer + " id=" + id_);
  }
  Accounting(const Accounting&) = delete;
  Accounting& operator=(const Accounting&) = delete;
  void answered(int status) { status_ = status; }

 private:
  Gateway& gateway_;
  const Request& request_;
  const Target& target_;
  const std::string& id_;
  steady_clock::time_point started_ = steady_clock::now();
  int status_ = 499;  // the client left, in the words of nginx
};

Task<void> handle(Gateway& gateway, const Request& request, ResponseWriter& writer) {
  const std::string request_id = "req-" + random_hex(24);
  const Target target = target_of(request.path);
  Accounting accounting(gateway, request, target, request_id);
  const int status = co_await dispatch(gateway, target, request, writer, request_id);
  accounting.answered(status);
}

}  // namespace

Handler make_handler(Gateway& gateway) {
  return [&gateway](const Request& request, ResponseWriter& writer) {
    return handle(gateway, request, writer);
  };
}

}  // namespace fixpoint
