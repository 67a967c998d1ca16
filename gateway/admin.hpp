// The admin API: /admin/keys and /admin/cache.
//
// | request | answer |
// |---|---|
// | GET /admin/keys | {"data": [key, ...]}, oldest first, each with this month's usage |
// | POST /admin/keys {"name", ...} | 201 and the key, with its secret this once |
// | PATCH /admin/keys/{id} {limits} | the key; members that are not there stay, null: no limit |
// | POST /admin/keys/{id}/revoke | the key |
// | GET /admin/keys/{id}/usage | {"id", "data": [month, ...]}, newest first |
// | POST /admin/cache/purge {"key", "model", "tenant", "older_than_ms"} or {"all": true} |
//   {"removed": n}; 409 while recording or replaying, when the gateway has no cache |
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <string_view>

#include "cache/store.hpp"
#include "gateway/api/errors.hpp"
#include "gateway/http/types.hpp"
#include "gateway/tenants/tenants.hpp"

namespace fixpoint {

struct Gateway;

inline constexpr std::string_view kPurgePath = "/admin/cache/purge";

// Why a request for a path below /admin/ may not pass: it has neither admin.token of the
// configuration nor the token in the gateway's file. Nothing: it may.
std::optional<ApiError> refuse_admin(const Gateway& gateway, const Request& request);
// Answers one that may pass. A background thread does the work, which waits for disks. It goes on
// when the client leaves. Sets no x-request-id.
Task<Response> answer_admin(Gateway& gateway, const RequestPtr& request);

// Its parts.
// Whether the request's bearer token is one of these; an empty one is nobody's. Takes the same time
// for every token of a right length.
bool has_admin_token(const Request& request, std::string_view token, std::string_view other_token);
// administer() on a thread of `background`; what it uses must be there until that has ended.
Task<Response> administer_in(net::thread_pool& background, Store* store, Tenants& tenants,
                             const RequestPtr& request);
// The work, without a check of the token. Blocks: not for a thread that serves. A null store: the
// cache is off. Thread-safe.
Response administer(Store* store, Tenants& tenants, const Request& request);

}  // namespace fixpoint
