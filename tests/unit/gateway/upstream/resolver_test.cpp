#include "gateway/upstream/resolver.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/http_fixture.hpp"

namespace {

// What happens to look-ups of "known.test".
std::atomic<int> look_ups{0};
std::atomic<bool> fails{false};
std::atomic<bool> hangs{false};

}  // namespace

// Stands before the C library's, in this program.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || std::string_view(node) != "known.test") {
    return real(node, service, hints, result);
  }
  ++look_ups;
  while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return fails ? EAI_AGAIN : real("127.0.0.1", service, hints, result);
}

namespace fixpoint {
namespace {

class ResolverTest : public testing::Test {
 protected:
  net::io_context context_{1};
  Resolver resolver_{context_, "known.test", 80};

  void SetUp() override {
    look_ups = 0;
    fails = hangs = false;
  }
  void TearDown() override { hangs = false; }

  Result<std::vector<tcp::endpoint>> resolve(
      std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    return test::run(context_, resolver_.resolve(Clock::now() + limit));
  }
  void finish_look_ups() {
    context_.restart();
    context_.run();
  }
};

TEST_F(ResolverTest, AnswersAreKept) {
  for (int i = 0; i < 3; ++i) {
    const auto found = resolve();
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->front(), tcp::endpoint(net::ip::make_address("127.0.0.1"), 80));
  }
  EXPECT_EQ(look_ups, 1);
}

TEST_F(ResolverTest, NoAddressYet) {
  hangs = true;
  auto found = resolve(std::chrono::milliseconds(50));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::timeout);
  fails = true;
  hangs = false;
  found = resolve();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::unreachable);
  EXPECT_EQ(look_ups, 1) << "callers share a look-up";
  fails = false;
  EXPECT_TRUE(resolve()) << "with nothing to use instead it is tried again at once";
}

TEST_F(ResolverTest, KnownAddressesAreUsedWhileALookUpHangs) {
  ASSERT_TRUE(resolve());
  hangs = true;
  resolver_.forget();
  EXPECT_TRUE(test::eventually([] { return look_ups == 2; })) << "nobody needs to wait for it";
  for (int i = 0; i < 3; ++i) {
    const auto found = resolve();
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->size(), 1u);
  }
  hangs = false;
  finish_look_ups();
  ASSERT_TRUE(resolve());
  EXPECT_EQ(look_ups, 2);
}

TEST_F(ResolverTest, KnownAddressesOutliveFailedLookUps) {
  ASSERT_TRUE(resolve());
  fails = true;
  resolver_.forget();
  finish_look_ups();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(resolve());
    resolver_.forget();
  }
  finish_look_ups();
  EXPECT_EQ(look_ups, 2) << "for a while it is not repeated";
}

TEST_F(ResolverTest, AnAddressNeedsNoLookUp) {
  Resolver address(context_, "::1", 80);
  address.forget();
  const auto found = test::run(context_, address.resolve(Clock::now()));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front(), tcp::endpoint(net::ip::make_address("::1"), 80));
}

}  // namespace
}  // namespace fixpoint
