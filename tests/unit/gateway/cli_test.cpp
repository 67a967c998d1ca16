#include "gateway/cli/cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>

#include "cache/entry_json.hpp"
#include "cache/store.hpp"
#include "cache/token_log.hpp"
#include "gateway/cli/times.hpp"
#include "gateway/version.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Ran {
  int code;
  std::string out, err;
};

// Every test has its own home and data folder; nothing of the user's is read.
class Cli : public testing::Test {
 protected:
  Ran run(std::vector<std::string> arguments) {
    std::ostringstream out, err;
    const CliContext context{out, err,
                             [this](const std::string& name) -> std::optional<std::string> {
                               if (name == "HOME") return home_.path().string();
                               return std::nullopt;
                             },
                             [this](const ServeArguments& asked) {
                               served_ = asked;
                               return kExitOk;
                             },
                             false};
    arguments.insert(arguments.begin(), "fixpoint");
    std::vector<const char*> argv;
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    const int code = run_cli(static_cast<int>(argv.size()), argv.data(), context);
    return {code, out.str(), err.str()};
  }
  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(home_.file(name)) << content;
    return home_.file(name);
  }
  std::string data(const std::string& name) {
    const std::filesystem::path folder = home_.path() / ".local/share/fixpoint";
    std::filesystem::create_directories(folder);
    return (folder / name).string();
  }

  CacheKey fill_cache() {
    SqliteStoreOptions options;
    options.path = data("cache.db");
    auto store = open_sqlite_store(options);
    EXPECT_TRUE(store) << store.error().message;
    BodyKeyInput input;
    input.request = R"({"model":"m"})";
    const CacheKey key = *body_key(input);
    Entry entry;
    entry.key = key;
    entry.tenant = "team";
    entry.endpoint = "chat.completions";
    entry.model = "m";
    entry.provider = "up";
    entry.generation = "gen-1";
    entry.created_ms = 1'700'000'000'000;
    entry.body = std::make_shared<const std::string>(R"({"id":123456789012345678901234567890})");
    (*store)->put(std::make_shared<const Entry>(std::move(entry)));
    (*store)->flush();
    return key;
  }

  void fill_log() {
    TokenLogOptions options;
    options.path = data("log.db");
    auto log = TokenLog::open(options);
    ASSERT_TRUE(log) << log.error().message;
    GenerationRecord record;
    record.id = "gen-000000000000000000000001";
    record.created_ms = cli::now_ms() - 60'000;
    record.model = record.requested_model = "m";
    record.finish_reason = "stop";
    record.completion_tokens = 3;
    record.logprobs_status = "captured";
    record.tokens = {token(0, "Hel\x1b[31mlo", 0.9F, 0.05F), token(1, " the", 0.41F, 0.40F),
                     token(2, "\xE2\x82", 0.5F, 0.25F)};
    (*log)->append(record);
    (*log)->flush();
  }
  static LoggedToken token(std::uint32_t position, const std::string& bytes, float p, float next) {
    LoggedToken one;
    one.position = position;
    one.id = 7;
    one.bytes = bytes;
    one.logprob = std::log(p);
    one.margin = std::log(p) - std::log(next);
    one.top = {{7, bytes, std::log(p)}, {8, " other", std::log(next)}};
    return one;
  }

  const test::TempDir home_;
  std::optional<ServeArguments> served_;
};

TEST_F(Cli, VersionIsTheProjects) {
  EXPECT_EQ(run({"--version"}).out, "fixpoint " + std::string(kVersion) + "\n");
  std::ifstream file(std::string(FIXPOINT_SOURCE_DIR) + "/CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("project(fixpoint VERSION " + std::string(kVersion)));
}

TEST_F(Cli, WrongCommandLinesAreCode2) {
  EXPECT_EQ(run({}).code, kExitUsage);
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"no-such-verb"},
                                             {"cache"},
                                             {"cache", "get"},
                                             {"log", "tail", "-n", "0"},
                                             {"log", "tail", "-n", "10001"},
                                             {"log", "margins", "--since", "soon"},
                                             {"log", "margins", "gen-1", "--since", "1h"},
                                             {"cache", "purge"},
                                             {"cache", "purge", "--all", "--model", "m"},
                                             {"cache", "purge", "--older-than", "30"},
                                             {"cache", "get", "body:12"},
                                             {"check-config", "--no-such-option"}}) {
    const Ran ran = run(line);
    EXPECT_EQ(ran.code, kExitUsage) << line[0];
    EXPECT_FALSE(ran.err.empty()) << line[0];
    EXPECT_EQ(ran.out, "") << line[0];
  }
}

TEST_F(Cli, EveryVerbHasAnExample) {
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"serve"},
                                             {"check-config"},
                                             {"model", "pull"},
                                             {"model", "list"},
                                             {"model", "inspect"},
                                             {"cache", "stats"},
                                             {"cache", "get"},
                                             {"cache", "purge"},
                                             {"log", "tail"},
                                             {"log", "show"},
                                             {"log", "margins"}}) {
    auto line = verb;
    line.push_back("--help");
    const Ran ran = run(line);
    EXPECT_EQ(ran.code, kExitOk);
    std::string words = "Example: fixpoint";
    for (const std::string& word : verb) words += " " + word;
    EXPECT_THAT(ran.out, HasSubstr(words));
  }
  EXPECT_THAT(run({"--help"}).out, HasSubstr("Exit codes: 0 done, 1 failed, 2 wrong command line"));
}

TEST_F(Cli, ServeGetsTheConfiguration) {
  const std::string file = write("c.yaml", "server: {threads: 2}\n");
  EXPECT_EQ(run({"serve", "--config", file, "--listen", "127.0.0.1:9"}).code, kExitOk);
  ASSERT_TRUE(served_);
  EXPECT_EQ(served_->config.server.threads, 2u);
  EXPECT_EQ(served_->config.server.listen, "127.0.0.1:9");
  EXPECT_EQ(served_->file, file);
  // The same file is loaded again in the same way.
  const auto again = load_config(served_->file, served_->options);
  ASSERT_TRUE(again);
  EXPECT_EQ(reload_problems(served_->config, *again), std::vector<std::string>());
  served_.reset();
  EXPECT_EQ(run({"serve", "--config", file, "--listen", "example:9"}).code, kExitUsage);
  EXPECT_FALSE(served_);
}

TEST_F(Cli, ServeRecordsOrReplays) {
  const std::string file =
      write("c.yaml", "upstreams: [{name: u, base_url: 'http://h', api_key: '${NO_SUCH_KEY}'}]\n");
  EXPECT_EQ(run({"serve", "--config", file, "--record", "/r"}).code, kExitUsage);
  EXPECT_EQ(run({"serve", "--config", file, "--replay", "/r"}).code, kExitOk);
  ASSERT_TRUE(served_);
  EXPECT_EQ(served_->replay_dir, "/r");
  EXPECT_EQ(served_->record_dir, std::nullopt);
  EXPECT_EQ(run({"serve", "--record", "/r"}).code, kExitOk);
  EXPECT_EQ(served_->record_dir, "/r");
  EXPECT_EQ(run({"serve", "--record", "/r", "--replay", "/s"}).code, kExitUsage);
}

TEST_F(Cli, CheckConfigReportsErrorsAndNotes) {
  const std::string bad = write("bad.yaml", "a: 1\nserver: {threads: x}\n");
  const Ran text = run({"check-config", "--config", bad});
  EXPECT_EQ(text.code, kExitUsage);
  EXPECT_THAT(text.err, AllOf(HasSubstr(bad + ":1:1: unknown key"), HasSubstr(bad + ":2:19: "),
                              HasSubstr("2 errors\n")));
  const Ran machine = run({"--json", "check-config", "--config", bad});
  const json errors = json::parse(machine.out);
  EXPECT_EQ(errors["ok"], false);
  EXPECT_EQ(errors["errors"][1]["column"], 19);

  const std::string good = write("good.yaml", "models: [{name: m, path: smollm2-135m}]\n");
  const Ran ok = run({"check-config", "--config", good});
  EXPECT_EQ(ok.code, kExitOk);
  EXPECT_EQ(ok.out, good + ": ok, 1 model, 0 upstreams, 0 routes\n");
  EXPECT_THAT(ok.err, HasSubstr("note: models[0].path: the model smollm2-135m is not in"));
  EXPECT_EQ(json::parse(run({"check-config", "--config", good, "--json"}).out)["notes"].size(), 1u);
  EXPECT_EQ(run({"check-config", "--config", home_.file("none")}).code, kExitUsage);
  const Ran empty = run({"check-config", "--config", write("empty.yaml", "")});
  EXPECT_THAT(empty.out, HasSubstr("1 model, 0 upstreams, 1 route"));
  EXPECT_THAT(empty.err, HasSubstr("fixpoint-tiny answers requests for fixpoint-tiny"));
  EXPECT_EQ(run({"check-config", "--print-keys"}).out, config_keys_markdown());
}

TEST_F(Cli, CheckConfigReadsTheFilesThatServeReads) {
  const std::string file = write("c.yaml", "server: {tls_cert_file: none.pem, tls_key_file: k}\n");
  const Ran checked = run({"check-config", "--config", file});
  EXPECT_EQ(checked.code, kExitUsage);
  EXPECT_THAT(checked.err, HasSubstr(file + ":1:25: server.tls_cert_file: "));
  EXPECT_EQ(run({"model", "list", "--config", file}).code, kExitOk);
}

TEST_F(Cli, ToolsRunWithoutTheSecretsOfTheConfiguration) {
  const std::string file = write(
      "c.yaml", "upstreams: [{name: u, base_url: 'http://h', api_key: '${OPENAI_API_KEY}'}]\n");
  EXPECT_EQ(run({"model", "list", "--config", file}).code, kExitOk);
  EXPECT_EQ(run({"check-config", "--config", file}).code, kExitUsage);
}

TEST_F(Cli, ModelVerbs) {
  EXPECT_THAT(run({"model", "list"}).out, HasSubstr("`fixpoint model pull smollm2-135m`"));
  EXPECT_EQ(json::parse(run({"model", "list", "--json"}).out)[0]["present"], false);
  const json tiny = json::parse(run({"model", "list", "--json"}).out).back();
  EXPECT_EQ(tiny["name"], "fixpoint-tiny");
  EXPECT_EQ(tiny["present"], true);
  EXPECT_THAT(run({"model", "inspect", "fixpoint-tiny"}).err, HasSubstr("is a folder"));
  EXPECT_EQ(run({"model", "pull", "no-such-model"}).code, kExitNotFound);
  EXPECT_EQ(run({"model", "pull", "smollm2-135m", "--from", home_.file("none")}).code,
            kExitNotFound);
  const std::string wrong = write("wrong.gguf", "GGUF");
  const Ran pull = run({"model", "pull", "smollm2-135m", "--from", wrong});
  EXPECT_EQ(pull.code, kExitFailed);
  EXPECT_THAT(pull.err, HasSubstr("has 4 bytes, but smollm2-135m has 98362432"));
  EXPECT_EQ(run({"model", "inspect", wrong}).code, kExitFailed);
  EXPECT_EQ(run({"model", "inspect", home_.file("none")}).code, kExitNotFound);
}

// A GGUF file of two metadata entries and one tensor, written by hand.
TEST_F(Cli, ModelInspectShowsAnyGguf) {
  std::string file = "GGUF";
  const auto number = [&](std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(value >> (8 * i));
  };
  const auto text = [&](const std::string& s) {
    number(s.size(), 8);
    file += s;
  };
  number(3, 4), number(1, 8), number(2, 8);
  text("general.name"), number(8, 4), text("a\x1b[2Jmodel");
  text("list"), number(9, 4), number(4, 4), number(2, 8), number(5, 4), number(6, 4);
  text("weight"), number(1, 4), number(4, 8), number(0, 4), number(0, 8);
  file.resize((file.size() + 31) / 32 * 32 + 16);
  const std::string path = write("any.gguf", file);

  const Ran human = run({"model", "inspect", path});
  ASSERT_EQ(human.code, kExitOk) << human.err;
  EXPECT_THAT(human.out, AllOf(HasSubstr("GGUF version 3, 1 tensors, 4 parameters"),
                               HasSubstr("general.name (string): a\\x1b[2Jmodel\n"),
                               HasSubstr("weight"), Not(HasSubstr("\x1b"))));
  const json machine = json::parse(run({"model", "inspect", path, "--json"}).out);
  EXPECT_EQ(machine["metadata"][0]["value"], "a\x1b[2Jmodel");
  EXPECT_EQ(machine["metadata"][1]["value"]["size"], 2);
  EXPECT_EQ(machine["tensors"][0]["bytes"], 16);
}

TEST_F(Cli, CacheExportsAndImports) {
  EXPECT_EQ(run({"cache", "export"}).code, kExitNotFound);
  const CacheKey key = fill_cache();
  const Ran exported = run({"cache", "export"});
  EXPECT_EQ(exported.code, kExitOk);
  EXPECT_EQ(exported.err, "exported 1 entry\n");
  const json line = json::parse(exported.out);
  EXPECT_EQ(line["key"], key.name());
  EXPECT_EQ(line["material"]["request"]["model"], "m");
  EXPECT_EQ(run({"cache", "export", "--model", "m", "--tenant", "team"}).out, exported.out);
  EXPECT_EQ(run({"cache", "export", "--tenant", "other"}).out, "");
  EXPECT_EQ(run({"cache", "export", "--older-than", "5000w"}).out, "");
  EXPECT_EQ(run({"cache", "export", "--older-than", "x"}).code, kExitUsage);

  // Into a data folder that is not there yet.
  const std::string file = write("answers.jsonl", exported.out + "\n");
  const std::string other = home_.file("other/data");
  EXPECT_EQ(run({"cache", "import", file, "--data-dir", other}).out, "imported 1 entry\n");
  EXPECT_EQ(run({"cache", "export", "--data-dir", other}).out, exported.out);
  EXPECT_EQ(run({"cache", "get", key.name(), "--data-dir", other}).out,
            "{\"id\":123456789012345678901234567890}\n");

  // Damaged lines are refused by number; the others are taken.
  std::string damaged = exported.out;
  damaged.replace(damaged.find("1234567890"), 1, "9");
  const std::string mixed = write("mixed.jsonl", "{}\n" + damaged + exported.out);
  const Ran ran = run({"cache", "import", mixed, "--data-dir", home_.file("third")});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_EQ(ran.out, "imported 1 entry\n");
  EXPECT_THAT(ran.err, AllOf(HasSubstr("mixed.jsonl:1: 'format'"),
                             HasSubstr("mixed.jsonl:2: 'sha256'"), HasSubstr("2 entries refused")));
  EXPECT_EQ(run({"cache", "import", home_.file("none.jsonl")}).code, kExitNotFound);

  SqliteStoreOptions options;
  options.path = data("cache.db");
  const auto held = open_sqlite_store(options);
  const Ran locked = run({"cache", "import", file});
  EXPECT_EQ(locked.code, kExitFailed);
  EXPECT_THAT(locked.err, HasSubstr("another fixpoint has the file open for writing"));
}

TEST_F(Cli, AnImportSaysWhatItDidNotDo) {
  fill_cache();
  const std::string line = run({"cache", "export"}).out;
  const std::string file = write("old.jsonl", line);
  const Ran unread = run({"cache", "import", home_.path().string()});
  EXPECT_EQ(unread.code, kExitFailed);
  EXPECT_THAT(unread.err, HasSubstr("cannot be read beyond line 0"));

  const std::string young = write("young.yaml", "cache: {ttl: 1h}");
  const Ran expired =
      run({"cache", "import", file, "--config", young, "--data-dir", home_.file("young")});
  EXPECT_EQ(expired.out, "imported 0 entries\n");
  EXPECT_THAT(expired.err, HasSubstr("1 entry left out: older than cache.ttl"));
  EXPECT_EQ(
      json::parse(
          run({"cache", "stats", "--json", "--data-dir", home_.file("young")}).out)["entries"],
      0);

  // Two answers of 700 kB, of which zstd makes no less.
  std::string lines;
  std::minstd_rand random(1);
  for (int i = 0; i < 2; ++i) {
    const std::string request = R"({"model":"m","seed":)" + std::to_string(i) + "}";
    BodyKeyInput input;
    input.request = request;
    std::string body;
    while (body.size() < 700'000) body += static_cast<char>(random() >> 8 & 0xFF);
    Entry entry;
    entry.key = *body_key(input);
    entry.body = std::make_shared<const std::string>(std::move(body));
    lines += entry_to_json(entry) + "\n";
  }
  const std::string large = write("large.jsonl", lines);
  const std::string small = write("small.yaml", "cache: {max_bytes: 1MiB}");
  const Ran evicted =
      run({"cache", "import", large, "--config", small, "--data-dir", home_.file("small")});
  EXPECT_EQ(evicted.code, kExitOk);
  EXPECT_EQ(evicted.out, "imported 2 entries\n");
  EXPECT_THAT(evicted.err, HasSubstr("1 entry evicted"));
}

TEST_F(Cli, CacheVerbs) {
  EXPECT_EQ(run({"cache", "stats"}).code, kExitNotFound);
  EXPECT_FALSE(std::filesystem::exists(data("cache.db")));
  const CacheKey key = fill_cache();

  const json stats = json::parse(run({"cache", "stats", "--json"}).out);
  EXPECT_EQ(stats["entries"], 1);
  EXPECT_EQ(stats["body_entries"], 1);
  EXPECT_EQ(stats["newest_ms"], 1'700'000'000'000);
  EXPECT_THAT(run({"cache", "stats"}).out, HasSubstr("newest   2023-11-14T22:13:20.000Z\n"));

  const Ran got = run({"cache", "get", key.name()});
  EXPECT_EQ(got.out, "{\"id\":123456789012345678901234567890}\n");
  EXPECT_THAT(got.err, HasSubstr("generation  gen-1\n"));
  EXPECT_EQ(json::parse(run({"cache", "get", key.name(), "--json"}).out)["body"],
            "{\"id\":123456789012345678901234567890}");
  EXPECT_EQ(run({"cache", "get", "body:" + std::string(64, '0')}).code, kExitNotFound);

  EXPECT_EQ(run({"cache", "purge", "--model", "other"}).out, "removed 0 entries\n");
  EXPECT_EQ(run({"cache", "purge", "--tenant", "other"}).out, "removed 0 entries\n");
  EXPECT_EQ(run({"cache", "purge", "--model", "m", "--older-than", "5000w"}).out,
            "removed 0 entries\n");
  EXPECT_EQ(run({"cache", "purge", "--key", key.name(), "--older-than", "1h"}).out,
            "removed 1 entry\n");
  EXPECT_EQ(json::parse(run({"cache", "purge", "--all", "--json"}).out)["removed"], 0);
  EXPECT_EQ(run({"cache", "get", key.name()}).code, kExitNotFound);
}

TEST_F(Cli, CacheVerbsReportADamagedFile) {
  std::ofstream(data("cache.db")) << std::string(100'000, 'x');
  const Ran ran = run({"cache", "stats"});
  EXPECT_EQ(ran.code, kExitFailed);
  EXPECT_THAT(ran.err, HasSubstr("fixpoint: "));
}

TEST_F(Cli, DataDirReplacesTheConfigurations) {
  fill_cache();
  EXPECT_EQ(run({"cache", "stats", "--data-dir", home_.file("elsewhere")}).code, kExitNotFound);
  EXPECT_EQ(run({"--data-dir", home_.file(".local/share/fixpoint"), "cache", "stats"}).code,
            kExitOk);
}

TEST_F(Cli, LogVerbs) {
  EXPECT_EQ(run({"log", "tail"}).code, kExitNotFound);
  fill_log();
  EXPECT_THAT(run({"log", "tail"}).out, HasSubstr("gen-000000000000000000000001  m  0+3 tokens"));
  EXPECT_EQ(json::parse(run({"log", "tail", "-n", "1", "--json"}).out)[0]["finish_reason"], "stop");

  const Ran show = run({"log", "show", "gen-000000000000000000000001"});
  EXPECT_EQ(show.code, kExitOk);
  EXPECT_THAT(show.out, AllOf(HasSubstr("\"Hel\\x1b[31mlo\""), Not(HasSubstr("\x1b")),
                              HasSubstr("1 of 3 tokens have a margin below 0.5 nats (*)")));
  EXPECT_TRUE(std::regex_search(
      show.out, std::regex("1 +-0\\.8916 +41\\.00% +0\\.0247\\* \" the\" \\| \" the\" 41\\.00%  "
                           "\" other\" 40\\.00%\n")))
      << show.out;
  const json tokens =
      json::parse(run({"log", "show", "gen-000000000000000000000001", "--json"}).out)["tokens"];
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[2]["bytes"], (std::vector<int>{0xE2, 0x82}));
  EXPECT_EQ(tokens[1]["logprob"].get<float>(), std::log(0.41F));  // to the last bit
  EXPECT_EQ(run({"log", "show", "gen-none"}).code, kExitNotFound);

  const Ran margins = run({"log", "margins", "-n", "2"});
  EXPECT_EQ(margins.code, kExitOk);
  const std::size_t thin = margins.out.find("0.0247"), wide = margins.out.find("0.6931");
  EXPECT_LT(thin, wide);
  EXPECT_NE(wide, std::string::npos);
  EXPECT_THAT(margins.out, Not(HasSubstr("Hel")));
  const auto count = [&](std::vector<std::string> line) {
    line.insert(line.begin(), {"log", "margins", "--json"});
    return json::parse(run(line).out).size();
  };
  EXPECT_EQ(count({"--since", "1h"}), 3u);
  EXPECT_EQ(count({"--since", "10s"}), 0u);
  EXPECT_EQ(count({"--until", "2020-01-01"}), 0u);
  EXPECT_EQ(count({"gen-000000000000000000000001"}), 3u);
  EXPECT_EQ(run({"log", "margins", "gen-none"}).code, kExitNotFound);
}

TEST_F(Cli, OutputThatCannotBeWrittenIsAFailure) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  const CliContext context{full, err, [](const std::string&) { return std::string("/h"); },
                           [](const ServeArguments&) { return 0; }, false};
  const char* argv[] = {"fixpoint", "check-config", "--print-keys"};
  EXPECT_EQ(run_cli(3, argv, context), kExitFailed);
}

TEST(Times, MomentsAndAges) {
  using cli::parse_moment;
  constexpr std::int64_t kNow = 1'000'000'000'000;
  EXPECT_EQ(*parse_moment("90s", kNow), kNow - 90'000);
  EXPECT_EQ(*parse_moment("2w", kNow), kNow - 14 * 86'400'000LL);
  EXPECT_EQ(*parse_moment("1970-01-02", kNow), 86'400'000);
  EXPECT_EQ(*parse_moment("2023-11-14T22:13:20Z", kNow), 1'700'000'000'000);
  EXPECT_EQ(*parse_moment("2023-11-14t22:13:20.1234+01:30", kNow), 1'700'000'000'123 - 5'400'000);
  for (const char* bad : {"", "1", "1y", "-1h", "99999999999999999999h", "40000w", "2023-02-29",
                          "2023-1-1", "2023-11-14T22:13:20", "2023-11-14T24:00:00Z",
                          "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zx"}) {
    EXPECT_FALSE(parse_moment(bad, kNow)) << bad;
  }
  for (const std::int64_t ms : {0LL, 1'700'000'000'123LL, 951'782'400'000LL, -1LL}) {
    EXPECT_EQ(*parse_moment(cli::format_time(ms), kNow), ms);
  }
}

}  // namespace
}  // namespace fixpoint
