// A prepared SQLite statement.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/base/result.hpp"

namespace fixpoint::sqlite {

// What the connection says about its last call, as an error of ours: corrupt for a damaged file or
// one that is no database, io for the rest.
Error last_error(sqlite3* connection, std::string_view doing);

// Owns the statement; must not outlive its connection. One thread at a time.
// Bound bytes are not copied: they must live until reset(). Parameters count from 1, columns from
// 0.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);  // NaN becomes NULL
  void bind_text(int parameter, std::string_view value);
  void bind_blob(int parameter, std::string_view value);

  // true: a row is there. A failed bind is reported here.
  Result<bool> step();
  // For statements without rows: binds are in, runs it, and resets.
  Result<void> run();
  // For statements with rows of one integer: runs it to its end, and resets.
  Result<std::vector<std::int64_t>> run_integers();
  // Ends the statement's read transaction and forgets the bound values.
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view bytes(int column) const;  // of TEXT and BLOB; valid until step() or reset()

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  void note(int code);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = SQLITE_OK;
};

// Resets a statement at the end of the scope that used it.
class ResetAtEnd {
 public:
  explicit ResetAtEnd(Statement& statement) : statement_(statement) {}
  ~ResetAtEnd() { statement_.reset(); }
  ResetAtEnd(const ResetAtEnd&) = delete;
  ResetAtEnd& operator=(const ResetAtEnd&) = delete;

 private:
  Statement& statement_;
};

}  // namespace fixpoint::sqlite
