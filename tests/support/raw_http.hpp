// A blocking HTTP client that sends exactly the bytes it is told, for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fixpoint::test {

struct RawReply {
  int status = 0;                              // 0: no head arrived
  std::string head;                            // as received
  std::map<std::string, std::string> headers;  // names in lower case; the last one wins
  std::string body;                            // decoded
  std::size_t chunks = 0;                      // of a chunked body, without the last one
  bool complete = false;                       // the body ended as its framing says
};

class RawClient {
 public:
  // Connects to 127.0.0.1. Throws std::runtime_error. `receive_buffer` > 0 bounds what the kernel
  // takes for a client that does not read.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False: the peer closed or reset the connection, or took nothing for ten seconds.
  bool send(std::string_view bytes);
  int descriptor() const { return fd_; }  // stays the client's
  void finish_sending();                  // FIN
  void reset();                           // RST; the client is unusable afterwards
  // One response. Never throws: what is missing shows in the reply.
  RawReply read_reply(bool to_head = false,
                      std::chrono::milliseconds timeout = std::chrono::seconds(10));
  // Everything until the peer closes or the time is over.
  std::string read_all(std::chrono::milliseconds timeout = std::chrono::seconds(10));
  // Whether the peer ends the connection with FIN, not RST, dropping what it still sends.
  bool ends_cleanly(std::chrono::milliseconds timeout = std::chrono::seconds(10));
  // Whether the peer closed (FIN or RST) within the time, dropping what it still sent.
  bool closed_within(std::chrono::milliseconds timeout);

 private:
  // 1: bytes came, 0: the peer closed, -1: reset or timeout.
  int fill(std::chrono::steady_clock::time_point deadline);

  int fd_ = -1;
  std::string buffer_;
};

// One request on a connection of its own.
RawReply raw_exchange(std::uint16_t port, std::string_view bytes);

}  // namespace fixpoint::test
