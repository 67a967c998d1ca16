#include "gateway/admin.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "cache/base/digest.hpp"
#include "gateway/api/waiter.hpp"
#include "gateway/gateway.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;

std::string file_of(const std::string& cache_path) {
  return cache_path + ".gateway";
}

// Where a client on this machine reaches a listener.
std::string url_of(const std::string& address, std::uint16_t port) {
  std::string host = address;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return "http://" + host + ":" + std::to_string(port);
}

// 256 bits that nobody can guess, unlike an id.
std::string secret_token() {
  Sha256Bytes bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw std::runtime_error("the system has no randomness for a token");
  }
  return to_hex(bytes);
}

ApiResult<PurgeFilter> parse_filter(const std::string& body) {
  const json given = json::parse(body, nullptr, false);
  if (!given.is_object()) return refuse(bad_request("The request body must be a JSON object"));
  PurgeFilter filter;
  for (const auto& [name, value] : given.items()) {
    if (name == "key" && value.is_string()) {
      filter.key = value.get<std::string>();
    } else if (name == "model" && value.is_string()) {
      filter.model = value.get<std::string>();
    } else if (name == "older_than_ms" && value.is_number_integer()) {
      filter.older_than_ms = value.get<std::int64_t>();
    } else {
      return refuse(
          bad_request("'" + name + "' is not one of key, model (strings), older_than_ms", name));
    }
  }
  return filter;
}

Task<Result<std::uint64_t>> post_purge(UpstreamClient& client, const UpstreamRequest& request) {
  auto response = co_await client.send(request);
  if (!response) co_return fail(response.error().code, response.error().message);
  const int status = (*response)->status();
  auto body = co_await UpstreamClient::read_all(**response);
  if (!body) co_return fail(body.error().code, body.error().message);
  const json answer = json::parse(*body, nullptr, false);
  if (status != 200 || !answer.is_object() || !answer.contains("removed")) {
    co_return fail(ErrorCode::protocol, "the gateway answered HTTP " + std::to_string(status));
  }
  co_return answer["removed"].get<std::uint64_t>();
}

}  // namespace

AdminFile::AdminFile(const std::string& cache_path, const std::string& listen_address,
                     std::uint16_t port)
    : path_(file_of(cache_path)), token_(secret_token()) {
  const std::string text = json{{"url", url_of(listen_address, port)}, {"token", token_}}.dump();
  ::unlink(path_.c_str());  // left by a gateway that was killed; its mode could be another one
  const int file =
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written) throw std::system_error(error, std::generic_category(), path_);
}

AdminFile::~AdminFile() {
  ::unlink(path_.c_str());
}

bool admin_allowed(const Gateway& gateway, const Request& request) {
  const std::string expected = "Bearer " + gateway.admin_token;
  const auto* given = request.headers.find("authorization");
  return !gateway.admin_token.empty() && given && given->size() == expected.size() &&
         CRYPTO_memcmp(given->data(), expected.data(), expected.size()) == 0;
}

Task<ApiResult<std::uint64_t>> admin_purge(Gateway& gateway, const Request& request) {
  auto filter = parse_filter(request.body);
  if (!filter) co_return refuse(filter.error());
  if (!gateway.store) co_return refuse(bad_request("The cache is switched off"));

  // purge() waits for the disk: it runs on a thread of its own, and only its result comes back
  // here.
  const auto executor = co_await net::this_coro::executor;
  Waiter waiter(executor);
  const auto result = std::make_shared<std::optional<Result<std::uint64_t>>>();
  auto work = [store = gateway.store.get(), executor, result, wake = waiter.wake(),
               filter = *filter] {
    auto removed = store->purge(filter);
    net::post(executor, [result, wake, removed = std::move(removed)] {
      *result = removed;
      wake();
    });
  };
  net::post(gateway.background, std::move(work));
  while (!*result) {
    co_await waiter.sleep();
  }
  if (!**result) {
    co_return refuse(api_error(500, "server_error", "store_error", (**result).error().message));
  }
  co_return ***result;
}

Result<std::uint64_t> purge_through_gateway(const std::string& cache_path,
                                            const PurgeFilter& filter) {
  std::ifstream file(file_of(cache_path));
  std::stringstream text;
  text << file.rdbuf();
  const json access = json::parse(text.str(), nullptr, false);
  if (!file || !access.is_object()) {
    return fail(ErrorCode::not_found,
                "no running gateway has left its address at " + file_of(cache_path));
  }
  json body = json::object();
  if (filter.key) body["key"] = *filter.key;
  if (filter.model) body["model"] = *filter.model;
  if (filter.older_than_ms) body["older_than_ms"] = *filter.older_than_ms;

  net::io_context context(1);
  UpstreamOptions options;
  options.base_url = access.value("url", "");
  UpstreamClient client(context, options);
  UpstreamRequest request;
  request.path = "/admin/cache/purge";
  request.headers.add("Authorization", "Bearer " + access.value("token", ""));
  request.headers.add("Content-Type", "application/json");
  request.body = std::make_shared<const std::string>(body.dump());
  Result<std::uint64_t> removed = fail(ErrorCode::closed, "the gateway went away");
  // stop(), because the client keeps its connection open for a next request that will not come.
  net::co_spawn(context, post_purge(client, request),
                [&](const std::exception_ptr&, Result<std::uint64_t> result) {
                  removed = std::move(result);
                  context.stop();
                });
  context.run();
  return removed;
}

}  // namespace fixpoint
