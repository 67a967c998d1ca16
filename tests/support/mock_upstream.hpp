// An OpenAI-compatible upstream with scripted behaviour, for tests and benchmarks.
//
// POST .../chat/completions and .../completions; the model's name chooses what happens:
//   mock                 at once             mock-error-<status>  an error (429 with retry-after)
//   mock-slow            after 2 s           mock-cut-<bytes>     cut after so many bytes of the
//   body mock-delay-<ms>      after that time     mock-reset           the connection is reset
//   mock-stream-<n>-<ms> n tokens, ms apart  mock-garbage         200 with a body that is no JSON
//   mock-big-<bytes>     a long content      mock-nodone          a stream without [DONE]
//   mock-crlf            CRLF event ends     mock-length          finish_reason length
//   mock-split           a byte per write    mock-filter          finish_reason content_filter
// GET .../models; GET /mock/stats; POST /mock/reset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace fixpoint::test {

struct MockUpstreamOptions {
  std::uint16_t port = 0;  // 0: the system picks
  std::size_t threads = 1;
  std::string cert_file;  // PEM; with key_file: TLS
  std::string key_file;
};

class MockUpstream {
 public:
  explicit MockUpstream(MockUpstreamOptions options = {});
  ~MockUpstream();  // stops and joins
  std::uint16_t port() const;
  std::string base_url() const;  // "http://127.0.0.1:port/v1"; https and localhost with TLS
  // {"requests": generations asked for, "by_model": {...}, "connections": accepted, "aborted":
  // answers whose client left, "tls_resumed": n, "last_headers": {...}, "last_body": "..."}
  std::string stats() const;
  std::uint64_t requests() const;
  std::uint64_t requests(const std::string& model) const;
  std::uint64_t connections() const;
  std::uint64_t aborted() const;
  std::uint64_t tls_resumed() const;
  void reset();  // counters to zero
  // Closes the connections that wait for a request, as a server whose idle time is over does.
  void close_idle();

 private:
  struct Impl;
  static void reset_counters(Impl& impl);
  static std::string render_stats(const Impl& impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fixpoint::test
