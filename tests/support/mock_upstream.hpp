// An upstream of both APIs with scripted behaviour, for tests and benchmarks.
//
// POST .../chat/completions, .../completions, .../responses, .../embeddings, .../messages,
// .../messages/count_tokens; GET .../models. Tools are called when there are some and no result of
// one waits; schemas are satisfied; log-probabilities, thinking and echo come when asked. The
// model's name, "mock" and words, chooses what else happens; words go together, "mock-crlf-split":
//   slow, delay-<ms>       an answer after 2 s, ms  error-<status>       an error of the API's
//   shape stream-<n>-<ms>        n tokens, ms apart       retry-<n>-<status>   it, n times per body
//   big-<bytes>, utf8      long, non-ASCII content  retryafter-<s>, retryafterms-<ms>,
//   fixed                  always one content        retrydate-<s>        with an error
//   tools-<n>, reasoning   n calls; reasoning       shouldretry-<0|1>    with an error
//   fp-<text>              system_fingerprint       cut-<bytes>          of the body, then closed
//   obfuscation            random member per delta  resetat-<bytes>      of the body, then reset
//   length, filter         why it ended             end-<bytes>          of the body, well framed
//   nofinish, nodone       no reason, no end mark   reset, garbage       no answer, no JSON
//   crlf, cr, bom, nospace, multiline               errorevent-<n>       after n events
//                          ways to write events       [-done]            and then the end mark
//   blank, emptydata       events without content   failed               Responses: status failed
//   split                  a byte per write         ping-<ms>, idle-<ms> pings, a late end of body
// A key with "invalid" in it is refused with 401, one with "limited" with 429.
// GET /mock/stats; POST /mock/reset {"record": n}; GET /mock/requests: the last n, whole; POST
// /mock/close_idle.
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
  // {"requests": generations asked for, "by_model": {...}, "by_path": {...}, "connections":
  // accepted, "aborted": answers whose client left, "tls_resumed": n, "last_headers": {...},
  // "last_body": "..."}
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
  std::shared_ptr<Impl> impl_;
};

}  // namespace fixpoint::test
