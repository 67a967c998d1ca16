#include "gateway/admin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "gateway/admin_file.hpp"
#include "gateway/http/server.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

// Remembers what it was asked to remove.
class PurgeStore : public Store {
 public:
  void get(const CacheKey&, GetDone done) override { done(EntryPtr()); }
  void put(EntryPtr) override {}
  Result<std::uint64_t> purge(const EntryFilter& filter) override {
    if (filter.key == "bad") return fail(ErrorCode::invalid, "no key");
    if (filter.key == "broken") return fail(ErrorCode::io, "disk");
    purged = filter;
    return 3;
  }
  Result<std::uint64_t> for_each(const EntryFilter&,
                                 const std::function<bool(const Entry&)>&) override {
    return 0;
  }
  Result<StoreStats> stats() override { return StoreStats{}; }
  void flush() override {}
  std::uint64_t failed_writes() const override { return 0; }

  EntryFilter purged;
};

class AdminTest : public testing::Test {
 protected:
  AdminTest() {
    TenantsOptions options;
    options.path = key_file_of(folder_.path().string());
    auto tenants = Tenants::open(options);
    if (!tenants) throw std::runtime_error(tenants.error().message);
    tenants_ = std::move(*tenants);
  }

  struct Answered {
    int status;
    Json body;
    Headers headers;
    std::string message() const { return body["error"]["message"].get<std::string>(); }
  };
  Answered ask(const std::string& method, const std::string& path, const std::string& body = "") {
    Request request;
    request.method = method;
    request.path = path;
    request.body = body;
    const Response response = administer(&store_, *tenants_, request);
    return {response.status, Json::parse(*response.body), response.headers};
  }
  std::string create(const std::string& body = R"({"name":"ci"})") {
    return ask("POST", "/admin/keys", body).body.at("id").get<std::string>();
  }

  const test::TempDir folder_;
  PurgeStore store_;
  std::unique_ptr<Tenants> tenants_;
};

TEST_F(AdminTest, AKeyIsMadeListedChangedAndRevoked) {
  const Answered created = ask("POST", "/admin/keys", R"({"name":"ci","requests_per_minute":60})");
  ASSERT_EQ(created.status, 201);
  EXPECT_EQ(*created.headers.find("Cache-Control"), "no-store");
  const std::string id = created.body["id"], secret = created.body["secret"];
  EXPECT_EQ(tenants_->authenticate(secret)->key.id, id);

  Answered listed = ask("GET", "/admin/keys");
  EXPECT_EQ(listed.status, 200);
  ASSERT_EQ(listed.body["data"].size(), 1U);
  EXPECT_EQ(listed.body["data"][0]["requests_per_minute"], 60);
  EXPECT_EQ(listed.body["data"][0]["usage"]["requests"], 0);
  EXPECT_EQ(listed.body.dump().find(secret), std::string::npos);

  const Answered changed = ask("PATCH", "/admin/keys/" + id, R"({"models":["gpt-*"]})");
  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(changed.body["models"][0], "gpt-*");
  EXPECT_EQ(changed.body["requests_per_minute"], 60);

  const Answered revoked = ask("POST", "/admin/keys/" + id + "/revoke");
  EXPECT_EQ(revoked.status, 200);
  EXPECT_TRUE(revoked.body["revoked_ms"].is_number());
  EXPECT_EQ(tenants_->authenticate(secret), nullptr);
}

TEST_F(AdminTest, UsageIsWhatWasChargedUpToNow) {
  const Answered created = ask("POST", "/admin/keys", R"({"name":"ci"})");
  const auto tenant = tenants_->authenticate(created.body["secret"].get<std::string>());
  tenants_->charge(*tenant, "m", {.prompt = 5, .completion = 7, .cached = 0});
  const std::string id = created.body["id"];
  const Answered usage = ask("GET", "/admin/keys/" + id + "/usage");
  EXPECT_EQ(usage.status, 200);
  EXPECT_EQ(usage.body["id"], id);
  ASSERT_EQ(usage.body["data"].size(), 1U);
  EXPECT_EQ(usage.body["data"][0]["prompt_tokens"], 5);
  EXPECT_EQ(usage.body["data"][0]["completion_tokens"], 7);
}

TEST_F(AdminTest, WrongRequestsAreNamed) {
  const std::string id = create();
  EXPECT_EQ(ask("POST", "/admin/keys", "{").status, 400);
  EXPECT_THAT(ask("POST", "/admin/keys", "{}").message(), HasSubstr("name"));
  EXPECT_THAT(ask("POST", "/admin/keys", R"({"name":"a","x":1})").message(), HasSubstr("'x'"));
  EXPECT_THAT(ask("PATCH", "/admin/keys/" + id, R"({"requests_per_minute":0})").message(),
              HasSubstr("requests_per_minute"));
  for (const auto& [method, path] : std::vector<std::pair<std::string, std::string>>{
           {"PATCH", "/admin/keys/key_000000000000"},
           {"POST", "/admin/keys/key_000000000000/revoke"},
           {"GET", "/admin/keys/key_000000000000/usage"},
           {"GET", "/admin/"},
           {"GET", "/admin/keysandmore"},
           {"GET", "/admin/cache"}}) {
    const Answered answered = ask(method, path, "{}");
    EXPECT_EQ(answered.status, 404) << path;
  }
  for (const auto& [method, path, allowed] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"DELETE", "/admin/keys", "GET, POST"},
           {"GET", "/admin/keys/" + id, "PATCH"},
           {"GET", "/admin/keys/" + id + "/revoke", "POST"},
           {"POST", "/admin/keys/" + id + "/usage", "GET"},
           {"GET", "/admin/cache/purge", "POST"}}) {
    const Answered answered = ask(method, path);
    EXPECT_EQ(answered.status, 405) << path;
    EXPECT_EQ(*answered.headers.find("Allow"), allowed) << path;
  }
}

TEST_F(AdminTest, Purge) {
  const Answered purged = ask("POST", "/admin/cache/purge",
                              R"({"key":"k","model":"m","tenant":"t","older_than_ms":7})");
  EXPECT_EQ(purged.status, 200);
  EXPECT_EQ(purged.body.dump(), R"({"removed":3})");
  EXPECT_EQ(store_.purged.key, "k");
  EXPECT_EQ(store_.purged.model, "m");
  EXPECT_EQ(store_.purged.tenant, "t");
  EXPECT_EQ(store_.purged.older_than_ms, 7);
  EXPECT_EQ(ask("POST", "/admin/cache/purge", R"({"all":true})").status, 200);
  EXPECT_EQ(store_.purged.model, std::nullopt);
  store_.purged.model = "untouched";
  for (const char* body :
       {"{}", R"({"all":false})", R"({"all":true,"model":"m"})", R"({"all":"true"})"}) {
    const Answered refused = ask("POST", "/admin/cache/purge", body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_THAT(refused.message(), HasSubstr("all")) << body;
  }
  EXPECT_EQ(store_.purged.model, "untouched");
  EXPECT_EQ(ask("POST", "/admin/cache/purge", R"({"older":7})").status, 400);
  EXPECT_EQ(ask("POST", "/admin/cache/purge", R"({"key":7})").status, 400);
  EXPECT_EQ(ask("POST", "/admin/cache/purge", R"({"key":"bad"})").status, 400);
  EXPECT_EQ(ask("POST", "/admin/cache/purge", R"({"key":"broken"})").status, 500);
  Request request;
  request.method = "POST";
  request.path = "/admin/cache/purge";
  request.body = "{}";
  EXPECT_EQ(administer(nullptr, *tenants_, request).status, 400);
}

TEST(AdminToken, EitherTokenAndNoOther) {
  const auto allowed = [](const std::string& authorization, std::string_view one,
                          std::string_view other) {
    Request request;
    if (!authorization.empty()) request.headers.add("Authorization", authorization);
    return has_admin_token(request, one, other);
  };
  EXPECT_TRUE(allowed("Bearer abc", "abc", ""));
  EXPECT_TRUE(allowed("Bearer abc", "xyz", "abc"));
  EXPECT_FALSE(allowed("Bearer abd", "abc", "xyz"));
  EXPECT_FALSE(allowed("Bearer abcd", "abc", "xyz"));
  EXPECT_FALSE(allowed("Bearer ", "", ""));
  EXPECT_FALSE(allowed("", "", ""));
  EXPECT_FALSE(allowed("abc", "abc", "abc"));
}

// A gateway that has only an admin API.
class RunningAdminTest : public AdminTest {
 protected:
  RunningAdminTest()
      : server_(cores_, {}, [this](const RequestPtr& request, ResponseWriter& writer) {
          return handle(request, writer);
        }) {
    file_.emplace(data_dir(), "127.0.0.1", server_.port(), false);
    cores_.start();
    server_.start();
  }
  ~RunningAdminTest() override {
    server_.drain(std::chrono::seconds(5));
    background_.join();
    cores_.stop();
  }
  Task<void> handle(const RequestPtr& request, ResponseWriter& writer) {
    Response response;
    response.status = 401;
    if (has_admin_token(*request, file_->token(), "")) {
      response = co_await administer_in(background_, &store_, *tenants_, request);
    }
    const auto sent = co_await writer.send(response);
    (void)sent;
  }
  std::string data_dir() const { return folder_.path().string(); }

  net::thread_pool background_{1};
  Cores cores_{1};
  Server server_;
  std::optional<AdminFile> file_;
};

TEST_F(RunningAdminTest, TheFileIsPrivateAndLeavesWithTheGateway) {
  const std::string path = data_dir() + "/gateway.json";
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  file_.reset();
  EXPECT_NE(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(ask_gateway(data_dir(), "GET", "/admin/keys").error().code, ErrorCode::unreachable);
}

TEST_F(RunningAdminTest, IsAskedThroughItsFile) {
  const auto created = ask_gateway(data_dir(), "POST", "/admin/keys", {{"name", "ci"}});
  ASSERT_TRUE(created) << created.error().message;
  const std::string id = (*created)["id"];
  const auto listed = ask_gateway(data_dir(), "GET", "/admin/keys");
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ((*listed)["data"][0]["id"], id);
  EXPECT_TRUE(ask_gateway(data_dir(), "PATCH", "/admin/keys/" + id, {{"monthly_tokens", 5}}));
  const auto missing = ask_gateway(data_dir(), "POST", "/admin/keys/key_000000000000/revoke");
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_EQ(missing.error().message, "there is no key key_000000000000");
  EXPECT_EQ(ask_gateway(data_dir(), "POST", "/admin/keys", Json::object()).error().code,
            ErrorCode::invalid);
}

TEST_F(RunningAdminTest, Purges) {
  EntryFilter filter;
  filter.tenant = "t";
  filter.older_than_ms = 9;
  EXPECT_EQ(purge_through_gateway(data_dir(), filter), 3U);
  EXPECT_EQ(store_.purged.tenant, "t");
  EXPECT_EQ(store_.purged.older_than_ms, 9);
  EXPECT_EQ(store_.purged.key, std::nullopt);
  EXPECT_EQ(purge_through_gateway(data_dir(), {}), 3U) << "everything";
  EXPECT_EQ(store_.purged.tenant, std::nullopt);
}

TEST_F(RunningAdminTest, AnotherTokenIsRefused) {
  const std::string path = data_dir() + "/gateway.json";
  std::ifstream in(path);
  Json access = Json::parse(in);
  access["token"] = "other";
  std::ofstream(path) << access.dump();
  const auto refused = ask_gateway(data_dir(), "GET", "/admin/keys");
  EXPECT_EQ(refused.error().code, ErrorCode::io);
  EXPECT_THAT(refused.error().message, HasSubstr("HTTP 401"));
}

TEST(AskGateway, AnUnreadableFileOrAGatewayThatIsGone) {
  const test::TempDir folder;
  const std::string data_dir = folder.path().string();
  const auto code = [&] { return ask_gateway(data_dir, "GET", "/admin/keys").error().code; };
  EXPECT_EQ(code(), ErrorCode::unreachable);
  for (const char* text :
       {"", "{", "[]", R"({"url":1,"token":"t"})", R"({"url":"","token":"t"})"}) {
    std::ofstream(data_dir + "/gateway.json") << text;
    EXPECT_EQ(code(), ErrorCode::unreachable) << text;
  }
  std::uint16_t port = 0;
  {
    Cores cores(1);
    port = Server(cores, {}, {}).port();
  }
  const AdminFile file(data_dir, "0.0.0.0", port, false);
  EXPECT_EQ(code(), ErrorCode::unreachable);
}

}  // namespace
}  // namespace fixpoint
