// A connection to one SQLite file, opened the way this project uses SQLite.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cache/base/result.hpp"
#include "cache/sqlite/statement.hpp"

namespace fixpoint::sqlite {

// What a file holds. A file carries its application id and version in SQLite's header fields.
struct Schema {
  std::string_view what;  // for messages: "response cache"
  std::int32_t application_id;
  std::int32_t version;  // PRAGMA user_version
  const char* sql;       // creates it in an empty file
  // What brings a file from version i + 1 to i + 2. Versions before the first one are unknown.
  std::span<const char* const> migrations = {};
};

// One thread at a time (SQLITE_OPEN_NOMUTEX).
class Database {
 public:
  // The one writer of a file: creates it (mode 0600) with its schema where it is missing, brings an
  // older version to this one (all of it or nothing), and holds `<path>.lock` against a second
  // writer for as long as it lives. max_file_bytes bounds the file; a write beyond it fails as on a
  // full disk. Errors: io (directory, permissions, lock held), corrupt (no database), invalid
  // (another kind of file, or a version newer than this program's).
  static Result<Database> open_writer(const std::string& path, const Schema& schema,
                                      std::uint64_t max_file_bytes);
  // Renames a damaged file, with what SQLite keeps beside it, to `<path>.damaged-<UTC time>` and
  // returns that name; another file of that name stays as it is. Errors: io (the lock is held, the
  // folder).
  static Result<std::string> set_aside(const std::string& path);
  // Reads only; never checkpoints. The file must exist, in this version.
  static Result<Database> open_reader(const std::string& path, const Schema& schema);

  // `doing` is for the message of an error, which does not repeat the statements.
  Result<void> execute(const char* sql, std::string_view doing = "writing");
  Result<Statement> prepare(std::string_view sql);
  Result<void> prepare(Statement& statement, std::string_view sql);
  Result<std::int64_t> query_integer(const char* sql);
  // False when the file's path leads to another file by now, or to none.
  bool is_in_place() const;
  std::string path() const { return sqlite3_db_filename(handle_.get(), "main"); }
  sqlite3* handle() const { return handle_.get(); }

 private:
  // flock() on a file of its own: closing any descriptor of the database itself would drop the
  // locks that SQLite holds in this process.
  class FileLock {
   public:
    FileLock() = default;
    explicit FileLock(int descriptor) : descriptor_(descriptor) {}
    FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    FileLock& operator=(FileLock&& other) noexcept {
      std::swap(descriptor_, other.descriptor_);
      return *this;
    }
    ~FileLock();
    static Result<FileLock> acquire(const std::string& path);

   private:
    int descriptor_ = -1;
  };
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };

  static Result<Database> open(const std::string& path, int flags);
  Result<void> check_or_create_schema(const Schema& schema, bool may_write);

  FileLock lock_;  // released after the connection is closed
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace fixpoint::sqlite
