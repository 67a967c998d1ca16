#include "gateway/log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

namespace fixpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Log : public testing::Test {
 protected:
  ~Log() override { init_log(LogLevel::info); }
  static std::string written(LogLevel level, std::string_view message) {
    testing::internal::CaptureStderr();
    log_line(level, message);
    EXPECT_TRUE(flush_log());
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
  init_log(LogLevel::info);
  EXPECT_THAT(written(LogLevel::info, "x"), HasSubstr("info x"));
}

TEST_F(Log, WritesJsonObjects) {
  init_log(LogLevel::info, {"sk-123456789"}, LogFormat::json);
  const std::string line = written(LogLevel::warning, "a\n\"b\" sk-123456789");
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["message"], "a\n\"b\" ***");
  EXPECT_THAT(json["time"].get<std::string>(), ::testing::EndsWith("Z"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(Log, ABurstOfWarningsIsOneLine) {
  testing::internal::CaptureStderr();
  BurstWarning warning, other;
  for (int i = 0; i < 100; ++i) warning("away");
  other("elsewhere");
  flush_log();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, AllOf(HasSubstr("warning away"), HasSubstr("warning elsewhere")));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
}

TEST_F(Log, TimesAreUtcWithMilliseconds) {
  const std::string time = log_time();
  ASSERT_EQ(time.size(), std::string_view("2026-11-29T21:00:00.123Z").size());
  EXPECT_EQ(time[10], 'T');
  EXPECT_EQ(time[19], '.');
}

TEST_F(Log, QueuedLinesComeBeforeLaterOnesAndAtTheLatestWithAFlush) {
  testing::internal::CaptureStderr();
  log_soon("first");
  log_soon("second");
  log_warning("third");
  log_soon("fourth");
  flush_log();
  const std::string text = testing::internal::GetCapturedStderr();
  const auto at = [&](std::string_view word) { return text.find(word); };
  EXPECT_EQ(at("first\nsecond\n"), 0u);
  EXPECT_LT(at("second"), at("third"));
  EXPECT_LT(at("third"), at("fourth\n"));
  EXPECT_NE(at("fourth\n"), std::string::npos);
}

// An output that takes nothing: lines are dropped, no thread that logs or flushes waits for it.
TEST_F(Log, AStuckOutputCostsLinesNotTime) {
  ASSERT_TRUE(flush_log());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  // More than the pipe holds: once it is full, the writer hangs and takes no more from the queue.
  log_soon(std::string(2 * static_cast<std::size_t>(fcntl(ends[1], F_GETPIPE_SZ)), 'x'));
  pollfd room{.fd = ends[1], .events = POLLOUT, .revents = 0};
  while (poll(&room, 1, 0) != 0) std::this_thread::yield();

  const std::uint64_t before = dropped_log_lines();
  const std::string line(1023, 'x');
  for (std::size_t bytes = 0; bytes < kMaxLogQueueBytes; bytes += line.size() + 1) log_soon(line);
  EXPECT_EQ(dropped_log_lines(), before);
  log_soon(line);
  log_error(line);
  EXPECT_EQ(dropped_log_lines() - before, 2u);
  EXPECT_FALSE(flush_log());

  std::string seen;
  std::thread reader([&] {
    char buffer[65536];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
      seen.append(buffer, static_cast<std::size_t>(n));
    }
  });
  while (!flush_log()) {
  }
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  const auto lines = static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), '\n'));
  EXPECT_EQ(lines, 1 + kMaxLogQueueBytes / 1024 + 1) << "all but those dropped, and one that tells";
  EXPECT_THAT(seen.substr(seen.size() - 100),
              HasSubstr(" warning the log's output was too slow: 2 lines are lost\n"));
}

TEST_F(Log, ChangesWhileThreadsLog) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) {
        log_info("a secret-secret");
        log_soon("line");
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    init_log(i % 2 == 0 ? LogLevel::info : LogLevel::error, {"secret-secret"},
             i % 3 == 0 ? LogFormat::json : LogFormat::text);
  }
  for (std::thread& thread : threads) thread.join();
  flush_log();
  const std::string text = testing::internal::GetCapturedStderr();
  std::size_t lines = 0;
  for (std::size_t at = text.find("line\n"); at != std::string::npos;
       at = text.find("line\n", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 800u);
}

}  // namespace
}  // namespace fixpoint
