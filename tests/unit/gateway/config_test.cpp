#include "gateway/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/config_text.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using test::environment;
using test::errors_of;
using test::parse;
using test::with;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kWhole = R"(
server: {listen: "[::1]:9000", threads: 3, max_body_bytes: 1MiB, drain_timeout: 500ms}
data_dir: /data
cache: {policy: off, path: /fast/cache.db}
log: {top_logprobs: 8}
access_log: {level: warning}
models:
  - {name: small, path: smollm2-135m, kv_bytes: 1GiB, max_batch: 4}
upstreams:
  - name: openai
    base_url: https://api.openai.com/v1
    api_key: ${KEY}
    headers: {OpenAI-Organization: "org-${ORG}"}
    first_byte_timeout: 2m
routes:
  - {model: "gpt-*", upstream: openai, repro_model: small, repro: preferred, cache: all}
  - {model: small, local: small}
)";

TEST(Config, ReadsEveryKindOfKey) {
  const auto result = parse(kWhole, with({{"KEY", "sk-secret"}, {"ORG", "7"}}));
  ASSERT_TRUE(result) << result.error()[0].text();
  const Config& config = *result;
  EXPECT_EQ(config.server.listen, "[::1]:9000");
  EXPECT_EQ(config.server.threads, 3u);
  EXPECT_EQ(config.server.max_body_bytes, 1u << 20);
  EXPECT_EQ(config.server.drain_timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(config.server.idle_timeout, std::chrono::seconds(75));
  EXPECT_EQ(config.cache.policy, CachePolicy::off);
  EXPECT_EQ(config.cache.path, "/fast/cache.db");
  EXPECT_EQ(config.log.path, "/data/log.db");
  EXPECT_EQ(config.log.top_logprobs, 8u);
  EXPECT_EQ(config.access_log.level, LogLevel::warning);
  ASSERT_NE(config.find_model("small"), nullptr);
  EXPECT_EQ(config.find_model("small")->kv_bytes, std::uint64_t{1} << 30);
  const UpstreamConfig* upstream = config.find_upstream("openai");
  ASSERT_NE(upstream, nullptr);
  EXPECT_EQ(upstream->api_key, "sk-secret");
  ASSERT_EQ(upstream->headers.size(), 1u);
  EXPECT_EQ(upstream->headers[0].value, "org-7");
  EXPECT_EQ(upstream->first_byte_timeout, std::chrono::minutes(2));
  EXPECT_THAT(config.secrets(), ElementsAre("sk-secret", "org-7"));
  ASSERT_EQ(config.routes.size(), 2u);
  EXPECT_EQ(config.routes[0].model, "gpt-*");
  EXPECT_EQ(config.routes[0].repro, ReproMode::preferred);
  EXPECT_EQ(config.routes[0].cache, CachePolicy::all);
  EXPECT_EQ(config.routes[1].model, "small");
  EXPECT_EQ(config.routes[1].local, "small");
  EXPECT_EQ(config.routes[1].cache, std::nullopt);
}

TEST(Config, AnEmptyFileIsTheDefaults) {
  for (const char* yaml : {"", "# nothing\n", "---\n", "server:\nmodels:\nroutes: []\n"}) {
    const auto config = parse(yaml);
    ASSERT_TRUE(config) << yaml;
    EXPECT_EQ(config->data_dir, "/home/u/.local/share/fixpoint");
    EXPECT_EQ(config->cache.path, "/home/u/.local/share/fixpoint/cache.db");
    EXPECT_EQ(config->models_dir(), "/home/u/.local/share/fixpoint/models");
    ASSERT_EQ(config->models.size(), 1u);
    EXPECT_EQ(config->models[0].name, "fixpoint-tiny");
    EXPECT_EQ(config->models[0].path, "fixpoint-tiny");
    ASSERT_EQ(config->routes.size(), 1u);
    EXPECT_EQ(config->routes[0].model, "fixpoint-tiny");
    EXPECT_EQ(config->routes[0].local, "fixpoint-tiny");
    EXPECT_TRUE(config->tiny_by_default);
  }
}

TEST(Config, AnythingThatAnswersKeepsTheTinyModelOut) {
  for (const char* yaml : {"models: [{name: m, path: p}]",
                           "upstreams: [{name: u, base_url: 'http://h/v1', api_key: k}]"}) {
    const auto config = parse(yaml);
    ASSERT_TRUE(config) << yaml;
    EXPECT_FALSE(config->tiny_by_default);
    EXPECT_TRUE(config->routes.empty());
    EXPECT_EQ(config->find_model("fixpoint-tiny"), nullptr);
  }
}

TEST(Config, FoldersFollowXdg) {
  EXPECT_EQ(default_data_dir(environment({{"HOME", "/h"}, {"XDG_DATA_HOME", "/x"}})),
            "/x/fixpoint");
  EXPECT_EQ(default_data_dir(environment({{"HOME", "/h"}, {"XDG_DATA_HOME", "relative"}})),
            "/h/.local/share/fixpoint");
  EXPECT_EQ(default_data_dir(environment({})), "");
  ConfigOptions bare;
  bare.environment = environment({});
  EXPECT_THAT(errors_of("", bare), ElementsAre(HasSubstr("data_dir: must be set")));
  EXPECT_TRUE(parse("data_dir: /d", bare));
}

TEST(Config, FindsTheFileOfTheUser) {
  const test::TempDir folder;
  std::filesystem::create_directories(folder.path() / "fixpoint");
  const auto variables = environment({{"XDG_CONFIG_HOME", folder.path().string()}});
  EXPECT_EQ(find_config_file(variables), std::nullopt);
  std::ofstream(folder.file("fixpoint/config.yaml")) << "data_dir: /d\n";
  EXPECT_EQ(find_config_file(variables), folder.file("fixpoint/config.yaml"));
  EXPECT_EQ(load_config(folder.file("fixpoint/config.yaml"))->data_dir, "/d");
}

TEST(Config, UnreadableFilesAreErrors) {
  const test::TempDir folder;
  for (const std::string& file : {folder.file("none.yaml"), folder.path().string()}) {
    const auto result = load_config(file);
    ASSERT_FALSE(result) << file;
    EXPECT_THAT(result.error()[0].text(), HasSubstr(file + ": the file cannot be read"));
  }
}

TEST(Config, EveryErrorIsReportedWithItsPlace) {
  EXPECT_THAT(errors_of("server:\n"
                        "  threads: many\n"
                        "  lisen: x\n"
                        "  max_body_bytes: 9TB\n"
                        "cache: [1]\n"
                        "nothing: 1\n"),
              ElementsAre("f.yaml:2:12: server.threads: must be a whole number in 0 .. 256 "
                          "(got \"many\")",
                          testing::StartsWith("f.yaml:3:3: unknown key \"server.lisen\"; known "
                                              "are: listen, tls_cert_file, tls_key_file,"),
                          testing::StartsWith("f.yaml:4:19: server.max_body_bytes: must be a size "
                                              "such as 65536, 64KiB, 16MiB or 2GiB in 1KiB .. "
                                              "1GiB"),
                          "f.yaml:5:8: cache: must be a mapping of keys",
                          testing::StartsWith("f.yaml:6:1: unknown key \"nothing\"; known are: "
                                              "data_dir, server, cache")));
}

struct BadFile {
  const char* yaml;
  const char* message;
};

class BadConfig : public testing::TestWithParam<BadFile> {};

TEST_P(BadConfig, IsRefused) {
  EXPECT_THAT(errors_of(GetParam().yaml), ElementsAre(HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadConfig,
    testing::Values(
        BadFile{"a: [", "not valid YAML"}, BadFile{"- 1", "the file: must be a mapping"},
        BadFile{"---\ndata_dir: /d\n---\nb: 2\n", "f.yaml:3:1: a second YAML document"},
        BadFile{",wr:e", "f.yaml:1:1: a second YAML document or stray text"},
        BadFile{"? [a, b]\n: 1\n", "a key must be plain text"},
        BadFile{"data_dir: /a\ndata_dir: /b\n", "\"data_dir\" is given twice"},
        BadFile{"\"a\\n\\u001bb\": 1", "unknown key \"a\\n\\x1bb\""},
        BadFile{"data_dir: [x]", "data_dir: must be a single value"},
        BadFile{"data_dir:", "data_dir: has no value"},
        BadFile{"data_dir: \"a\\u0007b\"", "must not contain control characters"},
        BadFile{"server: {threads: 257}", "server.threads: is out of range: must be in 0 .. 256"},
        BadFile{"server: {threads: -1}", "must be a whole number"},
        BadFile{"server: {threads: 1.5}", "must be a whole number"},
        BadFile{"server: {threads: 99999999999999999999}", "is out of range"},
        BadFile{"server: {max_body_bytes: 18446744073709551615GiB}", "is out of range"},
        BadFile{"server: {max_body_bytes: 16MB}", "must be a size"},
        BadFile{"server: {drain_timeout: 10}", "must be a duration such as 500ms"},
        BadFile{"server: {drain_timeout: 2h}", "out of range: must be in 0s .. 1h"},
        BadFile{"cache: {enabled: yes}", "must be true or false"},
        BadFile{"cache: {policy: on}", "must be one of auto, all, off"},
        BadFile{"models: {name: a}", "models: must be a list"},
        BadFile{"models: [small]", "models[0]: must be a mapping"},
        BadFile{"models: [{name: a b, path: p}]", "models[0].name: must not contain spaces"},
        BadFile{"models: [{name: '', path: p}]", "models[0].name: must not be empty"},
        BadFile{"models: [{name: a}]", "models[0].path: is required"}));

INSTANTIATE_TEST_SUITE_P(
    Listen, BadConfig,
    testing::Values(BadFile{"server: {listen: '8080'}", "the port is missing"},
                    BadFile{"server: {listen: '127.0.0.1:65536'}", "0 .. 65535"},
                    BadFile{"server: {listen: '::1:80'}", "IPv6 needs brackets"},
                    BadFile{"server: {listen: 'host.example:80'}", "not an IP address"}));

TEST(Config, VariablesAreSubstitutedOnce) {
  const auto config = parse("data_dir: /a/${X}/$${X}/$y${Z}", with({{"X", "${Z}"}, {"Z", ""}}));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->data_dir, "/a/${Z}/${X}/$y");
}

TEST(Config, BadVariablesAreErrorsThatNameThem) {
  EXPECT_THAT(errors_of("data_dir: /a/${NO_SUCH}"),
              ElementsAre(HasSubstr("the environment variable NO_SUCH is not set")));
  for (const char* text : {"${", "${}", "${A-B}", "${1A}"}) {
    EXPECT_THAT(errors_of("data_dir: '" + std::string(text) + "'"),
                ElementsAre(HasSubstr("must begin a variable")))
        << text;
  }
}

TEST(Config, ToolsDoNotNeedSecrets) {
  const std::string yaml = std::string(
      "upstreams: [{name: u, base_url: 'http://h', api_key: "
      "'${NO_KEY}', headers: {x: '${NO_HEADER}'}}]\n");
  EXPECT_EQ(errors_of(yaml).size(), 2u);
  ConfigOptions options = with({});
  options.need_secrets = false;
  EXPECT_TRUE(parse(yaml, options));
  EXPECT_EQ(errors_of("data_dir: ${NO_KEY}", options).size(), 1u);
}

TEST(Config, ErrorsNeverShowSecretsOrSubstitutedValues) {
  const std::string yaml =
      "server: {threads: '${SECRET}', listen: '${SECRET}'}\n"
      "upstreams:\n"
      "  - {name: u, base_url: '${SECRET}', api_key: \"hunter2\\n\", headers: {x: "
      "\"hunter2\\n\"}}\n";
  const auto errors = errors_of(yaml, with({{"SECRET", "hunter2"}}));
  EXPECT_EQ(errors.size(), 5u);
  for (const std::string& error : errors) {
    EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  }
}

TEST(Config, TheCommandLineIsCheckedLikeTheFile) {
  ConfigOptions options = with({});
  options.listen = "127.0.0.1:0";
  options.data_dir = "/other";
  const auto config = parse("server: {listen: '127.0.0.1:8080'}\ndata_dir: /d\n", options);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->server.listen, "127.0.0.1:0");
  EXPECT_EQ(config->log.path, "/other/log.db");
  options.listen = "example:1";
  EXPECT_THAT(errors_of("server: {listen: '127.0.0.1:8080'}", options),
              ElementsAre(testing::StartsWith("f.yaml: --listen: ")));
}

TEST(Config, LimitsOfTheFile) {
  EXPECT_THAT(errors_of(std::string((1u << 20) + 1, ' ')),
              ElementsAre(HasSubstr("longer than the limit of 1048576 bytes")));
  std::string many = "routes: [";
  for (int i = 0; i < 1025; ++i) many += "x,";
  EXPECT_THAT(errors_of(many + "]"), ElementsAre(HasSubstr("more than the limit of 1024 items")));
  EXPECT_FALSE(errors_of(std::string(100'000, '[')).empty());
}

TEST(ListenAddress, IsParsed) {
  EXPECT_EQ(parse_listen("localhost:1")->address, "127.0.0.1");
  EXPECT_EQ(parse_listen("[::1]:2")->address, "::1");
  EXPECT_TRUE(parse_listen("[::1]:2")->loopback);
  EXPECT_TRUE(parse_listen("127.9.9.9:2")->loopback);
  EXPECT_FALSE(parse_listen("10.0.0.1:2")->loopback);
  EXPECT_EQ(parse_listen("10.0.0.1:2")->port, 2);
  for (const char* bad : {"", ":", "1.2.3.4:", "1.2.3.4:+1", "[localhost]:1", "[1.2.3.4]:1"}) {
    EXPECT_FALSE(parse_listen(bad)) << bad;
  }
}

TEST(Glob, MatchesWholeNames) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("gpt-*", "gpt-"));
  EXPECT_TRUE(glob_matches("*-mini*x", "a-mini-mini-yx"));
  EXPECT_FALSE(glob_matches("gpt-*", "a-gpt-4"));
  EXPECT_FALSE(glob_matches("gpt", "gpt-4"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches("a?c", "abc"));
}

// Against the definition: a glob is a list of pieces between stars.
bool matches_by_definition(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') {
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (matches_by_definition(glob.substr(1), text.substr(i))) return true;
    }
    return false;
  }
  return !text.empty() && text[0] == glob[0] &&
         matches_by_definition(glob.substr(1), text.substr(1));
}

TEST(Glob, AgreesWithItsDefinition) {
  EXPECT_TRUE(rc::check([] {
    // Short texts: the definition takes exponential time.
    const auto glob =
        *rc::gen::resize(10, rc::gen::container<std::string>(rc::gen::element('a', 'b', '*')));
    const auto text =
        *rc::gen::resize(10, rc::gen::container<std::string>(rc::gen::element('a', 'b')));
    RC_ASSERT(glob_matches(glob, text) == matches_by_definition(glob, text));
  }));
}

TEST(Config, TheExampleFilesAreAccepted) {
  ConfigOptions options;
  options.environment = [](const std::string& name) {
    return std::optional<std::string>(name == "REDIS_URL" ? "redis://h" : name);
  };
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(FIXPOINT_SOURCE_DIR) + "/deploy")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto config = load_config(entry.path(), options);
    EXPECT_TRUE(config) << config.error()[0].text();
    ++files;
  }
  EXPECT_GE(files, 3);
}

TEST(ConfigKeys, ReadmeHasTheTable) {
  std::ifstream file(std::string(FIXPOINT_SOURCE_DIR) + "/README.md");
  ASSERT_TRUE(file.is_open()) << "README.md: run the tests from the top of the source tree";
  std::ostringstream text;
  text << file.rdbuf();
  const std::string readme = text.str(), begin = "<!-- config keys -->\n";
  const std::size_t from = readme.find(begin), to = readme.find("<!-- /config keys -->");
  ASSERT_TRUE(from < to && to != std::string::npos) << "README.md lacks the markers of the table";
  EXPECT_TRUE(readme.substr(from + begin.size(), to - from - begin.size()) ==
              config_keys_markdown())
      << "put the output of `fixpoint check-config --print-keys` between README.md's markers";
}

TEST(ConfigKeys, TheTableHasDefaultsAndLimits) {
  const std::string table = config_keys_markdown();
  EXPECT_THAT(
      table,
      HasSubstr("| `server.listen` | name | `127.0.0.1:8080` | up to 128 bytes | restart |"));
  EXPECT_THAT(table,
              HasSubstr("| `server.max_body_bytes` | size | `16MiB` | 1KiB .. 1GiB | restart |"));
  EXPECT_THAT(table, HasSubstr("| `server.idle_timeout` | duration | `75s` | 1ms .. 1d |"));
  EXPECT_THAT(table, HasSubstr("| `models[].path` | text | required |"));
  EXPECT_THAT(
      table,
      HasSubstr("| `routes[].repro` | choice | `off` | off, preferred, required | SIGHUP |"));
  EXPECT_THAT(table, HasSubstr("| `cache.ttl` | duration | `0s` | 0s .. 3650d | SIGHUP |"));
  EXPECT_THAT(table, HasSubstr("| `prices[].input` | number | required | 0 .. 1000000 | SIGHUP |"));
  EXPECT_THAT(table,
              HasSubstr("| `upstreams[].api_keys` | list of secrets | empty | up to 1024 of up to "
                        "4096 bytes | SIGHUP |"));
  EXPECT_THAT(table, HasSubstr("| `routes[].weights` | mapping | empty |"));
  EXPECT_EQ(table.find("``"), std::string::npos);
}

}  // namespace
}  // namespace fixpoint
