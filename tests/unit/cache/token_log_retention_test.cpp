#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

using std::chrono::hours;

std::int64_t hours_ago(int count) {
  const auto time = std::chrono::system_clock::now() - hours(count);
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

class TokenLogRetention : public TokenLogFixture {
 protected:
  GenerationRecord large(int number, std::int64_t created_ms, std::size_t bytes = 20'000) {
    GenerationRecord record = record_of(number, created_ms, {token_of(0, 0, 0.5f)});
    record.tokens[0].bytes = std::string(bytes, 'x');
    return record;
  }

  std::uint64_t size_at_rest() {
    log_.reset();  // writes the log back into the file
    const std::uint64_t bytes = std::filesystem::file_size(options_.path);
    log_ = open(options_);
    return bytes;
  }

  std::vector<std::string> ids() {
    std::vector<std::string> ids;
    const Result<void> walked = log_->for_each({}, false, [&](const GenerationRecord& record) {
      ids.push_back(record.id);
      return true;
    });
    EXPECT_TRUE(walked);
    return ids;
  }
};

TEST_F(TokenLogRetention, OldGenerationsGoWithTheirTokens) {
  options_.max_age = hours(24);
  log_ = open(options_);
  for (int i = 0; i < 200; ++i) append(large(i, hours_ago(25 + i)));
  append(large(1000, hours_ago(23)));
  append(large(1001, hours_ago(-1)));
  log_->flush();
  ASSERT_TRUE(log_->enforce_retention());
  EXPECT_EQ(ids(), (std::vector<std::string>{id_of(1000), id_of(1001)}));
  EXPECT_EQ(log_->counters().removed, 200u);
  EXPECT_EQ(log_->show(id_of(1000))->tokens.size(), 1u);
  EXPECT_EQ(log_->show(id_of(5)).error().code, ErrorCode::not_found);
  EXPECT_EQ(log_->thin_margins({})->size(), 2u);
  // 4 MB of tokens are gone from the file, not only from its tables.
  EXPECT_LT(size_at_rest(), 2u << 20);
}

TEST_F(TokenLogRetention, WithoutLimitsNothingGoes) {
  log_ = open(options_);
  append(large(1, 1));
  log_->flush();
  EXPECT_EQ(log_->enforce_retention(), 0u);
  EXPECT_EQ(ids().size(), 1u);
}

TEST_F(TokenLogRetention, ASmallerLimitTakesTheOldestAndShrinksTheFile) {
  log_ = open(options_);
  for (int i = 0; i < 400; ++i) append(large(i, i));  // 8 MB
  log_->flush();
  EXPECT_GT(size_at_rest(), 7u << 20);
  log_.reset();
  options_.max_bytes = 4 << 20;
  log_ = open(options_);
  ASSERT_TRUE(log_->enforce_retention());
  EXPECT_LE(size_at_rest(), options_.max_bytes);
  std::vector<std::int64_t> times;
  const Result<void> walked = log_->for_each({}, true, [&](const GenerationRecord& record) {
    times.push_back(record.created_ms);
    EXPECT_EQ(record.tokens.size(), 1u);
    return true;
  });
  ASSERT_TRUE(walked);
  ASSERT_GT(times.size(), 100u);
  ASSERT_LT(times.size(), 250u);
  for (std::size_t i = 0; i < times.size(); ++i) {  // the newest ones, without a gap
    EXPECT_EQ(times[i], static_cast<std::int64_t>(400 - times.size() + i));
  }
}

TEST_F(TokenLogRetention, TheFileStaysBelowItsLimitWhileItIsWritten) {
  options_.max_bytes = 4 << 20;
  log_ = open(options_);
  for (int i = 0; i < 600; ++i) {
    append(large(i, i));
    if (i % 20 == 0) {
      log_->flush();
      ASSERT_TRUE(log_->enforce_retention());
    }
  }
  log_->flush();
  ASSERT_TRUE(log_->enforce_retention());
  const TokenLogCounters counters = log_->counters();
  EXPECT_EQ(counters.failed, 0u);
  EXPECT_EQ(counters.written, 600u);
  EXPECT_EQ(counters.removed + ids().size(), 600u);
  EXPECT_EQ(ids().back(), id_of(599));
  EXPECT_LE(size_at_rest(), options_.max_bytes);
}

TEST_F(TokenLogRetention, WhatAClockThatWasAheadWroteGoesInItsTurn) {
  options_.max_bytes = 4 << 20;
  log_ = open(options_);
  for (int i = 0; i < 400; ++i) {
    append(large(i, hours_ago(i < 200 ? -1'000'000 : 1) + i));
    if (i % 20 != 19) continue;
    log_->flush();
    ASSERT_TRUE(log_->enforce_retention());
  }
  const std::vector<std::string> kept = ids();
  ASSERT_GT(kept.size(), 100u);
  EXPECT_THAT(kept, ::testing::Contains(id_of(399)));
  EXPECT_THAT(kept, ::testing::Not(::testing::Contains(id_of(199))));
}

// However large they are: a handful of them is most of the file.
TEST_F(TokenLogRetention, NoMoreGoThanAreTooMany) {
  options_.max_bytes = 4 << 20;
  log_ = open(options_);
  for (int i = 0; i < 30; ++i) {
    append(large(i, i, 430'000));
    log_->flush();
    ASSERT_TRUE(log_->enforce_retention());
    EXPECT_GE(ids().size(), std::min<std::size_t>(static_cast<std::size_t>(i) + 1, 8)) << i;
  }
  EXPECT_EQ(ids().back(), id_of(29));
  EXPECT_LE(size_at_rest(), options_.max_bytes);
}

// The log does it by itself: nobody asks.
TEST_F(TokenLogRetention, GrowthAloneBringsRetention) {
  options_.max_bytes = 4 << 20;
  log_ = open(options_);
  for (int i = 0; log_->counters().removed == 0; ++i) {
    append(large(i, i));
    log_->flush();
    ASSERT_LT(i, 100'000);
  }
  EXPECT_LT(ids().size(), 400u);
}

TEST_F(TokenLogRetention, ReadersRemoveNothing) {
  log_ = open(options_);
  TokenLogOptions reading = options_;
  reading.read_only = true;
  EXPECT_EQ(open(reading)->enforce_retention().error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace fixpoint::test
