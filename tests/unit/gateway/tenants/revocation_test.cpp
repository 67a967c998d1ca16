// Revoking a key while the key file cannot be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "gateway/tenants/tenants.hpp"
#include "tests/support/http_fixture.hpp"
#include "tests/support/temp_dir.hpp"

namespace fixpoint {
namespace {

using testing::HasSubstr;

class RevocationTest : public testing::Test {
 protected:
  RevocationTest() { sqlite3_open(path_.c_str(), &other_); }
  ~RevocationTest() override { sqlite3_close(other_); }

  std::unique_ptr<Tenants> open(std::chrono::milliseconds save_every = std::chrono::hours(1)) {
    TenantsOptions options;
    options.path = path_;
    options.save_every = save_every;
    auto tenants = Tenants::open(options);
    if (!tenants) throw std::runtime_error(tenants.error().message);
    return std::move(*tenants);
  }
  static CreatedKey create(Tenants& tenants) {
    return tenants.create({.name = "leaked", .cache_namespace = "", .policy = {}}).value();
  }
  // From another connection than the key store's.
  void execute(const char* sql) {
    sqlite3_busy_timeout(other_, 5000);
    EXPECT_EQ(sqlite3_exec(other_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  }
  // Whatever is written to the table fails meanwhile.
  void take_table() { execute("ALTER TABLE keys RENAME TO away"); }
  void give_table_back() { execute("ALTER TABLE away RENAME TO keys"); }

  const test::TempDir folder_;
  const std::string path_ = folder_.file("keys.db");
  sqlite3* other_ = nullptr;
};

TEST_F(RevocationTest, WorksInTheProcessWithoutTheDiskAndIsWrittenLater) {
  CreatedKey created;
  {
    const auto tenants = open();
    created = create(*tenants);
    take_table();
    for (int i = 0; i < 2; ++i) {
      const auto revoked = tenants->revoke(created.key.id);
      ASSERT_FALSE(revoked);
      EXPECT_THAT(revoked.error().message,
                  HasSubstr("is revoked in this process, but not on disk"));
    }
    EXPECT_EQ(tenants->authenticate(created.secret), nullptr);
    EXPECT_GT(tenants->find(created.key.id)->revoked_ms, 0);
    EXPECT_FALSE(tenants->save());
    give_table_back();
    // The disk's own version does not bring it back.
    const auto updated = tenants->update(created.key.id, {});
    ASSERT_TRUE(updated);
    EXPECT_GT(updated->revoked_ms, 0);
    EXPECT_EQ(tenants->authenticate(created.secret), nullptr);
    EXPECT_TRUE(tenants->save());
  }
  const auto tenants = open();
  EXPECT_EQ(tenants->authenticate(created.secret), nullptr);
}

TEST_F(RevocationTest, IsTriedAgainByItself) {
  const auto tenants = open(std::chrono::milliseconds(5));
  const CreatedKey created = create(*tenants);
  take_table();
  EXPECT_FALSE(tenants->revoke(created.key.id));
  give_table_back();
  const auto on_disk = [&] {
    int rows = 0;
    sqlite3_exec(
        other_, "SELECT 1 FROM keys WHERE revoked_ms > 0",
        [](void* count, int, char**, char**) { return ++*static_cast<int*>(count), 0; }, &rows,
        nullptr);
    return rows == 1;
  };
  EXPECT_TRUE(test::eventually(on_disk, std::chrono::seconds(60)));
}

TEST_F(RevocationTest, DoesNotWaitForALockedFile) {
  const auto tenants = open();
  const CreatedKey created = create(*tenants);
  execute("BEGIN IMMEDIATE");
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    static_cast<void>(tenants->revoke(created.key.id));
    returned = true;
  });
  while (tenants->authenticate(created.secret) && !returned) std::this_thread::yield();
  EXPECT_EQ(tenants->authenticate(created.secret), nullptr);
  execute("ROLLBACK");
  thread.join();
  EXPECT_TRUE(tenants->save());
}

}  // namespace
}  // namespace fixpoint
