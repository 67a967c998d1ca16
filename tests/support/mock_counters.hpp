// What the mock upstream was asked. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tests/support/mock_request.hpp"

namespace fixpoint::test {

struct MockTurn {
  std::uint64_t call = 0;     // the number of this call, from 1; never reset
  std::uint64_t attempt = 1;  // how often the same request has come, for models with "-retry-"
};

class MockCounters {
 public:
  MockTurn count(const MockRequest& request);
  // `record`: so many of the next requests are kept whole, the latest ones.
  void reset(std::size_t record);
  std::string stats() const;     // see MockUpstream::stats()
  std::string recorded() const;  // [{"method", "path", "headers", "body"}, ...], the oldest first
  std::uint64_t requests() const;
  std::uint64_t requests(const std::string& model) const;

  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> aborted{0};
  std::atomic<std::uint64_t> resumed{0};

 private:
  std::atomic<std::uint64_t> calls_{0};
  mutable std::mutex mutex_;  // the rest
  std::uint64_t requests_ = 0;
  std::map<std::string, std::uint64_t> by_model_;
  std::map<std::string, std::uint64_t> by_path_;
  std::unordered_map<std::uint64_t, std::uint64_t> attempts_;  // by hash of path and body
  std::map<std::string, std::string> last_headers_;
  std::string last_body_;
  std::size_t record_ = 0;
  std::deque<MockRequest> recorded_;
};

}  // namespace fixpoint::test
