// keys create | list | revoke | usage.
#include <cmath>
#include <filesystem>
#include <iomanip>

#include "gateway/admin.hpp"
#include "gateway/admin_file.hpp"
#include "gateway/cli/output.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/safe_text.hpp"
#include "gateway/tenants/key_json.hpp"

namespace fixpoint::cli {
namespace {

// Asks the admin API: of the gateway that runs on this data folder, else of this process, which
// then is the key file's only user.
Result<Json> ask(const Config& config, const std::string& method, const std::string& path,
                 const Json& body = nullptr) {
  TenantsOptions options;
  options.path = key_file_of(config.data_dir);
  const auto tenants = Tenants::open(options);
  if (tenants) {
    Request request;
    request.method = method;
    request.path = path;
    if (!body.is_null()) request.body = body.dump();
    const Response response = administer(nullptr, **tenants, request);
    return admin_result(response.status, *response.body);
  }
  if (tenants.error().code != ErrorCode::io) return tl::make_unexpected(tenants.error());
  auto answer = ask_gateway(config.data_dir, method, path, body);
  if (!answer && answer.error().code == ErrorCode::unreachable) {
    return tl::make_unexpected(tenants.error());
  }
  return answer;
}

// Only `keys create` makes a key file.
bool has_keys(const Config& config) {
  std::error_code code;
  return std::filesystem::exists(key_file_of(config.data_dir), code);
}

// Other text must not get into a path.
bool may_be_there(const Config& config, const std::string& id) {
  return looks_like_key_id(id) && has_keys(config);
}

Error no_such_key(const std::string& id) {
  return {ErrorCode::not_found, "there is no key " + id};
}

Json new_key_json(const NewKeyArguments& arguments) {
  Json json{{"name", arguments.name}};
  if (arguments.cache_namespace) json["namespace"] = *arguments.cache_namespace;
  if (!arguments.models.empty()) json["models"] = arguments.models;
  const auto add = [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  };
  add("requests_per_minute", arguments.requests_per_minute);
  add("tokens_per_minute", arguments.tokens_per_minute);
  add("monthly_tokens", arguments.monthly_tokens);
  add("monthly_usd", arguments.monthly_usd);
  return json;
}

// Answers come from a gateway of our own version or a newer one: a member may be missing.
std::string text_at(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name)) return "-";
  const Json& value = json[name];
  if (value.is_string()) return safe_text(value.get<std::string>());
  return value.is_null() ? "-" : safe_text(value.dump());
}

// Doubles of small amounts would print as 5e-05.
std::string dollars_at(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name) || !json[name].is_number()) return "-";
  return format_dollars(std::llround(json[name].get<double>() * kDollar));
}

Json member(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) ? json[name] : Json(nullptr);
}

// A column of exactly this many characters would still have a space behind it.
void write_cell(std::ostream& out, const std::string& text, int width) {
  out << std::left << std::setw(width) << text << ' ';
}

void write_number(std::ostream& out, const std::string& text, int width) {
  out << std::right << std::setw(width) << text << ' ';
}

void write_usage_header(std::ostream& out) {
  write_number(out, "requests", 10);
  write_number(out, "prompt", 12);
  write_number(out, "completion", 12);
  write_number(out, "dollars", 12);
}

void write_usage(std::ostream& out, const Json& usage) {
  write_number(out, text_at(usage, "requests"), 10);
  write_number(out, text_at(usage, "prompt_tokens"), 12);
  write_number(out, text_at(usage, "completion_tokens"), 12);
  write_number(out, dollars_at(usage, "cost_usd"), 12);
}

void write_keys(std::ostream& out, const Json& keys) {
  write_cell(out, "id", 16);
  write_cell(out, "name", 20);
  write_cell(out, "namespace", 16);
  write_cell(out, "state", 8);
  write_number(out, "req/min", 10);
  write_number(out, "tok/min", 10);
  write_number(out, "tok/month", 12);
  write_number(out, "$/month", 10);
  out << "models\n";
  for (const Json& key : keys) {
    write_cell(out, text_at(key, "id"), 16);
    write_cell(out, text_at(key, "name"), 20);
    write_cell(out, text_at(key, "namespace"), 16);
    write_cell(out, member(key, "revoked_ms").is_null() ? "active" : "revoked", 8);
    write_number(out, text_at(key, "requests_per_minute"), 10);
    write_number(out, text_at(key, "tokens_per_minute"), 10);
    write_number(out, text_at(key, "monthly_tokens"), 12);
    write_number(out, dollars_at(key, "monthly_usd"), 10);
    std::string models;
    for (const Json& model : member(key, "models")) {
      if (!model.is_string()) continue;
      models += (models.empty() ? "" : ",") + safe_text(model.get<std::string>());
    }
    out << (models.empty() ? "*" : models) << '\n';
  }
}

}  // namespace

int keys_create(const Session& session, const NewKeyArguments& arguments) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  const Json wanted = new_key_json(arguments);
  // Before it is sent anywhere: also refuses text that JSON cannot carry.
  if (const auto checked = read_new_key(wanted); !checked) return report(session, checked.error());
  std::error_code code;  // a failure shows when the file is opened
  if (std::filesystem::create_directories(config->data_dir, code)) {
    std::filesystem::permissions(config->data_dir, std::filesystem::perms::owner_all, code);
  }
  const auto key = ask(*config, "POST", "/admin/keys", wanted);
  if (!key) return report_failure(session, key.error());
  if (session.json) {
    write_json(session, *key);
    return kExitOk;
  }
  session.context.out << "id         " << text_at(*key, "id") << '\n'
                      << "name       " << text_at(*key, "name") << '\n'
                      << "namespace  " << text_at(*key, "namespace") << '\n'
                      << "secret     " << text_at(*key, "secret") << '\n';
  session.context.err << "Only a digest of the secret is kept: it cannot be shown again.\n";
  return kExitOk;
}

int keys_list(const Session& session) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  Result<Json> answer = Json{{"data", Json::array()}};
  if (has_keys(*config)) answer = ask(*config, "GET", "/admin/keys");
  if (!answer) return report_failure(session, answer.error());
  if (session.json) {
    write_json(session, *answer);
  } else {
    write_keys(session.context.out, member(*answer, "data"));
  }
  return kExitOk;
}

int keys_revoke(const Session& session, const std::string& id) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  if (!may_be_there(*config, id)) return report(session, no_such_key(id));
  const auto key = ask(*config, "POST", "/admin/keys/" + id + "/revoke");
  if (!key) return report_failure(session, key.error());
  if (session.json) {
    write_json(session, *key);
    return kExitOk;
  }
  const Json revoked = member(*key, "revoked_ms");
  session.context.out << text_at(*key, "id") << " (" << text_at(*key, "name")
                      << ") is revoked since "
                      << (revoked.is_number_integer() ? format_time(revoked.get<std::int64_t>())
                                                      : "now")
                      << '\n';
  return kExitOk;
}

int keys_usage(const Session& session, const std::string& id) {
  const auto config = load_for_tool(session);
  if (!config) return kExitUsage;
  if (!id.empty() && !may_be_there(*config, id)) return report(session, no_such_key(id));
  Result<Json> answer = Json{{"data", Json::array()}};
  if (has_keys(*config)) {
    answer = ask(*config, "GET", id.empty() ? "/admin/keys" : "/admin/keys/" + id + "/usage");
  }
  if (!answer) return report_failure(session, answer.error());
  if (session.json) {
    write_json(session, *answer);
    return kExitOk;
  }
  std::ostream& out = session.context.out;
  write_cell(out, id.empty() ? "id" : "month", 16);
  if (id.empty()) write_cell(out, "name", 20);
  write_usage_header(out);
  out << '\n';
  for (const Json& row : member(*answer, "data")) {
    write_cell(out, text_at(row, id.empty() ? "id" : "month"), 16);
    if (id.empty()) write_cell(out, text_at(row, "name"), 20);
    write_usage(out, id.empty() ? member(row, "usage") : row);
    out << '\n';
  }
  return kExitOk;
}

}  // namespace fixpoint::cli
