// For tests that need a real server.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

namespace fixpoint::test {

// In a test or the constructor of what a fixture holds: skips the test.
inline bool skip_without_redis() {
  if (std::system("command -v redis-server redis-cli openssl >/dev/null 2>&1") == 0) return false;
  [] { GTEST_SKIP() << "redis-server, redis-cli (redis-tools) or openssl is not installed"; }();
  return true;
}

}  // namespace fixpoint::test
