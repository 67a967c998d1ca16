// log export | fingerprints | margins --by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cache/token_log.hpp"
#include "gateway/cli/cli.hpp"
#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ran {
  int code;
  std::string out, err;
};

class CliLog : public TokenLogFixture {
 protected:
  Ran run(std::vector<std::string> arguments, std::ostream* instead = nullptr) {
    arguments.insert(arguments.begin(), {"fixpoint", "log"});
    arguments.insert(arguments.end(), {"--data-dir", folder_.file("")});
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::ostringstream out, err;
    const CliContext context{
        .out = instead != nullptr ? *instead : out,
        .err = err,
        .environment = [](const std::string& name) -> std::optional<std::string> {
          if (name == "HOME") return "/nowhere";
          return std::nullopt;
        },
        .serve = {}};
    const int code = run_cli(static_cast<int>(argv.size()), argv.data(), context);
    return {code, out.str(), err.str()};
  }

  void fill() {
    options_.redact = {"secret"};
    log_ = open(options_);
    GenerationRecord first = record_of(1, 1'000, tokens_of({"a,\"b\"\n", "\xE2\x82"}, "-c"));
    first.model = "gpt";
    first.route = "g*";
    first.requested_model = "=cmd|' /C calc'!A0";
    first.provider = "up, \"one\"";
    first.fingerprint = "fp_a";
    first.tenant = "key_1";
    first.finish_reason = "stop";
    first.cost_microdollars = 12;
    first.cached_tokens = 3;
    first.attempts = 2;
    first.queue_ms = 0.25;
    first.tokens[0].margin = 0.005F;
    first.tokens[1].logprob = -std::numeric_limits<float>::infinity();
    GenerationRecord second = record_of(2, 2'000, tokens_of({"the secret"}));
    second.model = "gpt";
    second.route = "h*";
    second.requested_model = first.requested_model;
    second.provider = first.provider;
    second.fingerprint = "fp_b";
    GenerationRecord third = record_of(3, 3'000, {});
    third.model = "evil\x1b[31m";
    append(first);
    append(second);
    append(third);
    log_.reset();
  }
};

TEST_F(CliLog, ExportsJsonLines) {
  EXPECT_EQ(run({"export"}).code, kExitNotFound);
  fill();
  const Ran ran = run({"export"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  std::istringstream lines(ran.out);
  std::string line;
  std::vector<json> all;
  while (std::getline(lines, line)) all.push_back(json::parse(line));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["id"], id_of(1));
  EXPECT_EQ(all[0]["requested_model"], "=cmd|' /C calc'!A0");
  EXPECT_EQ(all[0]["tenant"], "key_1");
  EXPECT_EQ(all[0]["cost_microdollars"], 12);
  EXPECT_EQ(all[0]["cached_tokens"], 3);
  EXPECT_EQ(all[0]["attempts"], 2);
  EXPECT_TRUE(all[1]["cost_microdollars"].is_null());
  EXPECT_FALSE(all[0].contains("tokens"));

  const Ran tokens = run({"export", "--format", "jsonl", "--tokens", "--model", "gpt"});
  std::istringstream token_lines(tokens.out);
  std::getline(token_lines, line);
  EXPECT_EQ(json::parse(line)["tokens"][1]["bytes"], (std::vector<int>{0xE2, 0x82}));
  EXPECT_FALSE(json::parse(line)["tokens"][1].contains("redacted"));
  std::getline(token_lines, line);
  EXPECT_EQ(json::parse(line)["tokens"][0]["redacted"], true);
  EXPECT_EQ(json::parse(line)["tokens"][0]["token"], "");
  EXPECT_FALSE(std::getline(token_lines, line));
}

TEST_F(CliLog, ExportsCsv) {
  fill();
  const Ran ran = run({"export", "--format", "csv"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out.find("id,created_ms,key,"), 0u);
  EXPECT_THAT(ran.out,
              HasSubstr("\r\n" + id_of(1) +
                        ",1000,,,,gpt,'=cmd|' /C calc'!A0,\"up, \"\"one\"\"\",g*,fp_a,key_1,stop,"
                        "0,0,0,3,12,2,0.25,0,0,captured\r\n"));
  EXPECT_THAT(ran.out, HasSubstr("\r\n" + id_of(2) + ",2000,"));
  EXPECT_THAT(ran.out, HasSubstr(",0,0,0,0,,0,0,0,0,captured\r\n"));  // no cost is known

  const Ran tokens = run({"export", "--format", "csv", "--tokens"});
  EXPECT_THAT(
      tokens.out,
      HasSubstr(id_of(1) + ",1000,gpt,g*,0,0,7,\"\"\"a,\\\"\"b\\\"\"\\n\"\"\",612c2262220a,-0.1,"
                           "0.005,false,\"[{\"\"token\"\":"));
  EXPECT_THAT(tokens.out, HasSubstr(",e282,-inf,0.5,false,"));
  EXPECT_THAT(tokens.out, HasSubstr(id_of(2) + ",2000,gpt,h*,0,0,,\"\"\"\"\"\",,-0.1,0.5,true,"));
  EXPECT_THAT(tokens.out, Not(HasSubstr("secret")));
}

TEST_F(CliLog, ExportsWhatIsAskedFor) {
  fill();
  const auto lines = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "export");
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    return std::count(ran.out.begin(), ran.out.end(), '\n');
  };
  EXPECT_EQ(lines({"--model", "gpt"}), 2);
  EXPECT_EQ(lines({"--model", "gpt", "--route", "h*"}), 1);
  EXPECT_EQ(lines({"--until", "1970-01-01T00:00:02Z"}), 1);
  EXPECT_EQ(lines({"--since", "1970-01-01T00:00:02Z"}), 2);
  EXPECT_EQ(lines({"--since", "1h"}), 0);
  EXPECT_EQ(lines({"--since", "1h", "--format", "csv"}), 1);
  EXPECT_EQ(run({"export", "--format", "xml"}).code, kExitUsage);
  EXPECT_EQ(run({"export", "--since", "soon"}).code, kExitUsage);
}

TEST_F(CliLog, DamagedGenerationsAreLeftOutNamedAndCounted) {
  fill();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(options_.path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database,
                         "UPDATE tokens SET packed = x'FF' WHERE generation ="
                         " (SELECT row FROM generations WHERE created_ms = 1000)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"export", "--tokens"},
                                               {"margins"},
                                               {"margins", "--by", "model"}}) {
    const Ran ran = run(verb);
    EXPECT_EQ(ran.code, kExitFailed) << verb[0];
    EXPECT_THAT(ran.out, HasSubstr(id_of(2))) << verb[0];
    EXPECT_EQ(ran.err, "fixpoint: " + id_of(1) +
                           ": its tokens are damaged\nfixpoint: 1 generation left out: damaged\n");
  }
  EXPECT_EQ(run({"export"}).code, kExitOk);
}

TEST_F(CliLog, AnExportThatCannotBeWrittenFails) {
  fill();
  std::ostringstream closed;
  closed.setstate(std::ios::badbit);
  EXPECT_EQ(run({"export"}, &closed).code, kExitFailed);
}

TEST_F(CliLog, ReportsMarginsByModelAndRoute) {
  fill();
  const json both = json::parse(run({"margins", "--by", "model,route", "--json"}).out);
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(both[0]["model"], "gpt");
  EXPECT_EQ(both[0]["route"], "g*");
  EXPECT_EQ(both[0]["tokens"], 2);
  EXPECT_EQ(both[0]["below"][0]["tokens"], 1);
  EXPECT_EQ(both[0]["below"][0]["share"], 0.5);
  EXPECT_EQ(both[0]["below"][2]["share"], 1.0);
  EXPECT_EQ(both[0]["thinnest"][0]["generation"], id_of(1));
  EXPECT_EQ(both[2]["below"][0]["share"], 0.0);

  const Ran table = run({"margins", "--by", "route", "--examples", "1"});
  EXPECT_EQ(table.code, kExitOk) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("50.00%"), HasSubstr("100.00%  g*\n"),
                               HasSubstr("0.0050  \"a,\"b\"\\n\""), HasSubstr("(redacted)")));
  EXPECT_THAT(run({"margins", "--by", "model"}).out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(json::parse(run({"margins", "--by", "model", "--model", "gpt", "--json"}).out).size(),
            1u);
  EXPECT_EQ(run({"margins", "--by", "tenant"}).code, kExitUsage);
  EXPECT_EQ(run({"margins", "--by", "model", "gen-1"}).code, kExitUsage);
  EXPECT_EQ(run({"margins", "--model", "gpt"}).code, kExitUsage);
}

TEST_F(CliLog, ListsFingerprints) {
  fill();
  const Ran ran = run({"fingerprints"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("=cmd|' /C calc'!A0 of up, \"one\"\n  first   1970-01-01T00:00:01.000Z"));
  EXPECT_THAT(ran.out, HasSubstr("  changed 1970-01-01T00:00:02.000Z"));
  EXPECT_THAT(ran.out, HasSubstr("1 generations  fp_b\n"));
  const json list = json::parse(run({"fingerprints", "--json"}).out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[0]["changed_from"].is_null());
  EXPECT_EQ(list[1]["changed_from"], "fp_a");
}

}  // namespace
}  // namespace fixpoint::test
