#include "gateway/admin_file.hpp"

#include <fcntl.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "cache/base/digest.hpp"
#include "gateway/http/asio.hpp"
#include "gateway/json_guard.hpp"
#include "gateway/upstream/client.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;

// A list of kMaxKeys keys has 17 members each.
constexpr JsonLimits kAdminLimits{
    .depth = 16, .members_per_object = 1024, .members = 2'000'000, .values = 10'000'000};

std::string file_of(const std::string& data_dir) {
  return data_dir + "/gateway.json";
}

// Where a client on this machine reaches a listener.
std::string url_of(const std::string& address, std::uint16_t port, bool tls) {
  std::string host = address;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return (tls ? "https://" : "http://") + host + ":" + std::to_string(port);
}

// 256 bits that nobody can guess, unlike an id.
std::string secret_token() {
  Sha256Bytes bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw std::runtime_error("the system has no randomness for a token");
  }
  return to_hex(bytes);
}

struct Access {
  std::string url, token;
};

Result<Access> read_access(const std::string& data_dir) {
  std::ifstream file(file_of(data_dir));
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    return fail(ErrorCode::unreachable,
                "no running gateway has left its address at " + file_of(data_dir));
  }
  const Result<Json> json = parse_json(text.str());
  const auto text_of = [&](const char* name) {
    const bool there =
        json && json->is_object() && json->contains(name) && (*json)[name].is_string();
    return there ? (*json)[name].get<std::string>() : std::string();
  };
  Access access{text_of("url"), text_of("token")};
  if (access.url.empty() || access.token.empty()) {
    return fail(ErrorCode::unreachable, file_of(data_dir) + " has no address of a gateway");
  }
  return access;
}

struct Answer {
  int status = 0;
  std::string body;
};

Task<Result<Answer>> exchange(UpstreamClient& client, const UpstreamRequest& request) {
  auto response = co_await client.send(request);
  if (!response) co_return tl::make_unexpected(response.error());
  Answer answer;
  answer.status = (*response)->status();
  auto body = co_await UpstreamClient::read_all(**response);
  if (!body) co_return tl::make_unexpected(body.error());
  answer.body = std::move(*body);
  co_return answer;
}

Result<Answer> call(const Access& access, const UpstreamRequest& request) {
  net::io_context context(1);
  UpstreamOptions options;
  options.base_url = access.url;
  // This machine's own gateway, whose certificate names other hosts; somebody else who listens in
  // its place gets a token that opens nothing.
  options.verify_tls = false;
  options.total_timeout = std::chrono::seconds(30);
  UpstreamClient client(context, options);
  Result<Answer> answer = fail(ErrorCode::closed, "the gateway went away");
  // stop(), because the client keeps its connection open for a next request that will not come.
  net::co_spawn(context, exchange(client, request),
                [&](const std::exception_ptr&, Result<Answer> result) {
                  answer = std::move(result);
                  context.stop();
                });
  context.run();
  return answer;
}

// The message of an error's body.
std::string message_of(const Result<Json>& json, int status) {
  if (json && json->is_object() && json->contains("error")) {
    const Json& error = (*json)["error"];
    if (error.is_object() && error.contains("message") && error["message"].is_string()) {
      return error["message"].get<std::string>();
    }
  }
  return "the gateway answered HTTP " + std::to_string(status);
}

}  // namespace

AdminFile::AdminFile(const std::string& data_dir, const std::string& listen_address,
                     std::uint16_t port, bool tls)
    : path_(file_of(data_dir)), token_(secret_token()) {
  const std::string text =
      Json{{"url", url_of(listen_address, port, tls)}, {"token", token_}}.dump();
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

Result<Json> ask_gateway(const std::string& data_dir, const std::string& method,
                         const std::string& path, const Json& body) {
  const Result<Access> access = read_access(data_dir);
  if (!access) return tl::make_unexpected(access.error());
  UpstreamRequest request;
  request.method = method;
  request.path = path;
  request.headers.add("Authorization", "Bearer " + access->token);
  if (!body.is_null()) {
    request.headers.add("Content-Type", "application/json");
    request.body = std::make_shared<const std::string>(
        body.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  const Result<Answer> answer = call(*access, request);
  if (!answer) return tl::make_unexpected(answer.error());
  return admin_result(answer->status, answer->body);
}

Result<Json> admin_result(int status, const std::string& body) {
  Result<Json> json = parse_json(body, kAdminLimits);
  if (status >= 200 && status < 300) return json;
  const ErrorCode code = status == 400   ? ErrorCode::invalid
                         : status == 404 ? ErrorCode::not_found
                         : status == 409 ? ErrorCode::unreachable
                                         : ErrorCode::io;
  return fail(code, message_of(json, status));
}

Result<std::uint64_t> purge_through_gateway(const std::string& data_dir,
                                            const EntryFilter& filter) {
  Json body = Json::object();
  if (filter.key) body["key"] = *filter.key;
  if (filter.model) body["model"] = *filter.model;
  if (filter.tenant) body["tenant"] = *filter.tenant;
  if (filter.older_than_ms) body["older_than_ms"] = *filter.older_than_ms;
  if (body.empty()) body["all"] = true;
  const Result<Json> answer = ask_gateway(data_dir, "POST", "/admin/cache/purge", body);
  if (!answer) return tl::make_unexpected(answer.error());
  if (!answer->is_object() || !answer->contains("removed") ||
      !(*answer)["removed"].is_number_unsigned()) {
    return fail(ErrorCode::protocol, "the gateway's answer has no number of removed entries");
  }
  return (*answer)["removed"].get<std::uint64_t>();
}

}  // namespace fixpoint
