#include "gateway/admin.hpp"

#include <openssl/crypto.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <optional>
#include <string_view>

#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"

namespace fixpoint {
namespace {

// In constant time for a given length.
bool is_token(std::string_view given, std::string_view token) {
  return !token.empty() && given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

}  // namespace

bool has_admin_token(const Request& request, std::string_view token, std::string_view other_token) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string* field = request.headers.find("authorization");
  if (field == nullptr || !field->starts_with(kScheme)) return false;
  const std::string_view given = std::string_view(*field).substr(kScheme.size());
  return is_token(given, token) || is_token(given, other_token);
}

Task<Response> administer_in(net::thread_pool& background, Store* store, Tenants& tenants,
                             const RequestPtr& request) {
  const auto executor = co_await net::this_coro::executor;
  Waiter waiter(executor);
  const auto result = std::make_shared<std::optional<Response>>();
  // The request is kept: the client may leave meanwhile.
  auto work = [store, &tenants, executor, result, sleeper = waiter.sleeper(), request] {
    net::post(executor, [result, sleeper, response = administer(store, tenants, *request)] {
      *result = response;
      sleeper->wake();
    });
  };
  net::post(background, std::move(work));
  while (!*result) {
    co_await waiter.sleep();
  }
  co_return **result;
}

std::optional<ApiError> refuse_admin(const Gateway& gateway, const Request& request) {
  if (has_admin_token(request, gateway.admin_token, gateway.settings()->config.admin.token)) {
    return {};
  }
  ApiError error = api_error(401, "invalid_request_error", "invalid_admin_token",
                             "Admin paths need Authorization: Bearer and admin.token of the "
                             "configuration, or the token in gateway.json in the data folder");
  error.headers.add("WWW-Authenticate", "Bearer");
  return error;
}

Task<Response> answer_admin(Gateway& gateway, const RequestPtr& request) {
  // What is purged is the cache, which is not open here; the recordings are files that somebody
  // keeps beside a test suite.
  if (gateway.recording != Recording::off && request->path == kPurgePath) {
    const char* mode = gateway.recording == Recording::record ? "--record" : "--replay";
    co_return to_response(api_error(409, "invalid_request_error", "no_cache",
                                    std::string("The gateway runs with ") + mode +
                                        " and has no cache open; recordings are not purged"));
  }
  auto response =
      co_await administer_in(gateway.background, gateway.store.get(), *gateway.tenants, request);
  co_return response;
}

}  // namespace fixpoint
