#include "cache/sqlite/database.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::sqlite {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr Schema kSchema{"test file", 1234, 1, "CREATE TABLE t(n INTEGER PRIMARY KEY);"};

class DatabaseTest : public ::testing::Test {
 protected:
  Result<Database> open() { return Database::open_writer(path_, kSchema, 1u << 30); }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.file("t.db");
};

TEST_F(DatabaseTest, AnErrorIsOneSentenceWithoutTheStatements) {
  write(path_, std::string(5000, 'x'));
  const Result<Database> garbage = open();
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, ErrorCode::corrupt);
  EXPECT_EQ(garbage.error().message,
            path_ + ": the file is damaged: opening: file is not a database (SQLite 26)");

  std::filesystem::remove(path_);
  Result<Database> database = open();
  ASSERT_TRUE(database);
  const Result<void> refused = database->execute("INSERT INTO t VALUES('text')");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::io);
  EXPECT_THAT(refused.error().message, HasSubstr(path_ + ": writing: datatype mismatch"));
  Result<Statement> insert = database->prepare("INSERT INTO t VALUES(?1)");
  ASSERT_TRUE(insert);
  insert->bind_text(1, "text");
  EXPECT_THAT(insert->run().error().message, HasSubstr(path_ + ": writing: datatype mismatch"));
}

TEST_F(DatabaseTest, AnErrorOfTheSystemSaysWhichAndOfWhatFile) {
  const Result<Database> missing = Database::open_reader(path_, kSchema);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, path_ +
                                         ": opening: unable to open database file: No such file or "
                                         "directory (SQLite 14)");
}

TEST_F(DatabaseTest, ADamagedFileIsSetAsideAndNeverOverwritesAnother) {
  std::string names[3];
  for (int i = 0; i < 3; ++i) {
    write(path_, std::string(5000, char('a' + i)));
    write(path_ + "-wal", "wal");
    ASSERT_EQ(open().error().code, ErrorCode::corrupt);
    EXPECT_EQ(read(path_), std::string(5000, char('a' + i)));  // opening alone leaves it as it is
    write(path_ + "-wal", "wal " + std::to_string(i));
    const Result<std::string> name = Database::set_aside(path_);
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_THAT(*name, MatchesRegex(".*/t\\.db\\.damaged-[0-9]{8}T[0-9]{6}Z(-[23])?"));
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
    names[i] = *name;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(names[i]), std::string(5000, char('a' + i)));
    EXPECT_EQ(read(names[i] + "-wal"), "wal " + std::to_string(i));
  }
  EXPECT_TRUE(open());
}

TEST_F(DatabaseTest, AFileThatIsInUseIsNotSetAside) {
  const Result<Database> database = open();
  ASSERT_TRUE(database);
  const Result<std::string> name = Database::set_aside(path_);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, ErrorCode::io);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(DatabaseTest, KnowsWhetherItsPathStillLeadsToItsFile) {
  Result<Database> database = open();
  ASSERT_TRUE(database);
  EXPECT_TRUE(database->is_in_place());
  std::filesystem::rename(path_, path_ + ".old");
  EXPECT_FALSE(database->is_in_place());
  write(path_, "another");
  EXPECT_FALSE(database->is_in_place());
  std::filesystem::rename(path_ + ".old", path_);
  EXPECT_TRUE(database->is_in_place());
}

}  // namespace
}  // namespace fixpoint::sqlite
