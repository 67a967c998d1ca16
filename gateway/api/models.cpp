#include "gateway/api/models.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

#include "gateway/api/errors.hpp"

namespace fixpoint {
namespace {

using nlohmann::ordered_json;

// The gateway does not know when a model was made; the SDKs want a time.
constexpr const char* kEpoch = "1970-01-01T00:00:00Z";

ordered_json model_json(std::string_view id, const RouteConfig& route, Api api) {
  if (api == Api::anthropic) {
    return {{"type", "model"},
            {"id", id},
            {"display_name", id},
            {"created_at", kEpoch},
            {"lifecycle", "active"}};
  }
  const std::string owner = !route.local.empty()      ? "fixpoint"
                            : !route.upstream.empty() ? route.upstream
                                                      : route.weights.front().name;
  return {{"id", id}, {"object", "model"}, {"created", 0}, {"owned_by", owner}};
}

bool may_use(const Tenant* tenant, std::string_view model) {
  return !tenant || tenant->key.policy.allows(model);
}

Response json_response(const ordered_json& body) {
  Response response;
  response.body = std::make_shared<const std::string>(
      body.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  return response;
}

}  // namespace

Api api_of_client(const Headers& headers) {
  return headers.find("anthropic-version") ? Api::anthropic : Api::openai;
}

Response list_models(const Settings& settings, const Tenant* tenant, Api api) {
  ordered_json data = ordered_json::array();
  for (const auto& route : settings.config.routes) {
    const bool pattern = route.model.find('*') != std::string::npos;
    if (!pattern && may_use(tenant, route.model))
      data.push_back(model_json(route.model, route, api));
  }
  if (api == Api::openai) return json_response({{"object", "list"}, {"data", std::move(data)}});
  const ordered_json first = data.empty() ? ordered_json() : data.front()["id"];
  const ordered_json last = data.empty() ? ordered_json() : data.back()["id"];
  return json_response(
      {{"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}});
}

Response retrieve_model(const Settings& settings, const Tenant* tenant, std::string_view id,
                        Api api, std::string_view request_id) {
  const auto* route = settings.find_route(id);
  if (!route || !may_use(tenant, id)) {
    return to_response(api_error(404, "invalid_request_error", "model_not_found",
                                 "The model '" + std::string(id) + "' does not exist"),
                       api, request_id);
  }
  return json_response(model_json(id, *route->config, api));
}

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

}  // namespace fixpoint
