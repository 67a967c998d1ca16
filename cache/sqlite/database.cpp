#include "cache/sqlite/database.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace fixpoint::sqlite {
namespace {

// 16 KiB pages write 1 KiB rows 1.7 times faster than 4 KiB pages, and read them a little faster.
constexpr std::int64_t kPageSize = 16384;

tl::unexpected<Error> system_failure(const std::string& path, std::string_view doing, int error) {
  return fail(ErrorCode::io,
              path + ": " + std::string(doing) + ": " + std::generic_category().message(error));
}

// Prompts and answers are personal data: the file is its owner's alone, and SQLite gives -wal and
// -shm the mode of the database.
Result<void> create_private(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int error = errno;
    if (error == EEXIST) return {};
    return system_failure(path, "creating the file", error);
  }
  ::close(descriptor);
  return {};
}

}  // namespace

Database::FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Database::FileLock> Database::FileLock::acquire(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const int error = errno;
    return system_failure(path, "creating the lock file", error);
  }
  FileLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) {
      return fail(
          ErrorCode::io,
          path + ": locked: another fixpoint has the file open for writing; stop that one first");
    }
    return system_failure(path, "locking", error);
  }
  return lock;
}

Result<Database> Database::open(const std::string& path, int flags) {
  Database database;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle,
                                   flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  database.handle_.reset(handle);  // SQLite hands out a connection to close even when it fails
  if (code != SQLITE_OK) {
    if (handle == nullptr) return fail(ErrorCode::io, path + ": out of memory");
    Error error = last_error(handle, "opening");
    if (!error.message.starts_with(path)) error.message.insert(0, path);  // no file, no name of it
    return tl::make_unexpected(std::move(error));
  }
  // First of all: it covers the locks that the pragmas after it take.
  sqlite3_busy_timeout(handle, 5000);
  // temp_store: no temporary files next to nowhere. trusted_schema: a file from elsewhere may hold
  // views and triggers; they get no functions with side effects. No mmap, whatever the build: point
  // reads through it are 1.4 times faster, but its pages count as resident memory, as much as the
  // file is large, and a disk's error behind it is a signal that ends the process.
  const Result<void> set = database.execute(
      "PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA mmap_size=0;", "opening");
  if (!set) return tl::make_unexpected(set.error());
  return database;
}

Result<Database> Database::open_writer(const std::string& given_path, const Schema& schema,
                                       std::uint64_t max_file_bytes) {
  if (given_path.empty()) return fail(ErrorCode::invalid, "path: empty");
  // An absolute path has no special meaning to SQLite (":memory:", "file:...").
  const std::string path = std::filesystem::absolute(given_path).string();
  Result<FileLock> lock = FileLock::acquire(path + ".lock");
  if (!lock) return tl::make_unexpected(std::move(lock.error()));
  if (Result<void> created = create_private(path); !created) {
    return tl::make_unexpected(std::move(created.error()));
  }
  Result<Database> database = open(path, SQLITE_OPEN_READWRITE);
  if (!database) return database;
  database->lock_ = std::move(*lock);

  // Page size and auto_vacuum must come before the first page is written and before WAL.
  // NORMAL: a commit survives the process's death; the last ones may be lost with the machine's
  // power. Checkpoints are the writer's own (writer.hpp), and SQLite's are off. secure_delete is on
  // in Debian's build and would write every freed page with zeros; FAST does so with what is
  // deleted from pages that stay. The page cache is for the inner pages of an index: 16 MiB of it
  // made no short row cheaper, and resident memory 14 MiB larger.
  const std::string pragmas = "PRAGMA page_size=" + std::to_string(kPageSize) +
                              "; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;"
                              "PRAGMA synchronous=NORMAL; PRAGMA secure_delete=FAST;"
                              "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864;"
                              "PRAGMA cache_size=-4096;";
  if (Result<void> set = database->execute(pragmas.c_str(), "opening"); !set) {
    return tl::make_unexpected(std::move(set.error()));
  }
  const Result<std::int64_t> page_size = database->query_integer("PRAGMA page_size");
  if (!page_size) return tl::make_unexpected(page_size.error());
  const std::int64_t pages = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(max_file_bytes / static_cast<std::uint64_t>(*page_size)));
  const std::string limit =
      "PRAGMA max_page_count=" + std::to_string(std::min<std::int64_t>(pages, 0x3FFFFFFE));
  if (Result<void> set = database->execute(limit.c_str(), "opening"); !set) {
    return tl::make_unexpected(std::move(set.error()));
  }
  if (Result<void> ready = database->check_or_create_schema(schema, true); !ready) {
    return tl::make_unexpected(std::move(ready.error()));
  }
  return database;
}

Result<std::string> Database::set_aside(const std::string& given_path) {
  // Not the link to it: the new file begins where the old one was.
  std::error_code unresolved;
  std::string path = std::filesystem::canonical(given_path, unresolved).string();
  if (unresolved) path = std::filesystem::absolute(given_path).string();
  // Whoever holds it has begun a new file already.
  const Result<FileLock> lock = FileLock::acquire(path + ".lock");
  if (!lock) return tl::make_unexpected(lock.error());
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), ".damaged-%Y%m%dT%H%M%SZ", &utc);
  const std::string name = path + time.data();
  std::string free_name = name;
  std::error_code code;
  for (int i = 2; std::filesystem::exists(free_name, code); ++i) {
    free_name = name + "-" + std::to_string(i);
  }
  // The file first: SQLite removes a log that lies beside no database or an empty one.
  for (const char* suffix : {"", "-wal", "-shm"}) {
    if (::rename((path + suffix).c_str(), (free_name + suffix).c_str()) != 0 && errno != ENOENT) {
      const int error = errno;
      return system_failure(path + suffix, "setting the damaged file aside", error);
    }
  }
  // SQLite opens no link that leads nowhere; an empty file is a new one to it.
  if (std::filesystem::is_symlink(given_path, code)) {
    ::close(::open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  return free_name;
}

Result<Database> Database::open_reader(const std::string& given_path, const Schema& schema) {
  if (given_path.empty()) return fail(ErrorCode::invalid, "path: empty");
  const std::string path = std::filesystem::absolute(given_path).string();
  Result<Database> database = open(path, SQLITE_OPEN_READONLY);
  if (!database) return database;
  if (Result<void> ready = database->check_or_create_schema(schema, false); !ready) {
    return tl::make_unexpected(std::move(ready.error()));
  }
  return database;
}

Result<void> Database::check_or_create_schema(const Schema& schema, bool may_write) {
  const Result<std::int64_t> version = query_integer("PRAGMA user_version");
  if (!version) return tl::make_unexpected(version.error());
  const Result<std::int64_t> application = query_integer("PRAGMA application_id");
  if (!application) return tl::make_unexpected(application.error());
  const Result<std::int64_t> objects = query_integer("SELECT count(*) FROM sqlite_schema");
  if (!objects) return tl::make_unexpected(objects.error());

  const std::string file = sqlite3_db_filename(handle_.get(), "main");
  const bool empty = *version == 0 && *application == 0 && *objects == 0;
  // What fails half-way ends with the connection, which the caller closes.
  const std::string finish = "PRAGMA application_id=" + std::to_string(schema.application_id) +
                             "; PRAGMA user_version=" + std::to_string(schema.version) +
                             "; COMMIT;";
  if (empty && may_write) {
    return execute(("BEGIN IMMEDIATE;" + std::string(schema.sql) + finish).c_str());
  }
  if (*application != schema.application_id) {
    return fail(ErrorCode::invalid, file + ": not a fixpoint " + std::string(schema.what) +
                                        "; move the file away, or give the path of another one");
  }
  if (*version > schema.version) {
    return fail(ErrorCode::invalid,
                file + ": was written by a newer fixpoint (" + std::string(schema.what) +
                    " of version " + std::to_string(*version) + ", this one reads up to " +
                    std::to_string(schema.version) + "); start that one, or move the file away");
  }
  if (*version == schema.version) return {};
  const std::int64_t oldest = schema.version - static_cast<std::int64_t>(schema.migrations.size());
  if (*version < oldest) {
    return fail(ErrorCode::invalid, file + ": " + std::string(schema.what) +
                                        " of unknown version " + std::to_string(*version));
  }
  if (!may_write) {
    return fail(ErrorCode::invalid,
                file + ": " + std::string(schema.what) + " of version " + std::to_string(*version) +
                    "; the first fixpoint that opens it for writing brings it to version " +
                    std::to_string(schema.version));
  }
  std::string sql = "BEGIN IMMEDIATE;";
  for (const char* step : schema.migrations.subspan(static_cast<std::size_t>(*version - oldest))) {
    sql += step;
  }
  return execute((sql + finish).c_str());
}

bool Database::is_in_place() const {
  int moved = 0;
  const int code = sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code != SQLITE_OK || moved == 0;
}

Result<void> Database::execute(const char* sql, std::string_view doing) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return tl::make_unexpected(last_error(handle_.get(), doing));
  }
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return tl::make_unexpected(last_error(handle_.get(), "reading"));
  return Statement(statement);
}

Result<void> Database::prepare(Statement& statement, std::string_view sql) {
  Result<Statement> prepared = prepare(sql);
  if (!prepared) return tl::make_unexpected(std::move(prepared.error()));
  statement = std::move(*prepared);
  return {};
}

Result<std::int64_t> Database::query_integer(const char* sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) return tl::make_unexpected(std::move(statement.error()));
  Result<bool> row = statement->step();
  if (!row) return tl::make_unexpected(std::move(row.error()));
  return *row ? statement->integer(0) : 0;
}

}  // namespace fixpoint::sqlite
