// Walks, the margin report and fingerprints.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/unit/cache/token_log_support.hpp"

namespace fixpoint::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenLogReport : public TokenLogFixture {
 protected:
  TokenLogReport() { log_ = open(options_); }

  std::vector<std::int64_t> times(const GenerationFilter& filter, std::size_t most = SIZE_MAX) {
    std::vector<std::int64_t> times;
    const Result<void> walked = log_->for_each(filter, false, [&](const GenerationRecord& record) {
      times.push_back(record.created_ms);
      EXPECT_TRUE(record.tokens.empty());
      return times.size() < most;
    });
    EXPECT_TRUE(walked);
    return times;
  }
};

TEST_F(TokenLogReport, WalksOldestFirstOverPages) {
  std::mt19937 random(3);
  std::vector<std::int64_t> expected;
  for (int i = 0; i < 1000; ++i) {
    expected.push_back(static_cast<std::int64_t>(random() % 50));  // many at one time
    append(record_of(i, expected.back(), {}));
  }
  log_->flush();
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(times({}), expected);
  EXPECT_EQ(times({}, 7).size(), 7u);
  GenerationFilter range;
  range.since_ms = 10;
  range.until_ms = 20;
  std::erase_if(expected, [](std::int64_t time) { return time < 10 || time >= 20; });
  EXPECT_EQ(times(range), expected);
}

TEST_F(TokenLogReport, WalksByModelAndRoute) {
  for (int i = 0; i < 12; ++i) {
    GenerationRecord record = record_of(i, i, {});
    record.model = i % 2 == 0 ? "a" : "b";
    record.route = i % 3 == 0 ? "x*" : "y*";
    append(record);
  }
  log_->flush();
  GenerationFilter filter;
  filter.model = "a";
  EXPECT_THAT(times(filter), ElementsAre(0, 2, 4, 6, 8, 10));
  filter.route = "x*";
  EXPECT_THAT(times(filter), ElementsAre(0, 6));
  filter.model = "";
  EXPECT_THAT(times(filter), ElementsAre());
}

// Pages end early where tokens are many; no generation is lost between two pages.
TEST_F(TokenLogReport, WalksWithTokens) {
  for (int i = 0; i < 40; ++i) {
    GenerationRecord record = record_of(i, 5, {});
    if (i % 3 != 0) record.tokens = {token_of(0, 0, 0.5f), token_of(0, 1, 0.25f)};
    if (i % 3 == 1) record.tokens[0].bytes = std::string(200'000, 'x');
    append(record);
  }
  log_->flush();
  int next = 0;
  const Result<void> walked = log_->for_each({}, true, [&](const GenerationRecord& record) {
    EXPECT_EQ(record.id, id_of(next));
    EXPECT_EQ(record.tokens.size(), next % 3 == 0 ? 0u : 2u);
    ++next;
    return true;
  });
  EXPECT_TRUE(walked);
  EXPECT_EQ(next, 40);
}

// Damaged tokens cost their generation and nothing else: each query names it and goes on.
TEST_F(TokenLogReport, DamagedTokensAreLeftOutAndNamed) {
  for (int i = 0; i < 600; ++i) {
    GenerationRecord record = record_of(i, i, {token_of(0, 0, 0.001f * static_cast<float>(i))});
    record.model = "m";
    append(record);
  }
  log_.reset();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(options_.path.c_str(), &database), SQLITE_OK);
  // The first pages of a walk, and a single one.
  EXPECT_EQ(sqlite3_exec(database,
                         "UPDATE tokens SET packed = x'FF' WHERE generation IN (SELECT row FROM"
                         " generations WHERE created_ms < 520 OR created_ms = 530)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  std::vector<std::string> named;
  options_.on_damaged = [&](const std::string& id) { named.push_back(id); };
  log_ = open(options_);

  std::vector<std::int64_t> seen;
  const Result<void> walked = log_->for_each({}, true, [&](const GenerationRecord& record) {
    seen.push_back(record.created_ms);
    return true;
  });
  EXPECT_TRUE(walked);
  ASSERT_EQ(seen.size(), 79u);
  EXPECT_EQ(seen.front(), 520);
  EXPECT_EQ(named.size(), 521u);
  EXPECT_EQ(named.back(), id_of(530));
  EXPECT_EQ(times({}).size(), 600u);  // without tokens

  named.clear();
  MarginQuery thin;
  thin.since_ms = 529;
  thin.limit = 3;
  const Result<std::vector<ThinMargin>> margins = log_->thin_margins(thin);
  ASSERT_TRUE(margins);
  ASSERT_EQ(margins->size(), 2u);
  EXPECT_EQ((*margins)[0].generation, id_of(529));
  EXPECT_EQ((*margins)[1].generation, id_of(531));
  EXPECT_THAT(named, ElementsAre(id_of(530)));
  thin = {};
  thin.generation = id_of(530);
  EXPECT_EQ(log_->thin_margins(thin).error().code, ErrorCode::corrupt);

  named.clear();
  MarginReportQuery query;
  query.filter.since_ms = 530;
  const Result<std::vector<MarginReport>> reports = log_->margin_report(query);
  ASSERT_TRUE(reports);
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_EQ(reports->front().generations, 70u);
  EXPECT_EQ(reports->front().thinnest.size(), 2u);
  EXPECT_THAT(named, ElementsAre(id_of(530)));
}

// Against the plain definition.
TEST_F(TokenLogReport, CountsMarginsOfEachModelAndRoute) {
  std::mt19937 random(11);
  std::map<std::pair<std::string, std::string>, MarginReport> expected;
  std::map<std::pair<std::string, std::string>, std::vector<std::tuple<float, int, unsigned>>> all;
  for (int number = 0; number < 300; ++number) {
    GenerationRecord record = record_of(number, number, {});
    record.model = "m" + std::to_string(random() % 3);
    record.route = "r" + std::to_string(random() % 2);
    const std::pair name{record.model, record.route};
    MarginReport& report = expected[name];
    ++report.generations;
    for (std::uint32_t i = 0; i < random() % 8; ++i) {
      const auto margin = static_cast<float>(random() % 1000) / 500;
      const bool known = random() % 4 != 0;
      record.tokens.push_back(token_of(0, i, known ? std::optional(margin) : std::nullopt));
      ++report.tokens;
      if (!known) continue;
      ++report.with_margin;
      for (int step = 0; step < 3; ++step) report.below[step] += margin < kMarginSteps[step];
      all[name].emplace_back(margin, number, i);
    }
    append(record);
  }
  log_->flush();
  MarginReportQuery query;
  query.examples = 4;
  const Result<std::vector<MarginReport>> reports = log_->margin_report(query);
  ASSERT_TRUE(reports);
  ASSERT_EQ(reports->size(), expected.size());
  for (const MarginReport& report : *reports) {
    const std::pair name{report.model, report.route};
    const MarginReport& one = expected.at(name);
    EXPECT_EQ(report.generations, one.generations);
    EXPECT_EQ(report.tokens, one.tokens);
    EXPECT_EQ(report.with_margin, one.with_margin);
    for (int step = 0; step < 3; ++step) EXPECT_EQ(report.below[step], one.below[step]);
    auto& tokens = all.at(name);
    std::sort(tokens.begin(), tokens.end());
    ASSERT_EQ(report.thinnest.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& [margin, number, position] = tokens[i];
      EXPECT_EQ(report.thinnest[i].token.margin, margin);
      EXPECT_EQ(report.thinnest[i].generation, id_of(number));
      EXPECT_EQ(report.thinnest[i].token.position, position);
    }
  }
  EXPECT_TRUE(std::is_sorted(reports->begin(), reports->end(),
                             [](const auto& a, const auto& b) { return a.tokens > b.tokens; }));

  query.by_route = false;
  EXPECT_EQ(log_->margin_report(query)->size(), 3u);
  EXPECT_EQ(log_->margin_report(query)->front().route, "");
  query.by_model = false;
  EXPECT_EQ(log_->margin_report(query)->front().generations, 300u);
  query.filter.since_ms = 100;
  query.filter.until_ms = 110;
  EXPECT_EQ(log_->margin_report(query)->front().generations, 10u);
  query.filter.model = "none";
  EXPECT_TRUE(log_->margin_report(query)->empty());
  query.examples = TokenLog::kMaxExamples + 1;
  EXPECT_THAT(log_->margin_report(query).error().message, HasSubstr("examples: 101"));
}

TEST_F(TokenLogReport, TooManyGroupsAreAnError) {
  for (int i = 0; i <= static_cast<int>(TokenLog::kMaxRows); ++i) append(record_of(i, i, {}));
  log_->flush();
  const Result<std::vector<MarginReport>> reports = log_->margin_report({});
  ASSERT_FALSE(reports);
  EXPECT_THAT(reports.error().message, HasSubstr("more than 10000 groups"));
  MarginReportQuery fewer;
  fewer.filter.since_ms = 1;
  EXPECT_EQ(log_->margin_report(fewer)->size(), TokenLog::kMaxRows);
}

TEST_F(TokenLogReport, KeepsFingerprints) {
  int number = 0;
  const auto add = [&](const std::string& model, const std::string& fingerprint,
                       std::int64_t time) {
    GenerationRecord record = record_of(++number, time, {});
    record.provider = "up";
    record.model = model + "-2024-08-06";
    record.requested_model = model;
    record.fingerprint = fingerprint;
    append(record);
  };
  add("m", "b", 300);
  add("m", "a", 100);
  add("m", "a", 200);
  add("m", "a", 50);  // late
  add("m", "", 400);
  add("l", "a", 500);
  log_->flush();
  const Result<std::vector<SeenFingerprint>> seen = log_->fingerprints();
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->size(), 3u);
  EXPECT_EQ((*seen)[0].model, "l");
  EXPECT_EQ((*seen)[1].fingerprint, "a");
  EXPECT_EQ((*seen)[1].first_seen_ms, 50);
  EXPECT_EQ((*seen)[1].last_seen_ms, 200);
  EXPECT_EQ((*seen)[1].generations, 3u);
  EXPECT_EQ((*seen)[2].fingerprint, "b");

  // After a restart, with the model's name as requests have it.
  FingerprintTracker tracker(*seen);
  EXPECT_EQ(tracker.epoch("up", "m"), "b");
  EXPECT_EQ(tracker.observe("up", "l", "c")->previous, "a");
  EXPECT_FALSE(tracker.observe("up", "m", "a"));
}

TEST_F(TokenLogReport, ForgetsTheOldestFingerprintsBeyondTheLimit) {
  for (int i = 0; i < static_cast<int>(TokenLog::kMaxFingerprints) + 3; ++i) {
    GenerationRecord record = record_of(i, i, {});
    record.fingerprint = std::to_string(i);
    append(record);
  }
  log_->flush();
  ASSERT_TRUE(log_->enforce_retention());
  const Result<std::vector<SeenFingerprint>> seen = log_->fingerprints();
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->size(), TokenLog::kMaxFingerprints);
  for (const SeenFingerprint& one : *seen) EXPECT_GE(one.first_seen_ms, 3);
}

}  // namespace
}  // namespace fixpoint::test
