#include "cache/sqlite/statement.hpp"

#include <system_error>

namespace fixpoint::sqlite {

Error last_error(sqlite3* connection, std::string_view doing) {
  const int code = sqlite3_extended_errcode(connection);
  const int primary = code & 0xFF;
  const char* file = sqlite3_db_filename(connection, "main");
  std::string message(file == nullptr ? "" : file);
  const bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
  message += damaged ? ": the file is damaged: " : ": ";
  message += doing;
  message += ": ";
  message += sqlite3_errmsg(connection);
  // "disk I/O error" and "unable to open database file" do not say why: a full disk, permissions.
  const int system = sqlite3_system_errno(connection);
  if (system != 0 && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN)) {
    message += ": " + std::generic_category().message(system);
  }
  message += " (SQLite " + std::to_string(code) + ")";
  return {damaged ? ErrorCode::corrupt : ErrorCode::io, std::move(message)};
}

void Statement::note(int code) {
  if (code != SQLITE_OK && bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::bind(int parameter, std::int64_t value) {
  note(sqlite3_bind_int64(statement_.get(), parameter, value));
}

void Statement::bind(int parameter, double value) {
  note(sqlite3_bind_double(statement_.get(), parameter, value));
}

void Statement::bind_text(int parameter, std::string_view value) {
  // A null pointer would bind NULL; an empty view may have one.
  note(sqlite3_bind_text64(statement_.get(), parameter, value.empty() ? "" : value.data(),
                           value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::bind_blob(int parameter, std::string_view value) {
  note(sqlite3_bind_blob64(statement_.get(), parameter, value.empty() ? "" : value.data(),
                           value.size(), SQLITE_STATIC));
}

Result<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) {
    return fail(ErrorCode::io, std::string("binding a value: ") + sqlite3_errstr(bind_error_));
  }
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      // Not the statement itself: it is long, and tells a reader of the log nothing.
      return tl::make_unexpected(
          last_error(sqlite3_db_handle(statement_.get()),
                     sqlite3_stmt_readonly(statement_.get()) != 0 ? "reading" : "writing"));
  }
}

Result<void> Statement::run() {
  const ResetAtEnd at_end(*this);
  Result<bool> row = step();
  if (!row) return tl::make_unexpected(std::move(row.error()));
  return {};
}

Result<std::vector<std::int64_t>> Statement::run_integers() {
  const ResetAtEnd at_end(*this);
  std::vector<std::int64_t> values;
  for (;;) {
    Result<bool> row = step();
    if (!row) return tl::make_unexpected(std::move(row.error()));
    if (!*row) return values;
    values.push_back(integer(0));
  }
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bind_error_ = SQLITE_OK;
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string_view() : std::string_view(data, std::size_t(size));
}

}  // namespace fixpoint::sqlite
