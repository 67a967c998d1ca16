#include "gateway/tenants/key_json.hpp"

#include <cmath>

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;

Json limit_json(std::uint64_t limit) {
  return limit == 0 ? Json(nullptr) : Json(limit);
}

double dollars(MicroDollars amount) {
  return static_cast<double>(amount) / static_cast<double>(kDollar);
}

tl::unexpected<Error> wrong(const std::string& name, const std::string& what) {
  return fail(ErrorCode::invalid, name + ": must be " + what);
}

// 0 is refused: a program that computes what is left of a budget must not lift the limit when
// nothing is.
Result<void> read_limit(const std::string& name, const Json& value, std::uint64_t& limit) {
  if (value.is_null()) {
    limit = 0;
  } else if (value.is_number_unsigned() && value.get<std::uint64_t>() > 0) {
    limit = value.get<std::uint64_t>();
  } else {
    return wrong(name, "a whole number above 0, or null for no limit");
  }
  return {};
}

Result<void> read_cost(const std::string& name, const Json& value, MicroDollars& cost) {
  if (value.is_null()) {
    cost = 0;
    return {};
  }
  const double given = value.is_number() ? value.get<double>() : 0;
  if (!(given >= dollars(1) && given <= dollars(kMaxMonthlyCost))) {
    return wrong(name, "US dollars from 0.000001 to " + format_dollars(kMaxMonthlyCost) +
                           ", or null for no limit");
  }
  cost = std::llround(given * static_cast<double>(kDollar));
  return {};
}

Result<void> read_models(const std::string& name, const Json& value,
                         std::vector<std::string>& models) {
  models.clear();
  if (value.is_null()) return {};
  if (!value.is_array()) return wrong(name, "a list of patterns, or null for every model");
  for (const Json& model : value) {
    if (!model.is_string()) return wrong(name, "a list of patterns, or null for every model");
    models.push_back(model.get<std::string>());
  }
  return {};
}

// False: no member of a policy.
Result<bool> read_policy_member(const std::string& name, const Json& value, KeyPolicy& policy) {
  Result<void> read;
  if (name == "models") {
    read = read_models(name, value, policy.models);
  } else if (name == "requests_per_minute") {
    read = read_limit(name, value, policy.requests_per_minute);
  } else if (name == "tokens_per_minute") {
    read = read_limit(name, value, policy.tokens_per_minute);
  } else if (name == "monthly_tokens") {
    read = read_limit(name, value, policy.monthly_tokens);
  } else if (name == "monthly_usd") {
    read = read_cost(name, value, policy.monthly_cost);
  } else {
    return false;
  }
  if (!read) return tl::make_unexpected(read.error());
  return true;
}

}  // namespace

Json key_json(const ApiKey& key) {
  const KeyPolicy& policy = key.policy;
  const bool capped = policy.monthly_cost > 0;
  return {{"id", key.id},
          {"name", key.name},
          {"namespace", key.cache_namespace},
          {"models", policy.models.empty() ? Json(nullptr) : Json(policy.models)},
          {"requests_per_minute", limit_json(policy.requests_per_minute)},
          {"tokens_per_minute", limit_json(policy.tokens_per_minute)},
          {"monthly_tokens", limit_json(policy.monthly_tokens)},
          {"monthly_usd", capped ? Json(dollars(policy.monthly_cost)) : Json(nullptr)},
          {"created_ms", key.created_ms},
          {"revoked_ms", key.revoked_ms == 0 ? Json(nullptr) : Json(key.revoked_ms)}};
}

Json key_json(const KeyStatus& status) {
  Json json = key_json(status.key);
  json["usage"] = usage_json(status.month, status.usage);
  return json;
}

Json usage_json(Month month, const KeyUsage& usage) {
  return {{"month", format_month(month)},
          {"requests", usage.requests},
          {"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"cost_usd", dollars(usage.cost)}};
}

Result<NewKey> read_new_key(const Json& json) {
  if (!json.is_object()) return fail(ErrorCode::invalid, "The body must be a JSON object");
  NewKey key;
  for (const auto& [name, value] : json.items()) {
    if (name == "name" || name == "namespace") {
      if (!value.is_string()) return wrong(name, "a string");
      (name == "name" ? key.name : key.cache_namespace) = value.get<std::string>();
      continue;
    }
    const Result<bool> read = read_policy_member(name, value, key.policy);
    if (!read) return tl::make_unexpected(read.error());
    if (!*read) {
      return fail(ErrorCode::invalid,
                  "'" + name +
                      "' is not one of name, namespace, models, requests_per_minute, "
                      "tokens_per_minute, monthly_tokens, monthly_usd");
    }
  }
  if (const auto checked = check_new_key(key); !checked) {
    return tl::make_unexpected(checked.error());
  }
  return key;
}

Result<KeyPolicy> read_policy(const Json& json, KeyPolicy policy) {
  if (!json.is_object()) return fail(ErrorCode::invalid, "The body must be a JSON object");
  for (const auto& [name, value] : json.items()) {
    const Result<bool> read = read_policy_member(name, value, policy);
    if (!read) return tl::make_unexpected(read.error());
    if (!*read) {
      return fail(ErrorCode::invalid,
                  "'" + name +
                      "' is not one of models, requests_per_minute, tokens_per_minute, "
                      "monthly_tokens, monthly_usd");
    }
  }
  if (const auto checked = check_policy(policy); !checked) {
    return tl::make_unexpected(checked.error());
  }
  return policy;
}

}  // namespace fixpoint
