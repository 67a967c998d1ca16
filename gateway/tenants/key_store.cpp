#include "gateway/tenants/key_store.hpp"

#include <algorithm>
#include <utility>

namespace fixpoint {
namespace {

constexpr sqlite::Schema kSchema{.what = "key file",
                                 .application_id = 0x46504B59,  // "FPKY"
                                 .version = 1,
                                 .sql = R"sql(
CREATE TABLE keys(
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  digest BLOB NOT NULL UNIQUE,   -- SHA-256 of the secret
  namespace TEXT NOT NULL,
  models TEXT NOT NULL,          -- globs, one a line
  requests_per_minute INTEGER NOT NULL,  -- of limits: 0 for none
  tokens_per_minute INTEGER NOT NULL,
  monthly_tokens INTEGER NOT NULL,
  monthly_cost INTEGER NOT NULL, -- micro-dollars
  created_ms INTEGER NOT NULL,
  revoked_ms INTEGER NOT NULL) STRICT;
CREATE TABLE usage(
  key TEXT NOT NULL,
  month INTEGER NOT NULL,        -- 100 * year + month, in UTC
  requests INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,         -- micro-dollars
  PRIMARY KEY(key, month)) STRICT, WITHOUT ROWID;
)sql"};

constexpr const char* kSelect =
    "SELECT id, name, digest, namespace, models, requests_per_minute, tokens_per_minute,"
    " monthly_tokens, monthly_cost, created_ms, revoked_ms FROM keys"
    " WHERE (?1 IS NULL OR id = ?1) ORDER BY created_ms, id";
constexpr const char* kCount = "SELECT count(*) FROM keys";
constexpr const char* kInsert = "INSERT INTO keys VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)";
constexpr const char* kRevoke = "UPDATE keys SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms = 0";
constexpr const char* kUpdate =
    "UPDATE keys SET models = ?2, requests_per_minute = ?3, tokens_per_minute = ?4,"
    " monthly_tokens = ?5, monthly_cost = ?6 WHERE id = ?1";
constexpr const char* kUsage =
    "SELECT key, month, requests, prompt_tokens, completion_tokens, cost FROM usage"
    " WHERE (?1 IS NULL OR key = ?1) AND (?2 IS NULL OR month = ?2) ORDER BY month DESC, key";
constexpr const char* kSaveUsage = "INSERT OR REPLACE INTO usage VALUES(?1,?2,?3,?4,?5,?6)";

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 30;
// Of the writer's queue; every call waits for its own job, so that nothing piles up.
constexpr std::size_t kMaxQueueBytes = 1 << 20;

std::int64_t signed_of(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

std::uint64_t unsigned_at(const sqlite::Statement& row, int column) {
  return static_cast<std::uint64_t>(row.integer(column));
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Result<ApiKey> key_of(const sqlite::Statement& row) {
  ApiKey key;
  key.id = row.bytes(0);
  key.name = row.bytes(1);
  const std::string_view digest = row.bytes(2);
  if (digest.size() != key.digest.size()) {
    return fail(ErrorCode::corrupt, "the key file's digest of " + key.id + " is no SHA-256");
  }
  std::copy(digest.begin(), digest.end(), key.digest.begin());
  key.cache_namespace = row.bytes(3);
  key.policy.models = split_lines(row.bytes(4));
  key.policy.requests_per_minute = unsigned_at(row, 5);
  key.policy.tokens_per_minute = unsigned_at(row, 6);
  key.policy.monthly_tokens = unsigned_at(row, 7);
  key.policy.monthly_cost = row.integer(8);
  key.created_ms = row.integer(9);
  key.revoked_ms = row.integer(10);
  // Limits that this program would not set would overflow its arithmetic.
  if (const auto checked = check_policy(key.policy); !checked) {
    return fail(ErrorCode::corrupt,
                "the key file's limits of " + key.id + ": " + checked.error().message);
  }
  return key;
}

}  // namespace

KeyStore::KeyStore(sqlite::Database database, std::function<void(const Error&)> on_error)
    : database_(std::move(database)), writer_(database_, kMaxQueueBytes, std::move(on_error)) {}

Result<std::unique_ptr<KeyStore>> KeyStore::open(const std::string& path,
                                                 std::function<void(const Error&)> on_error) {
  Result<sqlite::Database> database = sqlite::Database::open_writer(path, kSchema, kMaxFileBytes);
  if (!database) return tl::make_unexpected(std::move(database.error()));
  // Few commits, and each matters: a revocation must not come undone when the power fails.
  if (auto set = database->execute("PRAGMA synchronous=FULL"); !set) {
    return tl::make_unexpected(std::move(set.error()));
  }
  return std::unique_ptr<KeyStore>(new KeyStore(std::move(*database), std::move(on_error)));
}

Result<CreatedKey> KeyStore::create(const NewKey& wanted, std::int64_t now_ms) {
  if (const auto checked = check_new_key(wanted); !checked) {
    return tl::make_unexpected(checked.error());
  }
  CreatedKey created = generate_key(wanted, now_ms);
  const Result<void> inserted = writer_.run([&] { return insert(created.key); });
  if (!inserted) return tl::make_unexpected(inserted.error());
  return created;
}

Result<ApiKey> KeyStore::revoke(const std::string& id, std::int64_t now_ms) {
  Result<ApiKey> key;
  const Result<void> done = writer_.run([&]() -> Result<void> {
    Result<sqlite::Statement> statement = database_.prepare(kRevoke);
    if (!statement) return tl::make_unexpected(statement.error());
    statement->bind_text(1, id);
    statement->bind(2, now_ms);
    if (auto ran = statement->run(); !ran) return ran;
    key = read_one(id);
    return key ? Result<void>() : tl::make_unexpected(key.error());
  });
  if (!done) return tl::make_unexpected(done.error());
  return key;
}

Result<ApiKey> KeyStore::update(const std::string& id, const KeyPolicy& policy) {
  if (const auto checked = check_policy(policy); !checked) {
    return tl::make_unexpected(checked.error());
  }
  const std::string models = join_lines(policy.models);
  Result<ApiKey> key;
  const Result<void> done = writer_.run([&]() -> Result<void> {
    Result<sqlite::Statement> statement = database_.prepare(kUpdate);
    if (!statement) return tl::make_unexpected(statement.error());
    statement->bind_text(1, id);
    statement->bind_text(2, models);
    statement->bind(3, signed_of(policy.requests_per_minute));
    statement->bind(4, signed_of(policy.tokens_per_minute));
    statement->bind(5, signed_of(policy.monthly_tokens));
    statement->bind(6, policy.monthly_cost);
    if (auto ran = statement->run(); !ran) return ran;
    key = read_one(id);
    return key ? Result<void>() : tl::make_unexpected(key.error());
  });
  if (!done) return tl::make_unexpected(done.error());
  return key;
}

Result<std::vector<ApiKey>> KeyStore::keys() {
  Result<std::vector<ApiKey>> found;
  const Result<void> done = writer_.run([&]() -> Result<void> {
    found = read(std::nullopt);
    return found ? Result<void>() : tl::make_unexpected(found.error());
  });
  if (!done) return tl::make_unexpected(done.error());
  return found;
}

Result<std::vector<MonthlyUsage>> KeyStore::usage(const std::optional<std::string>& id,
                                                  std::optional<Month> month) {
  std::vector<MonthlyUsage> found;
  const Result<void> done = writer_.run([&]() -> Result<void> {
    found.clear();  // the job may run again
    Result<sqlite::Statement> statement = database_.prepare(kUsage);
    if (!statement) return tl::make_unexpected(statement.error());
    if (id) statement->bind_text(1, *id);
    if (month) statement->bind(2, std::int64_t{*month});
    for (;;) {
      const Result<bool> row = statement->step();
      if (!row) return tl::make_unexpected(row.error());
      if (!*row) return {};
      found.push_back({std::string(statement->bytes(0)),
                       static_cast<Month>(statement->integer(1)),
                       {unsigned_at(*statement, 2), unsigned_at(*statement, 3),
                        unsigned_at(*statement, 4), statement->integer(5)}});
    }
  });
  if (!done) return tl::make_unexpected(done.error());
  return found;
}

Result<void> KeyStore::save_usage(const std::vector<MonthlyUsage>& totals) {
  return writer_.run([&]() -> Result<void> {
    Result<sqlite::Statement> statement = database_.prepare(kSaveUsage);
    if (!statement) return tl::make_unexpected(statement.error());
    for (const MonthlyUsage& total : totals) {
      statement->bind_text(1, total.key);
      statement->bind(2, std::int64_t{total.month});
      statement->bind(3, signed_of(total.usage.requests));
      statement->bind(4, signed_of(total.usage.prompt_tokens));
      statement->bind(5, signed_of(total.usage.completion_tokens));
      statement->bind(6, total.usage.cost);
      if (auto ran = statement->run(); !ran) return ran;
    }
    return {};
  });
}

Result<void> KeyStore::insert(const ApiKey& key) {
  const Result<std::int64_t> count = database_.query_integer(kCount);
  if (!count) return tl::make_unexpected(count.error());
  if (*count >= static_cast<std::int64_t>(kMaxKeys)) {
    return fail(ErrorCode::invalid, "the key file holds " + std::to_string(kMaxKeys) +
                                        " keys, and takes no more (revoked ones count)");
  }
  Result<sqlite::Statement> statement = database_.prepare(kInsert);
  if (!statement) return tl::make_unexpected(statement.error());
  const std::string models = join_lines(key.policy.models);
  statement->bind_text(1, key.id);
  statement->bind_text(2, key.name);
  statement->bind_blob(3, {reinterpret_cast<const char*>(key.digest.data()), key.digest.size()});
  statement->bind_text(4, key.cache_namespace);
  statement->bind_text(5, models);
  statement->bind(6, signed_of(key.policy.requests_per_minute));
  statement->bind(7, signed_of(key.policy.tokens_per_minute));
  statement->bind(8, signed_of(key.policy.monthly_tokens));
  statement->bind(9, key.policy.monthly_cost);
  statement->bind(10, key.created_ms);
  statement->bind(11, key.revoked_ms);
  return statement->run();
}

Result<ApiKey> KeyStore::read_one(const std::string& id) {
  Result<std::vector<ApiKey>> found = read(id);
  if (!found) return tl::make_unexpected(found.error());
  if (found->empty()) return fail(ErrorCode::not_found, "there is no key " + id);
  return std::move(found->front());
}

Result<std::vector<ApiKey>> KeyStore::read(const std::optional<std::string>& id) {
  Result<sqlite::Statement> statement = database_.prepare(kSelect);
  if (!statement) return tl::make_unexpected(statement.error());
  if (id) statement->bind_text(1, *id);
  std::vector<ApiKey> found;
  for (;;) {
    const Result<bool> row = statement->step();
    if (!row) return tl::make_unexpected(row.error());
    if (!*row) return found;
    Result<ApiKey> key = key_of(*statement);
    if (!key) return tl::make_unexpected(key.error());
    found.push_back(std::move(*key));
  }
}

}  // namespace fixpoint
