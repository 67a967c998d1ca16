// Keys as the admin API and `--json` show them and as the admin API takes them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

// No secret, no digest. Limits that are not set are null; money is in US dollars.
nlohmann::ordered_json key_json(const ApiKey& key);
nlohmann::ordered_json key_json(const KeyStatus& status);  // with the current month's usage
nlohmann::ordered_json usage_json(Month month, const KeyUsage& usage);

// {"name", "namespace", and as read_policy()}. Only the name is required. Errors: invalid, naming
// the member and the limit; members of other names too.
Result<NewKey> read_new_key(const nlohmann::ordered_json& json);
// {"models": [...], "requests_per_minute", "tokens_per_minute", "monthly_tokens", "monthly_usd"}:
// changes those that are there; null takes a limit away. Errors: as above.
Result<KeyPolicy> read_policy(const nlohmann::ordered_json& json, KeyPolicy policy);

}  // namespace fixpoint
