// What the admin API does.
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/admin.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/json_guard.hpp"
#include "gateway/tenants/key_json.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKeys = "/admin/keys";
constexpr std::string_view kRevoke = "/revoke";
constexpr std::string_view kUsage = "/usage";

Response json_response(const Json& body, int status = 200) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(
      body.dump(-1, ' ', false, Json::error_handler_t::replace));
  return response;
}

Response error_response(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid:
      return to_response(bad_request(error.message));
    case ErrorCode::not_found:
      return to_response(api_error(404, "invalid_request_error", "not_found", error.message));
    default:
      return to_response(api_error(500, "server_error", "store_error", error.message));
  }
}

Result<EntryFilter> read_filter(const Json& json) {
  if (!json.is_object()) return fail(ErrorCode::invalid, "The body must be a JSON object");
  EntryFilter filter;
  bool all = false;
  for (const auto& [name, value] : json.items()) {
    if (name == "key" && value.is_string()) {
      filter.key = value.get<std::string>();
    } else if (name == "model" && value.is_string()) {
      filter.model = value.get<std::string>();
    } else if (name == "tenant" && value.is_string()) {
      filter.tenant = value.get<std::string>();
    } else if (name == "older_than_ms" && value.is_number_integer()) {
      filter.older_than_ms = value.get<std::int64_t>();
    } else if (name == "all" && value.is_boolean()) {
      all = value.get<bool>();
    } else {
      return fail(ErrorCode::invalid,
                  "'" + name +
                      "' is not one of key, model, tenant (strings), older_than_ms (Unix "
                      "milliseconds), all (true)");
    }
  }
  // A script whose variables are empty must not remove what several gateways share.
  const bool any = filter.key || filter.model || filter.tenant || filter.older_than_ms;
  if (any == all) {
    return fail(ErrorCode::invalid,
                "Say what to remove: key, model, tenant, older_than_ms (all given ones must "
                "hold), or \"all\": true alone");
  }
  return filter;
}

Response purge(Store* store, const std::string& body) {
  if (store == nullptr) return to_response(bad_request("The cache is switched off"));
  const Result<Json> json = parse_json(body);
  if (!json) return error_response(json.error());
  const Result<EntryFilter> filter = read_filter(*json);
  if (!filter) return error_response(filter.error());
  const Result<std::uint64_t> removed = store->purge(*filter);
  if (!removed) return error_response(removed.error());
  return json_response({{"removed", *removed}});
}

Response list(const Tenants& tenants) {
  Json data = Json::array();
  for (const KeyStatus& status : tenants.list()) data.push_back(key_json(status));
  return json_response({{"data", std::move(data)}});
}

Response create(Tenants& tenants, const std::string& body) {
  const Result<Json> json = parse_json(body);
  if (!json) return error_response(json.error());
  const Result<NewKey> wanted = read_new_key(*json);
  if (!wanted) return error_response(wanted.error());
  const Result<CreatedKey> created = tenants.create(*wanted);
  if (!created) return error_response(created.error());
  Json answer = key_json(created->key);
  answer["secret"] = created->secret;
  Response response = json_response(answer, 201);
  response.headers.add("Cache-Control", "no-store");
  return response;
}

Response change(Tenants& tenants, const std::string& id, const std::string& body) {
  const Result<ApiKey> key = tenants.find(id);
  if (!key) return error_response(key.error());
  const Result<Json> json = parse_json(body);
  if (!json) return error_response(json.error());
  const Result<KeyPolicy> policy = read_policy(*json, key->policy);
  if (!policy) return error_response(policy.error());
  const Result<ApiKey> changed = tenants.update(id, *policy);
  return changed ? json_response(key_json(*changed)) : error_response(changed.error());
}

Response revoke(Tenants& tenants, const std::string& id) {
  const Result<ApiKey> revoked = tenants.revoke(id);
  return revoked ? json_response(key_json(*revoked)) : error_response(revoked.error());
}

Response usage(Tenants& tenants, const std::string& id) {
  const Result<std::vector<MonthlyUsage>> months = tenants.usage(id);
  if (!months) return error_response(months.error());
  Json data = Json::array();
  for (const MonthlyUsage& one : *months) data.push_back(usage_json(one.month, one.usage));
  return json_response({{"id", id}, {"data", std::move(data)}});
}

// `rest` is what follows "/admin/keys/".
Response administer_key(Tenants& tenants, const Request& request, std::string_view rest) {
  if (rest.ends_with(kRevoke)) {
    if (request.method != "POST") return to_response(method_not_allowed("POST"));
    return revoke(tenants, std::string(rest.substr(0, rest.size() - kRevoke.size())));
  }
  if (rest.ends_with(kUsage)) {
    if (request.method != "GET") return to_response(method_not_allowed("GET"));
    return usage(tenants, std::string(rest.substr(0, rest.size() - kUsage.size())));
  }
  if (request.method != "PATCH") return to_response(method_not_allowed("PATCH"));
  return change(tenants, std::string(rest), request.body);
}

Response route(Store* store, Tenants& tenants, const Request& request) {
  const std::string_view path = request.path;
  if (path == kPurgePath) {
    return request.method == "POST" ? purge(store, request.body)
                                    : to_response(method_not_allowed("POST"));
  }
  if (path == kKeys) {
    if (request.method == "GET") return list(tenants);
    return request.method == "POST" ? create(tenants, request.body)
                                    : to_response(method_not_allowed("GET, POST"));
  }
  if (path.starts_with(kKeys) && path[kKeys.size()] == '/') {
    return administer_key(tenants, request, path.substr(kKeys.size() + 1));
  }
  return to_response(api_error(404, "invalid_request_error", "unknown_url",
                               "Unknown path: " + request.method + " " + request.path));
}

}  // namespace

Response administer(Store* store, Tenants& tenants, const Request& request) {
  try {
    return route(store, tenants, request);
  } catch (const std::exception& error) {  // no memory, no randomness: not the gateway's end
    return to_response(api_error(500, "server_error", "internal_error", error.what()));
  }
}

}  // namespace fixpoint
