// Gateway keys and their monthly usage in one SQLite file, <data_dir>/keys.db.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/sqlite/database.hpp"
#include "cache/sqlite/writer.hpp"
#include "gateway/tenants/api_key.hpp"

namespace fixpoint {

inline std::string key_file_of(const std::string& data_dir) {
  return data_dir + "/keys.db";
}

// The file (mode 0600) holds digests, never secrets. Plain SHA-256 is right for these secrets and
// would be wrong for passwords: they are 256 random bits, so that nobody can try candidates, and a
// slow hash would only slow the gateway down.
//
// Thread-safe; every call waits for the disk, and what it changed is there when it returns. One
// process at a time may have the file open.
class KeyStore {
 public:
  // Creates the file where it is missing. `on_error` hears of failed writes and checkpoints, on a
  // thread of its own; it may be empty. Errors: io (directory, permissions, another process has
  // it), corrupt, invalid (another kind of file, a newer version).
  static Result<std::unique_ptr<KeyStore>> open(const std::string& path,
                                                std::function<void(const Error&)> on_error = {});

  // Errors of all: io, corrupt.
  // Also invalid: check_new_key(), or kMaxKeys.
  Result<CreatedKey> create(const NewKey& wanted, std::int64_t now_ms);
  // The time of the first revocation stays. Errors also: not_found.
  Result<ApiKey> revoke(const std::string& id, std::int64_t now_ms);
  // Errors also: not_found, invalid (check_policy()).
  Result<ApiKey> update(const std::string& id, const KeyPolicy& policy);
  Result<std::vector<ApiKey>> keys();  // oldest first, revoked ones too
  // Newest month first. Unset: all keys, all months.
  Result<std::vector<MonthlyUsage>> usage(const std::optional<std::string>& id,
                                          std::optional<Month> month);
  // Replaces the totals of these keys and months, all or none.
  Result<void> save_usage(const std::vector<MonthlyUsage>& totals);

 private:
  KeyStore(sqlite::Database database, std::function<void(const Error&)> on_error);

  // These run on the writer's thread.
  Result<void> insert(const ApiKey& key);
  Result<std::vector<ApiKey>> read(const std::optional<std::string>& id);
  Result<ApiKey> read_one(const std::string& id);

  sqlite::Database database_;  // the writer's alone
  sqlite::Writer writer_;
};

}  // namespace fixpoint
