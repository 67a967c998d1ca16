// GET /v1/models and /v1/models/{id}, in the shape that the client's API has for it.
#pragma once

#include <string_view>

#include "gateway/dialects/endpoint.hpp"
#include "gateway/http/types.hpp"
#include "gateway/settings.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

// Anthropic's clients send anthropic-version, others do not.
Api api_of_client(const Headers& headers);

// Models that routes name one by one (a pattern is no model that a client could ask for), and that
// this tenant may use.
Response list_models(const Settings& settings, const Tenant* tenant, Api api);
// `id`: percent-decoded. 404 for a model that no route answers; `request_id` is part of it.
Response retrieve_model(const Settings& settings, const Tenant* tenant, std::string_view id,
                        Api api, std::string_view request_id);

// Names such as "org%2Fmodel". What is no escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace fixpoint
