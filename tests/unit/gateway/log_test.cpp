#include "gateway/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fixpoint {
namespace {

using testing::HasSubstr;
using testing::Not;

class Log : public testing::Test {
 protected:
  ~Log() override { init_log(LogLevel::info); }
  static std::string written(LogLevel level, std::string_view message) {
    testing::internal::CaptureStderr();
    log_line(level, message);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, HidesSecrets) {
  init_log(LogLevel::info, {"sk-123456789", "short"});
  const std::string line = written(LogLevel::info, "key sk-123456789, again sk-123456789, short");
  EXPECT_THAT(line, HasSubstr("info key ***, again ***, short\n"));
}

TEST_F(Log, OneLinePerMessage) {
  const std::string line = written(LogLevel::error, "a\nb\x1b[0m {} %v");
  EXPECT_THAT(line, HasSubstr("error a\\nb\\x1b[0m {} %v\n"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(Log, FollowsTheLevel) {
  init_log(LogLevel::warning);
  EXPECT_EQ(written(LogLevel::info, "x"), "");
  EXPECT_THAT(written(LogLevel::warning, "x"), HasSubstr("warning x"));
  EXPECT_FALSE(log_enabled(LogLevel::info));
  init_log(LogLevel::off);
  EXPECT_EQ(written(LogLevel::error, "x"), "");
  init_log(LogLevel::debug);
  EXPECT_THAT(written(LogLevel::debug, "x"), HasSubstr("debug x"));
}

}  // namespace
}  // namespace fixpoint
