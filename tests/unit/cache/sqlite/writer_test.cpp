#include "cache/sqlite/writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::sqlite {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Schema kSchema{"test file", 1234, 1, "CREATE TABLE t(n INTEGER PRIMARY KEY);"};

class WriterTest : public ::testing::Test {
 protected:
  WriterTest() {
    Result<Database> database = Database::open_writer(path_, kSchema, 1u << 30);
    if (!database) throw std::runtime_error(database.error().message);
    database_ = std::move(*database);
  }

  Writer::Work insert(int n) {
    return [this, n] {
      return database_->execute(("INSERT INTO t VALUES(" + std::to_string(n) + ")").c_str());
    };
  }

  std::int64_t rows() {
    Result<Database> reader = Database::open_reader(path_, kSchema);
    return reader ? *reader->query_integer("SELECT count(*) FROM t") : -1;
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.file("t.db");
  std::optional<Database> database_;
};

TEST_F(WriterTest, CommitsInGroupsInOrder) {
  std::vector<int> done;
  std::int64_t seen_from_outside = -1;
  {
    Writer writer(*database_, 1 << 20, nullptr);
    // Keeps the thread busy until all are queued, so that they make one group.
    std::promise<void> go;
    std::thread first([&] {
      (void)writer.run([&]() -> Result<void> {
        go.get_future().wait();
        return {};
      });
    });
    for (int i = 0; i < 100; ++i) {
      writer.submit(
          1,
          [this, i, &seen_from_outside] {
            if (i == 99) seen_from_outside = rows();
            return insert(i)();
          },
          [&done, i](const Result<void>& outcome) {
            if (outcome) done.push_back(i);
          });
    }
    go.set_value();
    first.join();
    writer.flush();
    EXPECT_EQ(writer.failed(), 0u);
  }
  EXPECT_EQ(seen_from_outside, 0);  // nothing of the group was visible before its commit
  EXPECT_EQ(rows(), 100);
  ASSERT_EQ(done.size(), 100u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST_F(WriterTest, AFailingJobTakesNoOtherWithIt) {
  std::vector<std::string> errors;
  std::vector<bool> outcomes;
  Writer writer(*database_, 1 << 20, [&](const Error& error) { errors.push_back(error.message); });
  const auto note = [&](const Result<void>& outcome) { outcomes.push_back(bool(outcome)); };
  writer.submit(1, insert(1), note);
  writer.submit(1, insert(1), note);  // not unique
  writer.submit(1, [] { return Result<void>(fail(ErrorCode::io, "of its own")); }, note);
  writer.submit(1, []() -> Result<void> { throw std::runtime_error("thrown"); }, note);
  writer.submit(1, insert(2), note);
  writer.flush();
  EXPECT_EQ(writer.failed(), 3u);
  EXPECT_THAT(outcomes, ElementsAre(true, false, false, false, true));
  EXPECT_THAT(errors, ElementsAre(HasSubstr("UNIQUE"), "of its own", HasSubstr("thrown")));
  EXPECT_EQ(rows(), 2);
  EXPECT_FALSE(writer.run([] { return Result<void>(fail(ErrorCode::io, "told to its caller")); }));
  EXPECT_EQ(writer.failed(), 3u);
}

TEST_F(WriterTest, WhatGoesIntoAFileThatWasRemovedCountsAsFailed) {
  std::vector<std::string> errors;
  std::vector<bool> outcomes;
  Writer writer(*database_, 1 << 20, [&](const Error& error) { errors.push_back(error.message); });
  const auto note = [&](const Result<void>& outcome) { outcomes.push_back(bool(outcome)); };
  writer.submit(1, insert(1), note);
  writer.flush();
  EXPECT_EQ(writer.failed(), 0u);
  std::filesystem::remove(path_);
  writer.submit(1, insert(2), note);
  writer.submit(1, insert(2), note);  // not unique: counts once
  writer.flush();
  EXPECT_EQ(writer.failed(), 2u);
  EXPECT_THAT(outcomes, ElementsAre(true, true, false));  // this process still has them
  EXPECT_THAT(errors, Contains(HasSubstr(path_ + ": was removed or replaced")));
  EXPECT_TRUE(writer.run(insert(3)));
  EXPECT_EQ(writer.failed(), 2u);
}

TEST_F(WriterTest, TheQueueIsBoundedByBytes) {
  Writer writer(*database_, 100, nullptr);
  std::promise<void> go;
  std::promise<void> started;
  std::thread first([&] {
    (void)writer.run([&]() -> Result<void> {
      started.set_value();
      go.get_future().wait();
      return {};
    });
  });
  started.get_future().wait();
  EXPECT_TRUE(writer.submit(60, insert(1), nullptr));
  EXPECT_FALSE(writer.submit(41, insert(2), nullptr));
  EXPECT_TRUE(writer.submit(40, insert(3), nullptr));
  EXPECT_FALSE(writer.submit(1, insert(4), nullptr));
  go.set_value();
  first.join();
  writer.flush();
  EXPECT_EQ(writer.failed(), 2u);
  EXPECT_EQ(rows(), 2);
  EXPECT_TRUE(writer.submit(100, insert(5), nullptr));
}

TEST_F(WriterTest, TheDestructorFinishesTheQueueAndEmptiesTheLog) {
  {
    Writer writer(*database_, 1 << 20, nullptr);
    for (int i = 0; i < 1000; ++i) writer.submit(1, insert(i), nullptr);
  }
  EXPECT_EQ(rows(), 1000);
  EXPECT_EQ(std::filesystem::file_size(path_ + "-wal"), 0u);
}

// Without checkpoints of its own the log would hold all of these 64 MiB.
TEST_F(WriterTest, TheLogStaysSmall) {
  Writer writer(*database_, std::size_t(1) << 30, nullptr);
  ASSERT_TRUE(writer.run([&] { return database_->execute("CREATE TABLE b(x BLOB)"); }));
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(
        writer.run([&] { return database_->execute("INSERT INTO b VALUES(zeroblob(1<<20))"); }));
  }
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), 24u << 20);
}

// The first look at upkeep does not wait for a job; later steps alternate with jobs.
TEST_F(WriterTest, UpkeepGoesOnInStepsUntilNothingIsDue) {
  int steps = 0, failures = 0;  // the writer's thread only
  std::promise<void> all_done;
  Writer writer(*database_, 1 << 20, nullptr,
                {[&] { return steps < 5; },
                 [&]() -> Result<void> {
                   if (steps == 2 && failures == 0) return fail(ErrorCode::io, "once");
                   return database_->execute("INSERT INTO t VALUES(NULL)");
                 },
                 [&](const Result<void>& outcome) {
                   if (!outcome) {
                     ++failures;
                   } else if (++steps == 5) {
                     all_done.set_value();
                   }
                 }});
  // A step that fails waits for the next group, or a second.
  ASSERT_TRUE(writer.run(insert(1000)));
  all_done.get_future().wait();
  ASSERT_TRUE(writer.run([] { return Result<void>(); }));
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(rows(), 6);
  EXPECT_EQ(writer.failed(), 0u);
}

}  // namespace
}  // namespace fixpoint::sqlite
