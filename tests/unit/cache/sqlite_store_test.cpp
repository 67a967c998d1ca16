#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store.hpp"
#include "tests/unit/cache/store_conformance.hpp"
#include "tests/unit/cache/temporary_folder.hpp"

namespace fixpoint::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::unique_ptr<Store> open_or_throw(const SqliteStoreOptions& options) {
  Result<std::unique_ptr<Store>> store = open_sqlite_store(options);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

// With a connection of its own, while no store is open.
void execute(const std::string& path, const std::string& statements) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
}

std::int64_t query(const std::string& path, const std::string& statement) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  std::int64_t value = -1;
  const auto take = [](void* out, int, char** columns, char**) {
    *static_cast<std::int64_t*>(out) = columns[0] == nullptr ? -1 : std::atoll(columns[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(database, statement.c_str(), take, &value, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  sqlite3_close(database);
  return value;
}

struct SqliteBackend {
  TemporaryFolder folder;
  std::string path() const { return folder.file("cache.db"); }
  std::unique_ptr<Store> open(const StoreLimits& limits = {}) {
    SqliteStoreOptions options;
    options.path = path();
    options.limits = limits;
    return open_or_throw(options);
  }
  void damage(const CacheKey& key) {
    execute(path(),
            "UPDATE entries SET body = CAST('damaged' AS BLOB) WHERE lower(hex(key)) LIKE '%" +
                key.hex + "'");
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StoreConformance, SqliteBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, PersistentStoreConformance, SqliteBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, CheckedStoreConformance, SqliteBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, CompressingStoreConformance, SqliteBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, ExpiringStoreConformance, SqliteBackend);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, BoundedStoreConformance, SqliteBackend);

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest() {
    options_.path = folder_.file("cache.db");
    options_.on_write_error = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(error.message);
    };
  }

  Error open_error() {
    Result<std::unique_ptr<Store>> store = open_sqlite_store(options_);
    return store ? Error{ErrorCode::closed, "opened"} : store.error();
  }

  void sql(const std::string& statements) { execute(options_.path, statements); }

  std::string last_write_error() {
    const std::lock_guard lock(mutex_);
    return errors_.empty() ? "" : errors_.back();
  }

  TemporaryFolder folder_;
  SqliteStoreOptions options_;
  std::mutex mutex_;
  std::vector<std::string> errors_;
};

TEST_F(SqliteStoreTest, FilesAreTheOwnersAlone) {
  const std::unique_ptr<Store> store = open_or_throw(options_);
  put(*store, entry_of("a", "b"));
  store->flush();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    struct stat status{};
    ASSERT_EQ(::stat((options_.path + suffix).c_str(), &status), 0) << suffix;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << suffix;
  }
}

TEST_F(SqliteStoreTest, OneWriterAndAnyReaders) {
  std::unique_ptr<Store> store = open_or_throw(options_);
  put(*store, entry_of("a", "b"));
  store->flush();
  const Error second = open_error();
  EXPECT_EQ(second.code, ErrorCode::io);
  EXPECT_THAT(second.message, HasSubstr("another fixpoint has the file open for writing"));

  SqliteStoreOptions reading = options_;
  reading.read_only = true;
  const std::unique_ptr<Store> reader = open_or_throw(reading);
  EXPECT_EQ(body_of(*reader, key_of("a")), "b");
  put(*store, entry_of("c", "d"));
  store->flush();
  EXPECT_EQ(body_of(*reader, key_of("c")), "d");
  EXPECT_EQ(reader->stats()->entries, 2u);
  put(*reader, entry_of("e", "f"));
  EXPECT_EQ(reader->failed_writes(), 1u);
  EXPECT_EQ(reader->purge({}).error().code, ErrorCode::invalid);
  store.reset();
  EXPECT_EQ(body_of(*reader, key_of("c")), "d");
  store = open_or_throw(options_);  // the lock went with its store
}

TEST_F(SqliteStoreTest, PurgeGivesTheSpaceBack) {
  options_.limits.compress_above = std::size_t(-1);
  std::unique_ptr<Store> store = open_or_throw(options_);
  for (int i = 0; i < 200; ++i) {
    put(*store, entry_of(std::to_string(i), std::string(50'000, 'x')));
  }
  store.reset();
  EXPECT_GT(std::filesystem::file_size(options_.path), 200u * 50'000u);
  EXPECT_FALSE(std::filesystem::exists(options_.path + "-wal"));
  store = open_or_throw(options_);
  EXPECT_EQ(*store->purge({}), 200u);
  store.reset();
  EXPECT_LT(std::filesystem::file_size(options_.path), 300'000u);
}

// Nor do pages that other answers are on, or the log beside the file.
TEST_F(SqliteStoreTest, PurgedAnswersAreNoLongerInTheFile) {
  const std::unique_ptr<Store> store = open_or_throw(options_);
  for (int i = 0; i < 100; ++i) {
    Entry entry = entry_of("purged prompt " + std::to_string(i), "purged answer");
    if (i % 10 == 0) entry = entry_of("kept prompt " + std::to_string(i), "kept answer");
    entry.model = i % 10 == 0 ? "kept" : "m";
    put(*store, entry);
    put(*store, entry);  // replaced
  }
  const auto count = [&](std::string_view text) {
    std::size_t found = 0;
    for (const char* suffix : {"", "-wal"}) {
      std::ostringstream bytes;
      bytes << std::ifstream(options_.path + suffix, std::ios::binary).rdbuf();
      const std::string all = std::move(bytes).str();
      for (auto at = all.find(text); at != all.npos; at = all.find(text, at + 1)) ++found;
    }
    return found;
  };
  store->flush();
  EXPECT_GE(count("purged "), 180u);
  EntryFilter filter;
  filter.model = "m";
  EXPECT_EQ(*store->purge(filter), 90u);
  EXPECT_EQ(count("purged "), 0u);
  EXPECT_GE(count("kept prompt"), 10u);
}

TEST_F(SqliteStoreTest, AFullQueueDropsAndCounts) {
  options_.max_queue_bytes = 10'000;
  const std::unique_ptr<Store> store = open_or_throw(options_);
  put(*store, entry_of("large", std::string(20'000, 'x')));
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_EQ(body_of(*store, key_of("large")), "none");
  put(*store, entry_of("small", "b"));
  EXPECT_EQ(body_of(*store, key_of("small")), "b");
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
}

// RLIMIT_FSIZE makes write() fail with EFBIG: to SQLite an I/O error like any other.
TEST_F(SqliteStoreTest, AWriteErrorIsCountedAndTheNextWriteIsTriedAgain) {
  options_.limits.compress_above = std::size_t(-1);
  const std::unique_ptr<Store> store = open_or_throw(options_);
  put(*store, entry_of("before", "kept"));
  store->flush();
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = old_limit;
  limit.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  put(*store, entry_of("during", std::string(2 << 20, 'x')));
  store->flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_THAT(last_write_error(), HasSubstr("I/O"));
  EXPECT_EQ(body_of(*store, key_of("before")), "kept");
  EXPECT_EQ(body_of(*store, key_of("during")), "none");
  put(*store, entry_of("after", std::string(2 << 20, 'x')));
  store->flush();
  EXPECT_EQ(store->failed_writes(), 1u);
  EXPECT_EQ(body_of(*store, key_of("after")).size(), std::size_t(2 << 20));
}

TEST_F(SqliteStoreTest, EveryStoredFieldIsUnderTheChecksum) {
  for (const char* change :
       {"body = CAST('otherbody' AS BLOB)", "body = x''", "model = 'other'", "endpoint = 'x'",
        "provider = 'x'", "generation = 'x'", "created_ms = created_ms + 1", "checksum = x'00'",
        "model = 'model-1upstream', provider = ''", "tenant = 'x'", "first_token_ms = 1",
        "total_ms = 1", "saved_bytes = 1", "pace = '1'"}) {
    put(*open_or_throw(options_), entry_of("m", "body"));
    sql(std::string("UPDATE entries SET ") + change);
    const std::unique_ptr<Store> store = open_or_throw(options_);
    const Store::Found entry = get_and_wait(*store, key_of("m"));
    ASSERT_FALSE(entry) << change;
    EXPECT_EQ(entry.error().code, ErrorCode::corrupt);
    EXPECT_THAT(entry.error().message, AnyOf(HasSubstr("checksum"), HasSubstr("compressed")));
    put(*store, entry_of("m", "body"));  // a new answer heals it
    store->flush();
    EXPECT_EQ(body_of(*store, key_of("m")), "body");
  }
  sql("UPDATE entries SET material = x'00'");
  const std::unique_ptr<Store> store = open_or_throw(options_);
  EXPECT_THAT(body_of(*store, key_of("m")), HasSubstr("material"));
  EXPECT_THAT(body_of(*store, *parse_key_name(key_of("m").name())), HasSubstr("material"));
}

TEST_F(SqliteStoreTest, FlippedBytesOfTheFileAreErrorsOrMissesAndNeverOtherAnswers) {
  options_.limits.compress_above = std::size_t(-1);
  const std::string body(200'000, 'q');
  put(*open_or_throw(options_), entry_of("m", body));
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(options_.path));
  std::string original(static_cast<std::size_t>(size), '\0');
  std::ifstream(options_.path, std::ios::binary).read(original.data(), size);
  int errors = 0;
  for (std::streamoff at = 100; at < size; at += size / 60) {
    std::string damaged = original;
    damaged[static_cast<std::size_t>(at)] = static_cast<char>(damaged[std::size_t(at)] ^ 0x55);
    std::ofstream(options_.path, std::ios::binary | std::ios::trunc).write(damaged.data(), size);
    Result<std::unique_ptr<Store>> store = open_sqlite_store(options_);
    if (!store) {
      ++errors;
      continue;
    }
    const Store::Found entry = get_and_wait(**store, key_of("m"));
    if (!entry) {
      ++errors;
    } else if (*entry) {
      EXPECT_EQ(*(*entry)->body, body) << at;
    }
  }
  EXPECT_GT(errors, 20);  // most of the file is the body
}

TEST_F(SqliteStoreTest, RefusesAFileThatIsNoDatabase) {
  std::ofstream(options_.path) << std::string(5000, 'x');
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_EQ(error.message,
            options_.path + ": the file is damaged: opening: file is not a database (SQLite 26)");
  EXPECT_EQ(std::filesystem::file_size(options_.path), 5000u);  // left as it was
}

TEST_F(SqliteStoreTest, RefusesAnotherProgramsDatabase) {
  sql("CREATE TABLE entries(id INTEGER)");
  const Error error = open_error();
  EXPECT_EQ(error.code, ErrorCode::invalid);
  EXPECT_THAT(error.message, HasSubstr("not a fixpoint response cache"));
}

TEST_F(SqliteStoreTest, RefusesANewerVersion) {
  open_or_throw(options_);
  sql("PRAGMA user_version=4");
  for (const bool read_only : {false, true}) {
    options_.read_only = read_only;
    const Error error = open_error();
    EXPECT_EQ(error.code, ErrorCode::invalid);
    EXPECT_THAT(error.message,
                HasSubstr("was written by a newer fixpoint (response cache of version 4, this "
                          "one reads up to 3); start that one"));
  }
}

// A file that the first version made, by its own schema; its checksums are of that version too.
constexpr const char* kVersion1 = R"sql(
PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;
BEGIN;
CREATE TABLE entries(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL,
  kind INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  generation TEXT NOT NULL,
  body_bytes INTEGER NOT NULL,
  checksum BLOB NOT NULL,
  material BLOB NOT NULL,
  body BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX entries_by_key ON entries(key);
CREATE INDEX entries_by_time ON entries(created_ms, kind, model, body_bytes);
PRAGMA application_id=1179669059;
PRAGMA user_version=1;
COMMIT;
)sql";

std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

std::string version_1_row(const Entry& entry) {
  std::string checked;
  for (const std::string& part : {entry.endpoint, entry.model, entry.provider, entry.generation}) {
    checked += std::to_string(part.size()) + ' ' + part;
  }
  checked += std::to_string(entry.created_ms);
  const Sha256Bytes body = sha256(*entry.body);
  checked.append(body.begin(), body.end());
  return "INSERT INTO entries(key, kind, created_ms, endpoint, model, provider, generation,"
         " body_bytes, checksum, material, body) VALUES(x'62" +
         entry.key.hex + "', 1, " + std::to_string(entry.created_ms) + ", '" + entry.endpoint +
         "', '" + entry.model + "', '" + entry.provider + "', '" + entry.generation + "', " +
         std::to_string(entry.body->size()) + ", x'" + sha256_hex(checked) + "', x'" +
         hex_of(entry.key.material) + "', x'" + hex_of(*entry.body) + "');";
}

TEST_F(SqliteStoreTest, AFileOfVersion1IsMigratedWhenItIsOpenedForWriting) {
  sql(kVersion1);
  std::string rows;
  for (int i = 0; i < 100; ++i) {
    Entry entry = entry_of("old " + std::to_string(i), std::string(std::size_t(i) * 1000, 'o'));
    entry.created_ms = 5000 + i;
    rows += version_1_row(entry);
  }
  sql("BEGIN;" + rows + "COMMIT;");

  options_.read_only = true;
  EXPECT_EQ(open_error().code, ErrorCode::invalid);
  EXPECT_THAT(open_error().message, HasSubstr("version 1; the first fixpoint that opens it for"));
  EXPECT_EQ(query(options_.path, "PRAGMA user_version"), 1);

  options_.read_only = false;
  std::unique_ptr<Store> store = open_or_throw(options_);
  const auto check = [&] {
    for (int i = 0; i < 100; ++i) {
      Entry expected =
          entry_of("old " + std::to_string(i), std::string(std::size_t(i) * 1000, 'o'));
      expected.created_ms = 5000 + i;
      const Store::Found found = get_and_wait(*store, expected.key);
      ASSERT_TRUE(found && *found) << i;
      expect_equal(**found, expected);
    }
    const Result<StoreStats> stats = store->stats();
    EXPECT_EQ(stats->entries, 100u);
    EXPECT_EQ(stats->bytes, 4'950'000u);
    EXPECT_EQ(stats->stored_bytes, 4'950'000u);
  };
  check();
  store = nullptr;
  EXPECT_EQ(query(options_.path, "PRAGMA user_version"), 3);
  EXPECT_EQ(query(options_.path, "SELECT sum(bytes) FROM uses"), 4'950'000 + 10 * 5 + 90 * 6);
  options_.read_only = true;
  store = open_or_throw(options_);
  check();

  // What was made before is evicted in the order of its making, and expires.
  store = nullptr;
  options_.read_only = false;
  options_.limits.max_bytes = 4'000'000;
  store = open_or_throw(options_);
  ASSERT_TRUE(eventually([&] { return store->stats()->stored_bytes < 4'000'000; }));
  EXPECT_EQ(body_of(*store, key_of("old 1")), "none");
  EXPECT_EQ(body_of(*store, key_of("old 99")).size(), 99'000u);
  store = nullptr;
  options_.limits.ttl = std::chrono::hours(1);
  store = open_or_throw(options_);
  EXPECT_TRUE(eventually([&] { return store->stats()->entries == 0; }));
}

TEST_F(SqliteStoreTest, AMigrationThatFailsLeavesTheFileAsItWas) {
  sql(kVersion1);
  sql(version_1_row(entry_of("old", "b")) + "CREATE TABLE uses(in_the_way INTEGER);");
  EXPECT_EQ(open_error().code, ErrorCode::io);
  EXPECT_EQ(query(options_.path, "PRAGMA user_version"), 1);
  EXPECT_EQ(query(options_.path, "SELECT count(*) FROM pragma_table_info('entries')"), 12);
  sql("DROP TABLE uses");
  EXPECT_EQ(body_of(*open_or_throw(options_), key_of("old")), "b");
}

// The order of use is in the file: another process goes on with it.
TEST_F(SqliteStoreTest, UsesAreRememberedAcrossReopening) {
  options_.limits.compress_above = std::size_t(-1);
  std::unique_ptr<Store> store = open_or_throw(options_);
  for (int i = 0; i < 10; ++i) put(*store, entry_of(std::to_string(i), std::string(10'000, 'x')));
  store->flush();
  EXPECT_NE(body_of(*store, key_of("0")), "none");
  const auto used_last = [&] {
    return query(options_.path, "SELECT entry FROM uses ORDER BY used DESC LIMIT 1");
  };
  EXPECT_TRUE(
      eventually([&] { return used_last() == 1; }));  // written within seconds, without a put
  store = nullptr;
  options_.limits.max_bytes = 50'100;
  store = open_or_throw(options_);
  ASSERT_TRUE(eventually([&] { return store->stats()->entries == 5; }));
  EXPECT_NE(body_of(*store, key_of("0")), "none");
  EXPECT_EQ(body_of(*store, key_of("5")), "none");
  EXPECT_NE(body_of(*store, key_of("6")), "none");
}

TEST_F(SqliteStoreTest, ASweepGivesTheSpaceBack) {
  options_.limits.compress_above = std::size_t(-1);
  std::unique_ptr<Store> store = open_or_throw(options_);
  for (int i = 0; i < 200; ++i) put(*store, entry_of(std::to_string(i), std::string(50'000, 'x')));
  store = nullptr;
  EXPECT_GT(std::filesystem::file_size(options_.path), 200u * 50'000u);
  options_.limits.ttl = std::chrono::hours(1);
  store = open_or_throw(options_);
  EXPECT_TRUE(eventually([&] { return query(options_.path, "PRAGMA page_count") < 20; }));
  store = nullptr;
  EXPECT_LT(std::filesystem::file_size(options_.path), 300'000u);
}

TEST_F(SqliteStoreTest, ALimitThatOneEntryExceedsKeepsNothing) {
  options_.limits.max_bytes = 100;
  const std::unique_ptr<Store> store = open_or_throw(options_);
  put(*store, entry_of("a", std::string(1000, 'x')));
  store->flush();
  EXPECT_EQ(body_of(*store, key_of("a")), "none");
  put(*store, entry_of("b", "small"));
  store->flush();
  EXPECT_EQ(body_of(*store, key_of("b")), "small");
  EXPECT_EQ(store->stats()->evicted, 1u);
}

TEST_F(SqliteStoreTest, PathsThatCannotBeOpened) {
  options_.path = "";
  EXPECT_EQ(open_error().code, ErrorCode::invalid);
  options_.path = folder_.file("missing/cache.db");
  EXPECT_EQ(open_error().code, ErrorCode::io);
  EXPECT_THAT(open_error().message, HasSubstr("missing/cache.db"));
  options_.path = folder_.path().string();
  EXPECT_EQ(open_error().code, ErrorCode::io);
  options_.path = folder_.file("cache.db");
  options_.read_only = true;
  EXPECT_EQ(open_error().code, ErrorCode::io);
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

TEST_F(SqliteStoreTest, AReadOnlyFolderIsAnError) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0555), 0);
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;  // root may write anywhere
  if (root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const Error error = open_error();
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  EXPECT_EQ(error.code, ErrorCode::io);
  EXPECT_THAT(error.message, HasSubstr("ermission denied"));
}

// ":memory:" and "file:" are names like any other.
TEST_F(SqliteStoreTest, NamesHaveNoSpecialMeaning) {
  const std::filesystem::path old_folder = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  for (const char* name : {":memory:", "file:x?mode=memory", "a b%20'c"}) {
    options_.path = name;
    put(*open_or_throw(options_), entry_of("a", name));
    EXPECT_TRUE(std::filesystem::exists(folder_.file(name)));
    EXPECT_EQ(body_of(*open_or_throw(options_), key_of("a")), name);
  }
  std::filesystem::current_path(old_folder);
}

constexpr const char* kCrashPath = "FIXPOINT_TEST_CRASH_PATH";

// Runs in a process of its own: puts for ever, and prints how many puts are on disk.
TEST(SqliteStoreCrash, DISABLED_Writer) {
  const char* path = std::getenv(kCrashPath);
  if (path == nullptr) GTEST_SKIP() << "only run by SurvivesAKill";
  SqliteStoreOptions options;
  options.path = path;
  const std::unique_ptr<Store> store = open_or_throw(options);
  for (std::uint32_t i = 0;; ++i) {
    put(*store, entry_of(std::to_string(i), std::string(i % 30'000, 'x')));
    if (i % 100 == 99) {
      store->flush();
      const std::uint32_t written = i + 1;
      if (::write(STDERR_FILENO, &written, sizeof(written)) != sizeof(written)) std::abort();
    }
  }
}

TEST(SqliteStoreCrash, SurvivesAKill) {
  const TemporaryFolder folder;
  SqliteStoreOptions options;
  options.path = folder.file("cache.db");
  for (std::uint32_t round = 1; round <= 4; ++round) {
    int reports[2];
    ASSERT_EQ(::pipe(reports), 0);
    const std::string assignment = std::string(kCrashPath) + "=" + options.path;
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(reports[1], STDERR_FILENO);
      ::close(reports[0]);
      ::close(STDOUT_FILENO);
      ::putenv(const_cast<char*>(assignment.c_str()));
      ::execl("/proc/self/exe", "cache_tests", "--gtest_also_run_disabled_tests",
              "--gtest_filter=SqliteStoreCrash.DISABLED_Writer", nullptr);
      ::_exit(127);
    }
    ::close(reports[1]);
    std::uint32_t written = 0;
    while (written < 150 * round &&
           ::read(reports[0], &written, sizeof(written)) == sizeof(written)) {
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::uint32_t later = 0;  // reports that were still under way
    while (::read(reports[0], &later, sizeof(later)) == sizeof(later)) written = later;
    ::close(reports[0]);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_GE(written, 150 * round);

    const std::unique_ptr<Store> store = open_or_throw(options);
    for (std::uint32_t i = 0; i < written; ++i) {
      ASSERT_TRUE(body_of(*store, key_of(std::to_string(i))) == std::string(i % 30'000, 'x')) << i;
    }
    for (std::uint32_t i = written; i < written + 200; ++i) {
      const std::string body = body_of(*store, key_of(std::to_string(i)));
      ASSERT_TRUE(body == "none" || body == std::string(i % 30'000, 'x')) << i << body;
    }
    put(*store, entry_of("alive", "yes"));
    store->flush();
    EXPECT_EQ(store->failed_writes(), 0u);
  }
}

}  // namespace
}  // namespace fixpoint::test
