// keys create | list | revoke | usage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gateway/admin_file.hpp"
#include "gateway/cli/verbs.hpp"
#include "gateway/tenants/tenants.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class VerbKeys : public testing::Test {
 protected:
  struct Ran {
    int code;
    std::string out, err;
  };
  template <class Verb>
  Ran run(const Verb& verb, bool as_json = false) {
    std::ostringstream out, err;
    const CliContext context{
        out,
        err,
        [](const std::string&) -> std::optional<std::string> { return std::nullopt; },
        {},
        false};
    const cli::Session session{context, config_, data_dir_, as_json};
    const int code = verb(session);
    return {code, out.str(), err.str()};
  }
  Ran create(const cli::NewKeyArguments& arguments, bool as_json = false) {
    return run([&](const cli::Session& session) { return cli::keys_create(session, arguments); },
               as_json);
  }
  json create_json(const cli::NewKeyArguments& arguments) {
    return json::parse(create(arguments, true).out);
  }
  Ran revoke(const std::string& id) {
    return run([&](const cli::Session& session) { return cli::keys_revoke(session, id); });
  }
  Ran usage(const std::string& id, bool as_json = false) {
    return run([&](const cli::Session& session) { return cli::keys_usage(session, id); }, as_json);
  }
  static cli::NewKeyArguments named(const std::string& name) {
    cli::NewKeyArguments arguments;
    arguments.name = name;
    return arguments;
  }
  std::unique_ptr<Tenants> gateway() {
    TenantsOptions options;
    options.path = key_file_of(data_dir_);
    return Tenants::open(options).value();
  }

  const test::TempDir folder_;
  const std::string config_ = "/dev/null";  // the empty file: all defaults
  const std::string data_dir_ = folder_.file("data");
};

TEST_F(VerbKeys, CreateShowsTheSecretOnceAndTheGatewayTakesIt) {
  cli::NewKeyArguments arguments = named("ci");
  arguments.cache_namespace = "team";
  arguments.models = {"gpt-*", "claude-*"};
  arguments.requests_per_minute = 60;
  arguments.monthly_usd = 2.5;
  const Ran ran = create(arguments);
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("id         key_"), HasSubstr("namespace  team\n"),
                             HasSubstr("secret     fp-")));
  EXPECT_THAT(ran.err, HasSubstr("cannot be shown again"));
  const std::string secret = ran.out.substr(ran.out.find("fp-"), 46);
  const auto tenant = gateway()->authenticate(secret);
  ASSERT_NE(tenant, nullptr);
  EXPECT_EQ(tenant->key.policy.models.size(), 2U);
  EXPECT_EQ(tenant->key.policy.monthly_cost, 2'500'000);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(data_dir_).permissions(), perms::owner_all);

  const Ran listed = run(cli::keys_list);
  EXPECT_THAT(listed.out, AllOf(HasSubstr(tenant->key.id), HasSubstr("gpt-*,claude-*"),
                                HasSubstr("active"), Not(HasSubstr(secret))));
}

TEST_F(VerbKeys, WrongLimitsAreUsageErrors) {
  cli::NewKeyArguments arguments = named("ci");
  arguments.requests_per_minute = 0;
  EXPECT_EQ(create(arguments).code, kExitUsage);
  EXPECT_THAT(create(arguments).err, HasSubstr("requests_per_minute"));
  EXPECT_EQ(create(named("")).code, kExitUsage);
  EXPECT_EQ(create(named("\xff")).code, kExitUsage);
  arguments = named("ci");
  arguments.monthly_usd = -1;
  EXPECT_EQ(create(arguments).code, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(data_dir_));
}

TEST_F(VerbKeys, WithoutAFileThereAreNoKeysAndNoneIsMade) {
  EXPECT_EQ(run(cli::keys_list).code, kExitOk);
  EXPECT_EQ(json::parse(run(cli::keys_list, true).out).dump(), R"({"data":[]})");
  EXPECT_EQ(usage("").code, kExitOk);
  EXPECT_EQ(usage("key_000000000000").code, kExitNotFound);
  EXPECT_EQ(revoke("key_000000000000").code, kExitNotFound);
  EXPECT_FALSE(std::filesystem::exists(key_file_of(data_dir_)));
}

TEST_F(VerbKeys, RevokeAndUsage) {
  const json created = create_json(named("ci"));
  const std::string id = created["id"], secret = created["secret"];
  {
    const auto tenants = gateway();
    tenants->charge(*tenants->authenticate(secret), "m",
                    {.prompt = 11, .completion = 22, .cached = 0});
  }
  EXPECT_THAT(usage("").out, AllOf(HasSubstr(id), HasSubstr(" 11 "), HasSubstr(" 22 ")));
  const json months = json::parse(usage(id, true).out);
  EXPECT_EQ(months["data"][0]["completion_tokens"], 22);
  EXPECT_THAT(usage(id).out, HasSubstr(months["data"][0]["month"].get<std::string>()));

  const Ran revoked = revoke(id);
  EXPECT_EQ(revoked.code, kExitOk) << revoked.err;
  EXPECT_THAT(revoked.out, HasSubstr(id + " (ci) is revoked since 20"));
  EXPECT_EQ(gateway()->authenticate(secret), nullptr);
  EXPECT_THAT(run(cli::keys_list).out, HasSubstr("revoked"));
  EXPECT_EQ(revoke("key_000000000000").code, kExitNotFound);
  EXPECT_EQ(revoke("../cache/purge").code, kExitNotFound);
}

TEST_F(VerbKeys, AFileInUseWithoutAGatewayToAskSaysSo) {
  create_json(named("ci"));
  const auto tenants = gateway();
  const Ran ran = create(named("other"));
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_THAT(ran.err, HasSubstr("another fixpoint"));
}

}  // namespace
}  // namespace fixpoint
