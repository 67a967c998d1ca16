#include <gmock/gmock.h>
#include <sqlite3.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

using ::testing::HasSubstr;

class TokenLogMigration : public TokenLogFixture {
 protected:
  TokenLogMigration() {
    std::ifstream file(std::string(FIXPOINT_SOURCE_DIR) +
                       "/tests/unit/cache/token_log_version_1.sql");
    std::stringstream sql;
    sql << "PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;"
        << file.rdbuf();
    EXPECT_TRUE(file) << "run from the top of the source tree";
    run(sql.str());
  }

  void run(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(options_.path.c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(database);
  }

  std::string schema_of(const std::string& path) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    std::string text;
    EXPECT_EQ(sqlite3_exec(
                  database, "SELECT type, name, sql FROM sqlite_schema ORDER BY name",
                  [](void* out, int count, char** values, char**) {
                    for (int i = 0; i < count; ++i) {
                      *static_cast<std::string*>(out) += values[i] == nullptr ? "-" : values[i];
                    }
                    return 0;
                  },
                  &text, nullptr),
              SQLITE_OK);
    sqlite3_close(database);
    return text;
  }
};

TEST_F(TokenLogMigration, ReadersRefuseTheOldVersion) {
  options_.read_only = true;
  const Error error = TokenLog::open(options_).error();
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("version 1"));
}

TEST_F(TokenLogMigration, KeepsEverything) {
  for (int round = 0; round < 2; ++round) {  // migrated, and opened again
    log_ = open(options_);
    const Result<GenerationRecord> first = log_->show(id_of(1));
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->created_ms, 1'764'500'001'000);
    EXPECT_EQ(first->key, "body:" + std::string(63, '0') + "1");
    EXPECT_EQ(first->prompt_hash, std::string(64, 'a'));
    EXPECT_EQ(first->requested_model, "asked");
    EXPECT_EQ(first->fingerprint, "fp_a");
    EXPECT_EQ(first->sample, 1u);
    EXPECT_EQ(first->prompt_tokens, 10u);
    EXPECT_EQ(first->total_ms, 99.75);
    EXPECT_EQ(first->logprobs_status, "captured");
    EXPECT_EQ(first->tenant, "");
    EXPECT_EQ(first->attempts, 0u);
    EXPECT_EQ(first->cost_microdollars, std::nullopt);

    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    LoggedToken a = token_of(0, 0, 0.005f);
    a.id = 42;
    a.bytes = std::string("\xF0\x9F\0\xFF", 4);
    a.top = {{42, a.bytes, -0.1f}, {std::nullopt, "b", -kInfinity}};
    LoggedToken b = token_of(0, 1, 0.5f);
    b.bytes = " word";
    b.logprob = -kInfinity;
    b.top = {{-7, "x", -0.5f}};
    LoggedToken c = token_of(1, 0, std::nullopt);
    c.bytes = "";
    c.logprob = std::numeric_limits<float>::quiet_NaN();
    ASSERT_EQ(first->tokens.size(), 3u);
    expect_equal(first->tokens[0], a);
    expect_equal(first->tokens[1], b);
    expect_equal(first->tokens[2], c);

    EXPECT_TRUE(log_->show(id_of(3))->tokens.empty());
    EXPECT_EQ(log_->show("body:" + std::string(63, '0') + "2")->id, id_of(2));
    EXPECT_EQ(log_->tail(10)->size(), 3u);
    EXPECT_EQ(log_->thin_margins({})->front().generation, id_of(1));

    const Result<std::vector<MarginReport>> report = log_->margin_report({});
    ASSERT_TRUE(report);
    ASSERT_EQ(report->size(), 2u);
    EXPECT_EQ((*report)[0].model, "m1");
    EXPECT_EQ((*report)[0].tokens, 6u);
    EXPECT_EQ((*report)[0].with_margin, 4u);
    EXPECT_EQ((*report)[0].below[0], 1u);  // 0.005, and not 0.01
    EXPECT_EQ((*report)[0].below[1], 2u);
    EXPECT_EQ((*report)[0].below[2], 4u);

    const Result<std::vector<SeenFingerprint>> seen = log_->fingerprints();
    ASSERT_TRUE(seen);
    ASSERT_EQ(seen->size(), 2u);
    EXPECT_EQ((*seen)[0].model, "asked");
    EXPECT_EQ((*seen)[0].fingerprint, "fp_a");
    EXPECT_EQ((*seen)[1].first_seen_ms, 1'764'500'002'000);
    log_.reset();
  }
  log_ = open(options_);
  append(record_of(4, 1'764'500'004'000, {token_of(0, 0, 0.1f)}));
  log_->flush();
  EXPECT_EQ(log_->failed_writes(), 0u);
}

TEST_F(TokenLogMigration, MakesTheSchemaOfANewFile) {
  open(options_).reset();
  TokenLogOptions fresh = options_;
  fresh.path = folder_.file("fresh.db");
  open(fresh).reset();
  EXPECT_EQ(schema_of(options_.path), schema_of(fresh.path));
}

// Version 2 is version 3 with fingerprints under the names that answers gave.
TEST_F(TokenLogMigration, FingerprintsOfVersion2MoveToTheModelsThatWereAskedFor) {
  open(options_).reset();
  run("UPDATE fingerprints SET model = 'm1'; PRAGMA user_version=2;");
  TokenLogOptions reading = options_;
  reading.read_only = true;
  EXPECT_THAT(TokenLog::open(reading).error().message, HasSubstr("version 2; the first fixpoint"));
  log_ = open(options_);
  const Result<std::vector<SeenFingerprint>> seen = log_->fingerprints();
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_EQ(seen->size(), 2u);
  for (const SeenFingerprint& one : *seen) {
    EXPECT_EQ(one.model, "asked");
    EXPECT_EQ(one.provider, "up");
    EXPECT_EQ(one.generations, 1u);
    EXPECT_EQ(one.first_seen_ms, one.last_seen_ms);
  }
  EXPECT_EQ(log_->tail(10)->size(), 3u);
}

TEST_F(TokenLogMigration, ADamagedFileStaysAsItIs) {
  run("UPDATE tokens SET top = x'0102' WHERE generation = 2");
  const std::string before = schema_of(options_.path);
  const Error error = TokenLog::open(options_).error();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message, HasSubstr("migrating the token log from version 1 to 3"));
  EXPECT_EQ(schema_of(options_.path), before);
  run("UPDATE tokens SET top = x'' WHERE generation = 2");
  EXPECT_TRUE(TokenLog::open(options_));
}

}  // namespace
}  // namespace fixpoint::test
