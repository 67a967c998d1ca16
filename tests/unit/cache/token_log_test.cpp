#include "cache/token_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <tuple>

#include "cache/base/digest.hpp"
#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenLogTest : public TokenLogFixture {
 protected:
  TokenLogTest() { log_ = open(options_); }

  // (generation's model, choice, position) of each.
  std::vector<std::tuple<std::string, std::uint32_t, std::uint32_t>> margins(
      const MarginQuery& query) {
    log_->flush();
    const Result<std::vector<ThinMargin>> found = log_->thin_margins(query);
    if (!found) throw std::runtime_error(found.error().message);
    std::vector<std::tuple<std::string, std::uint32_t, std::uint32_t>> places;
    for (const ThinMargin& margin : *found) {
      places.emplace_back(margin.model, margin.token.choice, margin.token.position);
    }
    return places;
  }
};

TEST_F(TokenLogTest, KeepsEveryField) {
  GenerationRecord record;
  record.id = id_of(1);
  record.created_ms = 1'700'000'000'123;
  record.key = "body:" + sha256_hex("k");
  record.prompt_hash = "hash";
  record.endpoint = "chat.completions";
  record.model = "answered";
  record.requested_model = "asked";
  record.provider = "local";
  record.route = "default";
  record.fingerprint = "fp";
  record.finish_reason = "stop";
  record.sample = 4'000'000'000;
  record.prompt_tokens = 11;
  record.completion_tokens = 3;
  record.queue_ms = 0.25;
  record.first_token_ms = 1.5;
  record.total_ms = 99.75;
  record.tenant = "key-1";
  record.cached_tokens = 7;
  record.cost_microdollars = 1234;
  record.attempts = 2;
  record.logprobs_status = "captured";
  LoggedToken first = token_of(0, 0, 0.1f);  // a float that no short decimal is
  first.id = 42;
  first.bytes = std::string("\xF0\x9F\0\xFF", 4);  // part of a character, and bytes that are none
  first.logprob = -0.1f;
  first.top = {{42, first.bytes, -0.1f},
               {std::nullopt, "b", -std::numeric_limits<float>::infinity()}};
  LoggedToken second = token_of(0, 1, std::nullopt);
  second.logprob = -std::numeric_limits<float>::infinity();
  LoggedToken third = token_of(1, 0, 0.0f);
  third.logprob = std::numeric_limits<float>::quiet_NaN();
  record.tokens = {first, second, third};
  append(record);
  log_.reset();
  log_ = open(options_);

  for (const std::string& name : {record.id, record.key}) {
    const Result<GenerationRecord> found = log_->show(name);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->id, record.id);
    EXPECT_EQ(found->created_ms, record.created_ms);
    EXPECT_EQ(found->key, record.key);
    EXPECT_EQ(found->prompt_hash, record.prompt_hash);
    EXPECT_EQ(found->endpoint, record.endpoint);
    EXPECT_EQ(found->model, record.model);
    EXPECT_EQ(found->requested_model, record.requested_model);
    EXPECT_EQ(found->provider, record.provider);
    EXPECT_EQ(found->route, record.route);
    EXPECT_EQ(found->fingerprint, record.fingerprint);
    EXPECT_EQ(found->finish_reason, record.finish_reason);
    EXPECT_EQ(found->sample, record.sample);
    EXPECT_EQ(found->prompt_tokens, record.prompt_tokens);
    EXPECT_EQ(found->completion_tokens, record.completion_tokens);
    EXPECT_EQ(found->queue_ms, record.queue_ms);
    EXPECT_EQ(found->first_token_ms, record.first_token_ms);
    EXPECT_EQ(found->total_ms, record.total_ms);
    EXPECT_EQ(found->logprobs_status, record.logprobs_status);
    EXPECT_EQ(found->tenant, record.tenant);
    EXPECT_EQ(found->cached_tokens, record.cached_tokens);
    EXPECT_EQ(found->cost_microdollars, record.cost_microdollars);
    EXPECT_EQ(found->attempts, record.attempts);
    ASSERT_EQ(found->tokens.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) expect_equal(found->tokens[i], record.tokens[i]);
  }
}

TEST_F(TokenLogTest, TailIsNewestFirstWithoutTokens) {
  append(record_of(1, 100, {token_of(0, 0, 1.0f)}));
  append(record_of(2, 300, {}));
  append(record_of(3, 200, {}));
  append(record_of(4, 300, {}));  // the same millisecond: the later one first
  log_->flush();
  const Result<std::vector<GenerationRecord>> records = log_->tail(3);
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 3u);
  EXPECT_EQ((*records)[0].model, "m4");
  EXPECT_EQ((*records)[1].model, "m2");
  EXPECT_EQ((*records)[2].model, "m3");
  EXPECT_TRUE(log_->tail(10)->back().tokens.empty());
  EXPECT_TRUE(log_->tail(0)->empty());
}

TEST_F(TokenLogTest, ShowByKeyIsTheNewest) {
  for (int i = 1; i <= 3; ++i) {
    GenerationRecord record = record_of(i, i == 2 ? 900 : 100 * i, {token_of(0, 0, float(i))});
    record.key = "prompt:" + sha256_hex("k");
    append(record);
  }
  append(record_of(4, 5000, {}));  // without a key
  log_->flush();
  const Result<GenerationRecord> record = log_->show("prompt:" + sha256_hex("k"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->model, "m2");
  ASSERT_EQ(record->tokens.size(), 1u);
  EXPECT_EQ(record->tokens[0].margin, 2.0f);
  for (const std::string& name :
       {std::string(), std::string("gen-"), id_of(9), "body:" + sha256_hex("k"),
        std::string("' OR 1=1 --"), std::string("%")}) {
    const Result<GenerationRecord> missing = log_->show(name);
    ASSERT_FALSE(missing) << name;
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  }
}

TEST_F(TokenLogTest, MarginsOfOneGeneration) {
  append(record_of(1, 100,
                   {token_of(0, 0, 0.5f), token_of(0, 1, 0.25f), token_of(0, 2, std::nullopt),
                    token_of(1, 0, 0.25f), token_of(1, 1, 0.0f)}));
  append(record_of(2, 100, {token_of(0, 0, 0.1f)}));
  MarginQuery query;
  query.generation = id_of(1);
  using Place = std::tuple<std::string, std::uint32_t, std::uint32_t>;
  EXPECT_THAT(margins(query), ElementsAre(Place{"m1", 1, 1}, Place{"m1", 0, 1}, Place{"m1", 1, 0},
                                          Place{"m1", 0, 0}));
  query.limit = 2;
  EXPECT_THAT(margins(query), ElementsAre(Place{"m1", 1, 1}, Place{"m1", 0, 1}));
  query.generation = id_of(7);
  EXPECT_EQ(log_->thin_margins(query).error().code, ErrorCode::not_found);
}

TEST_F(TokenLogTest, MarginsOfARange) {
  append(record_of(1, 100, {token_of(0, 0, 0.5f)}));
  append(record_of(2, 200, {token_of(0, 0, 0.5f), token_of(0, 1, 0.125f)}));
  append(record_of(3, 300, {token_of(0, 0, 0.5f)}));
  append(record_of(4, 150, {token_of(0, 0, std::nullopt)}));
  append(record_of(5, 160, {}));
  using Place = std::tuple<std::string, std::uint32_t, std::uint32_t>;
  MarginQuery query;
  EXPECT_THAT(margins(query), ElementsAre(Place{"m2", 0, 1}, Place{"m1", 0, 0}, Place{"m2", 0, 0},
                                          Place{"m3", 0, 0}));
  query.since_ms = 100;
  query.until_ms = 300;  // not itself
  EXPECT_EQ(margins(query).size(), 3u);
  query.since_ms = 101;
  EXPECT_THAT(margins(query), ElementsAre(Place{"m2", 0, 1}, Place{"m2", 0, 0}));
  query.since_ms = 400;
  EXPECT_TRUE(margins(query).empty());
}

// Against the plain definition: all margins of the range, sorted.
TEST_F(TokenLogTest, MarginsOfARangeAreTheThinnestOfAll) {
  std::mt19937_64 random(7);
  using Ordered =
      std::tuple<float, std::int64_t, int, std::uint32_t, std::uint32_t>;  // the stated order
  std::vector<Ordered> all;
  for (int number = 0; number < 300; ++number) {
    std::vector<LoggedToken> tokens;
    const auto created = static_cast<std::int64_t>(random() % 40);
    for (std::uint32_t position = 0; position < random() % 12; ++position) {
      const auto margin = static_cast<float>(random() % 16) / 8;  // many are equal
      tokens.push_back(token_of(position % 2, position, margin));
      if (created >= 5 && created < 35) {
        all.emplace_back(margin, created, number, position % 2, position);
      }
    }
    append(record_of(number, created, tokens));
  }
  std::sort(all.begin(), all.end());
  for (const std::size_t limit : {1u, 7u, 50u, 400u}) {
    MarginQuery query;
    query.since_ms = 5;
    query.until_ms = 35;
    query.limit = limit;
    const auto found = margins(query);
    ASSERT_EQ(found.size(), std::min(limit, all.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto& [margin, created, number, choice, position] = all[i];
      EXPECT_EQ(found[i],
                std::tuple(std::string("m").append(std::to_string(number)), choice, position))
          << i;
    }
  }
}

TEST_F(TokenLogTest, LimitsAreNamed) {
  MarginQuery query;
  query.limit = TokenLog::kMaxRows + 1;
  EXPECT_THAT(log_->thin_margins(query).error().message, HasSubstr("limit: 10001 rows, at most"));
  EXPECT_EQ(log_->tail(std::size_t(-1)).error().code, ErrorCode::invalid);
  EXPECT_TRUE(log_->tail(TokenLog::kMaxRows));
}

TEST_F(TokenLogTest, ATakenIdLosesNoOtherGeneration) {
  append(record_of(1, 100, {token_of(0, 0, 0.5f)}));
  append(record_of(2, 200, {}));
  append(record_of(1, 300, {token_of(0, 0, 0.1f)}));
  append(record_of(3, 400, {}));
  log_->flush();
  EXPECT_EQ(log_->failed_writes(), 1u);
  EXPECT_EQ(log_->tail(10)->size(), 3u);
  EXPECT_EQ(log_->show(id_of(1))->created_ms, 100);
}

TEST_F(TokenLogTest, CostIsUnknownUnlessItIsSet) {
  append(record_of(1, 100, {}));
  log_->flush();
  EXPECT_EQ(log_->show(id_of(1))->cost_microdollars, std::nullopt);
}

TEST_F(TokenLogTest, TheQueueHasALimit) {
  log_.reset();
  options_.max_queue_bytes = 1 << 20;
  log_ = open(options_);
  GenerationRecord large = record_of(1, 100, {token_of(0, 0, 0.5f)});
  large.tokens[0].bytes = std::string(2 << 20, 'x');
  append(large);
  EXPECT_EQ(log_->failed_writes(), 1u);
  append(record_of(2, 100, {token_of(0, 0, 0.5f)}));
  log_->flush();
  EXPECT_EQ(log_->counters().written, 1u);
}

// A generation is there with all of its tokens or not at all, also when the file has no room for
// the tokens. The file may grow to 4 MiB + 1 MiB here before anything is dropped.
TEST_F(TokenLogTest, AGenerationThatFailsLeavesNothing) {
  log_.reset();
  options_.max_bytes = 1 << 20;
  log_ = open(options_);
  for (const int bytes : {300'000, 8'000'000, 200'000}) {
    GenerationRecord record = record_of(bytes, bytes, {token_of(0, 0, 0.5f)});
    record.tokens[0].bytes = std::string(static_cast<std::size_t>(bytes), 'x');
    append(record);
    log_->flush();
  }
  EXPECT_EQ(log_->failed_writes(), 1u);
  EXPECT_EQ(log_->show(id_of(8'000'000)).error().code, ErrorCode::not_found);
  EXPECT_EQ(log_->show(id_of(200'000))->tokens.size(), 1u);
}

TEST_F(TokenLogTest, ReadersBesideTheWriter) {
  TokenLogOptions reading = options_;
  reading.read_only = true;
  const std::unique_ptr<TokenLog> reader = open(reading);
  append(record_of(1, 100, {}));
  log_->flush();
  EXPECT_TRUE(reader->show(id_of(1)));
  reader->append(record_of(2, 100, {}));
  EXPECT_EQ(reader->failed_writes(), 1u);
  EXPECT_EQ(TokenLog::open(options_).error().code, ErrorCode::io);  // a second writer
}

TEST_F(TokenLogTest, AnotherKindOfFileIsRefused) {
  options_.path = folder_.file("cache.db");
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(options_.path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "PRAGMA application_id=1; CREATE TABLE t(x)", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  const Error error = TokenLog::open(options_).error();
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("not a fixpoint token log"));
}

TEST_F(TokenLogTest, DamagedTokensAreCorrupt) {
  GenerationRecord record = record_of(1, 100, {token_of(0, 0, 0.5f)});
  record.tokens[0].top = {{1, "abc", -1.0f}};
  append(record);
  log_.reset();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(options_.path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "UPDATE tokens SET packed = x'10'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  log_ = open(options_);
  EXPECT_EQ(log_->show(id_of(1)).error().code, ErrorCode::corrupt);
  MarginQuery query;
  query.generation = id_of(1);
  EXPECT_EQ(log_->thin_margins(query).error().code, ErrorCode::corrupt);
  EXPECT_TRUE(log_->tail(1));
}

TEST_F(TokenLogTest, ThreadsAppendAndReadAtOnce) {
  constexpr int kThreads = 4, kEach = 100;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        append(record_of(thread * kEach + i, i, {token_of(0, 0, 0.5f), token_of(0, 1, 0.25f)}));
        const Result<GenerationRecord> seen = log_->show(id_of(thread * kEach + i / 2));
        EXPECT_TRUE(!seen || seen->tokens.size() == 2u);
        EXPECT_TRUE(i % 20 != 0 || log_->thin_margins({}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  log_->flush();
  EXPECT_EQ(log_->failed_writes(), 0u);
  EXPECT_EQ(log_->tail(1000)->size(), std::size_t(kThreads) * kEach);
}

}  // namespace
}  // namespace fixpoint::test
