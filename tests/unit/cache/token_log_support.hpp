// Records for the token log's tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cache/token_log.hpp"
#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::test {

inline LoggedToken token_of(std::uint32_t choice, std::uint32_t position,
                            std::optional<float> margin) {
  LoggedToken token;
  token.choice = choice;
  token.position = position;
  token.bytes = "t";
  token.logprob = -0.1f;
  token.margin = margin;
  return token;
}

inline std::string id_of(int number) {
  const std::string digits = std::to_string(number);
  return "gen-" + std::string(24 - digits.size(), '0') + digits;
}

inline GenerationRecord record_of(int number, std::int64_t created_ms,
                                  std::vector<LoggedToken> tokens) {
  GenerationRecord record;
  record.id = id_of(number);
  record.created_ms = created_ms;
  record.model = "m" + std::to_string(number);
  record.logprobs_status = "captured";
  record.tokens = std::move(tokens);
  return record;
}

// One token for each text, each with an alternative of its own text and one of `other`.
inline std::vector<LoggedToken> tokens_of(const std::vector<std::string>& texts,
                                          const std::string& other = "zz") {
  std::vector<LoggedToken> tokens;
  for (const std::string& text : texts) {
    LoggedToken token = token_of(0, static_cast<std::uint32_t>(tokens.size()), 0.5f);
    token.id = 7;
    token.bytes = text;
    token.top = {{7, text, -0.1f}, {8, other, -0.6f}};
    tokens.push_back(token);
  }
  return tokens;
}

inline void expect_equal(const LoggedToken& actual, const LoggedToken& expected) {
  EXPECT_EQ(actual.choice, expected.choice);
  EXPECT_EQ(actual.position, expected.position);
  EXPECT_EQ(actual.id, expected.id);
  EXPECT_EQ(actual.bytes, expected.bytes);
  EXPECT_TRUE(actual.logprob == expected.logprob ||
              (std::isnan(actual.logprob) && std::isnan(expected.logprob)));
  EXPECT_EQ(actual.margin, expected.margin);
  EXPECT_EQ(actual.redacted, expected.redacted);
  ASSERT_EQ(actual.top.size(), expected.top.size());
  for (std::size_t i = 0; i < actual.top.size(); ++i) {
    EXPECT_EQ(actual.top[i].id, expected.top[i].id);
    EXPECT_EQ(actual.top[i].bytes, expected.top[i].bytes);
    EXPECT_EQ(actual.top[i].logprob, expected.top[i].logprob);
  }
}

class TokenLogFixture : public ::testing::Test {
 protected:
  TokenLogFixture() { options_.path = folder_.file("log.db"); }

  static std::unique_ptr<TokenLog> open(const TokenLogOptions& options) {
    Result<std::unique_ptr<TokenLog>> log = TokenLog::open(options);
    if (!log) throw std::runtime_error(log.error().message);
    return std::move(*log);
  }

  void append(GenerationRecord record) { log_->append(std::move(record)); }

  TemporaryFolder folder_;
  TokenLogOptions options_;
  std::unique_ptr<TokenLog> log_;
};

}  // namespace fixpoint::test
